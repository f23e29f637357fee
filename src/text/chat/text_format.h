// Python's "%s" % value. A function.
#pragma once

#include "text/chat/heap.h"

namespace transept::jinja {

// format % values. Supports %s, %r, %d, %i, %x, %f and %% with the flags 0 and -, a width and a precision. Errors:
// kInvalidArgument: too many or too few values, or one of another type; kUnimplemented: others.
StatusOr<Value> format_percent(Heap& heap, const Text& format, const Value& values);

}  // namespace transept::jinja
