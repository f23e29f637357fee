// Paths of media, as requests give them. Functions of their arguments and the file system: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "multimodal/media_access.h"

namespace transept {

inline constexpr std::string_view kMediaParam = "multi_modal_data";

// Returns kInvalidArgument "multi_modal_data: NAME: REASON" under that field. `name`: "audio", "image[2]".
Status media_error(std::string_view name, std::string_view reason);

// Adds the field, and the path or "multi_modal_data: NAME" before the message, to an error of a reader.
Status media_status(const Status& status, std::string_view prefix);

// Returns the path to open: where a folder is allowed, with all links resolved. Errors (media_error): no paths are
// allowed; a path with a zero byte; one that does not lead below the allowed folder, which is told like one that cannot
// be opened.
StatusOr<std::string> media_path(const std::string& path, const MediaAccess& access, std::string_view name);

// What media_path() says of a path that is not below the allowed folder. For files there that cannot be read: a
// server's clients learn nothing of its folders.
Status not_below_error(std::string_view name);

}  // namespace transept
