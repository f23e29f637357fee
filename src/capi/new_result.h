// Makes the results of a stream. A pure function: thread-safe.
#pragma once

#include "capi/handles.h"
#include "core/request_output.h"

namespace transept {

inline transept_result make_result(const transept_stream& stream, RequestOutput output) {
  if (stream.is_structured) {
    add_structured(*stream.shared->model().media->structured(), *stream.shared->tokenizer(), output);
  }
  return {stream.id, std::move(output), stream.shared->tokenizer(),
          stream.shared->model().info.spec.width_of(Consumers::kCross)};
}

}  // namespace transept
