// Why a path that was given as MODEL cannot be run: what it is instead, which file says so, and what to do. For the
// errors of every verb. Looks at files only once something has failed. Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace transept {

// `status` is the error of loading the folder `dir`, or ok. Returns it, or a better one: a file that it names is no
// file of a model but a pointer of git-lfs or a web page; or the folder has no weights that are read, and what it has
// is known.
Status explain_model_error(Status status, const std::string& dir);

// ok, or the error of a folder whose weights are an adapter's: as files they are as good as a model's.
Status check_no_adapter(const std::string& dir);

// The error of a MODEL that is a file.
Status model_is_file(const std::string& path);

}  // namespace transept
