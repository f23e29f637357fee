// How the arguments of a call meet the parameters of a macro. A function.
#pragma once

#include "text/chat/arguments.h"
#include "text/chat/value_ops.h"
#include "text/chat/variables.h"

namespace transept::jinja {

// Returns a new frame of the macro with its parameters, kMissing where none is given (defaults are the evaluator's),
// and caller, kwargs and varargs if it reads them. Errors (kInvalidArgument): arguments that it does not take. As
// Macro.__call__ of jinja2/runtime.py.
StatusOr<Frame*> bind_macro(Heap& heap, Variables& variables, const Macro& macro, Arguments arguments);

}  // namespace transept::jinja
