#include "rank/capture_encodes.h"

#include <algorithm>

namespace transept {

void capture_encodes(std::span<const GroupId> wanted, const EncodeInputs& inputs, const TensorView& rows,
                     DeviceMemory& memory, std::vector<CapturedEncode>& captured) {
  if (wanted.empty()) return;
  const AttentionMetadata& attention = inputs.batch().attention;
  for (size_t i = 0; i < inputs.groups().size(); ++i) {
    const GroupId group = inputs.groups()[i];
    if (std::ranges::find(wanted, group) == wanted.end()) continue;
    const TensorView own = rows.rows(attention.query_start_loc[i], attention.query_start_loc[i + 1]);
    std::vector<float> values(static_cast<size_t>(own.num_elements()));
    memory.copy_out(values.data(), own.f32(), values.size() * sizeof(float));
    captured.push_back({group, std::move(values)});
  }
}

}  // namespace transept
