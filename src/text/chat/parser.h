// Parses templates, as jinja2/parser.py does. A function, thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/chat/ast.h"

namespace transept::jinja {

// Fills the body of an empty program; names are not resolved yet (scopes.h). Errors, with the line: those of
// tokenize(); kInvalidArgument: the grammar, more than kMaxSourceDepth levels; kUnimplemented: a statement that is not
// supported.
Status parse_program(std::string_view source, Program& program);

}  // namespace transept::jinja
