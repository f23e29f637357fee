// Any bytes as a plan: an error, or a plan whose bytes are these and which a rank takes or refuses.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "rank/check_plan.h"
#include "rank/plan_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  static StepPlan plan;  // recycled, as a rank's is
  static std::vector<std::byte> again;
  const auto bytes = std::as_bytes(std::span(data, size));
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
