// Any bytes as a plan: an error, or a plan whose bytes are these and which a rank takes or refuses. Bytes that begin
// with 1 say what is changed in the bytes of a plan of theirs, since few random ones pass its counts.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "rank/check_plan.h"
#include "rank/plan_codec.h"
#include "rank/step_plan_testing.h"

namespace {

// 1, a seed, then (position, position, value) for each change.
std::vector<std::byte> changed_plan(std::span<const uint8_t> data) {
  using namespace transept;
  std::vector<std::byte> bytes;
  const uint8_t seed = data[1];
  encode_plan(
      seed < 8 ? transept::testing::decode_plan_of(1 + seed, 2, 3) : transept::testing::RandomPlans(seed).next(),
      bytes);
  for (size_t i = 2; i + 2 < data.size() && !bytes.empty(); i += 3) {
    bytes[(data[i] << 8 | data[i + 1]) % bytes.size()] = std::byte{data[i + 2]};
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  static StepPlan plan;  // recycled, as a rank's is
  static std::vector<std::byte> again;
  const bool is_changed = size > 1 && data[0] == 1;
  const std::vector<std::byte> changed = is_changed ? changed_plan({data, size}) : std::vector<std::byte>();
  const auto bytes = is_changed ? std::span(changed) : std::as_bytes(std::span(data, size));
  if (!decode_plan(bytes, plan).ok()) return 0;
  encode_plan(plan, again);
  if (!std::ranges::equal(again, bytes)) std::abort();
  ExecutorInfo info;
  info.spec.vocab_size = 1000;
  info.max_encoder_len = info.max_decoder_len = info.max_num_encoder_tokens = info.max_num_batched_tokens = 1 << 12;
  info.max_num_seqs = 64;
  info.block_size = 16;
  info.spec.kv = {{KvKind::kSelf}, {KvKind::kCross}, {KvKind::kSelf}, {KvKind::kEncoderRows}, {KvKind::kCross}};
  info.tables = {{TableOwner::kSequence, 16},
                 {TableOwner::kGroup, 16},
                 {TableOwner::kSequence, 64},
                 {TableOwner::kItem, 32},
                 {TableOwner::kGroup, 64}};
  info.num_device_blocks = info.num_host_blocks = 1 << 12;
  (void)check_plan(plan, info);
  info.spec.part = ModelPart::kDecoder;
  info.spec.d_model = 1;
  info.rows_spec = 3;
  info.max_num_injected_tokens = 1 << 12;
  (void)check_plan(plan, info);
  info.spec.part = ModelPart::kEncoder;
  info.spec.kv.clear();
  info.tables.clear();
  info.rows_spec = -1;
  (void)check_plan(plan, info);
  return 0;
}
