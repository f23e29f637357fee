// Finds where each name of a template lives, as jinja2/idtracking.py and compiler.py do. A function, thread-safe.
//
// Scopes of Jinja are static. The template, a macro, a call block, the body and the `else` of a loop, and the bodies of
// set, filter and with blocks are scopes; an {% if %} is none. A name that a scope assigns anywhere is the scope's own
// everywhere in it: it begins with the value of the scope around, else with that of the input if the scope reads it
// before (or assigns it only under an {% if %}), else without a value. Inner scopes see that variable, not the input's.
#pragma once

#include "base/status.h"
#include "text/chat/ast.h"

namespace transept::jinja {

// Fills slots, scopes and the list of what is not supported. Errors, with the line: kInvalidArgument: what jinja2 finds
// when it compiles: an assignment to `loop` in a loop, break and continue outside of loops, an unknown filter or test
// (but under an {% if %}); kUnimplemented: a filter that is not supported (same), `self`; kResourceExhausted: too many
// names.
Status resolve_names(Program& program);

}  // namespace transept::jinja
