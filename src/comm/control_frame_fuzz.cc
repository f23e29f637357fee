// Any bytes as what a process says to the ranks' port: an error, or a frame whose bytes are these.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "comm/control_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> stream(bytes.begin(), bytes.end());
  while (true) {
    const std::vector<std::byte> before = stream;
    const StatusOr<std::optional<ControlFrame>> frame = take_frame(stream, kMaxStrangersFrameBytes);
    if (!frame.ok() || !frame->has_value()) return 0;
    const std::vector<std::byte> again = encode_frame(**frame);
    // Texts of errors are cut.
    if (std::holds_alternative<FailureFrame>(**frame)) continue;
    if (!std::equal(again.begin(), again.end(), before.begin())) std::abort();
  }
}
