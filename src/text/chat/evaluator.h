// Runs a program. A function, thread-safe.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"
#include "text/chat/ast.h"
#include "text/chat/heap.h"

namespace transept::jinja {

// Levels of expressions, blocks and calls of macros within one another. CPython has 1000 of its own kind.
inline constexpr int kMaxDepth = 600;

struct Run {
  const Dict* inputs = nullptr;  // by name: all keys are texts
  std::chrono::system_clock::time_point now;
  size_t max_output_bytes = 0;
};

// Returns the rendered text. REQUIRES: names are resolved; `program` and what `run` refers to outlive the heap. Errors,
// with the line: what Python raises for, or what is not supported; kResourceExhausted.
StatusOr<std::string> evaluate(Heap& heap, const Program& program, const Run& run);

}  // namespace transept::jinja
