// What a hub's refusals mean, and what to do about each. A pure function: thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "hub/hub_settings.h"
#include "hub/repo_name.h"
#include "hub/transfer.h"

namespace transept {

// The error of an answer that is neither 2xx nor a redirect, by its status and the headers X-Error-Code and
// X-Error-Message. `file` is "" for requests about the repository. Codes: kUnauthenticated (401), kPermissionDenied
// (403, gated), kNotFound (no such repository, revision or file), kOutOfRange (416), kUnavailable
// (is_retryable_status), else kUnknown.
Status hub_error(const HubSettings& settings, const RepoName& repo, std::string_view file,
                 const Transfer::Reply& reply);

// Whether the answer says that the repository is there and has no such file.
bool is_missing_file(const Transfer::Reply& reply);

}  // namespace transept
