#include "startup/tensors_digest.h"

namespace transept {

TensorsDigest digest_of_tensors(const WeightMap& weights, FunctionRef<bool(std::string_view)> wanted) {
  constexpr size_t kSampleBytes = 4096;
  TensorsDigest tensors;
  DigestBuilder all;
  weights.visit_samples(kSampleBytes, wanted, [&](const WeightMap::Sample& sample) {
    DigestBuilder digest;
    digest.add_text(sample.name);
    digest.add_text(sample.dtype);
    digest.add_number(std::ssize(sample.shape));
    for (const int64_t dim : sample.shape) digest.add_number(dim);
    digest.add_bytes(sample.bytes);
    all.add_bytes(digest.finish().bytes);
    ++tensors.count;
  });
  tensors.digest = all.finish();
  return tensors;
}

ContentDigest digest_of_checkpoint(const ModelConfig& config, const WeightMap& weights) {
  DigestBuilder digest;
  digest.add_text(config.raw.dump());
  digest.add_bytes(digest_of_tensors(weights, [](std::string_view) { return true; }).digest.bytes);
  return digest.finish();
}

}  // namespace transept
