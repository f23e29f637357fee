// Escapes in string literals of templates. A function, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace transept::jinja {

// Returns the value of what stands between the quotes, as jinja2/lexer.py finds it: encode("ascii", "backslashreplace")
// and decode("unicode-escape"). So an unknown escape stays as it is, and "\é" becomes "\xe9". REQUIRES: valid UTF-8.
// Errors: kInvalidArgument: an escape that is cut short; a backslash at the end; surrogates; kUnimplemented: \N{..}.
StatusOr<std::string> unescape(std::string_view literal);

}  // namespace transept::jinja
