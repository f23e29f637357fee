#include "rank/model_fingerprint.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace transept {
namespace {

constexpr size_t kSampleBytes = size_t{64} << 10;
constexpr size_t kMaxPreprocessorBytes = size_t{8} << 20;
constexpr std::string_view kPreprocessor = "preprocessor_config.json";

// Keys of config.json that change with the program that writes it, and nothing that is computed.
constexpr std::string_view kOfTheWriter[] = {"_name_or_path", "transformers_version", "torch_dtype", "dtype",
                                             "architectures"};

// Members in order of their keys: programs write them in any order.
void add_json(const Json& value, bool is_config, DigestBuilder& digest) {
  digest.add_number(static_cast<int64_t>(value.kind()));
  if (value.is_object()) {
    std::vector<const std::pair<std::string, Json>*> members;
    for (const auto& member : value.as_object()) {
      if (!is_config || std::ranges::find(kOfTheWriter, member.first) == std::end(kOfTheWriter)) {
        members.push_back(&member);
      }
    }
    std::ranges::sort(members, {}, [](const auto* member) -> const std::string& { return member->first; });
    digest.add_number(std::ssize(members));
    for (const auto* member : members) {
      digest.add_text(member->first);
      add_json(member->second, false, digest);
    }
  } else if (value.is_array()) {
    digest.add_number(std::ssize(value.as_array()));
    for (const Json& item : value.as_array()) add_json(item, false, digest);
  } else {
    digest.add_text(value.dump());
  }
}

std::vector<std::string_view> segments_of(std::string_view name) {
  std::vector<std::string_view> segments;
  while (true) {
    const size_t dot = name.find('.');
    segments.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return segments;
    name.remove_prefix(dot + 1);
  }
}

// "decoder.x", "model.decoder.x", or an output layer.
bool is_decoders(std::string_view name) {
  const std::vector<std::string_view> segments = segments_of(name);
  const auto is_one = [](std::string_view segment) {
    return segment == "decoder" || segment == "lm_head" || segment == "proj_out" || segment == "final_logits_bias";
  };
  return std::any_of(segments.begin(), segments.begin() + std::min<std::ptrdiff_t>(2, std::ssize(segments)), is_one);
}

ContentDigest digest_of(const WeightMap::Sample& sample) {
  DigestBuilder digest;
  digest.add_text(sample.dtype);
  digest.add_number(std::ssize(sample.shape));
  for (const int64_t dim : sample.shape) digest.add_number(dim);
  for (const std::string_view segment : segments_of(sample.name)) {
    const bool is_number = !segment.empty() && segment.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number) digest.add_text(segment);
  }
  digest.add_number(std::ssize(sample.bytes));
  digest.add_bytes(sample.bytes);
  return digest.finish();
}

Status add_preprocessor(const ModelFolder& folder, DigestBuilder& digest) {
  const StatusOr<std::string> text = folder.read(kPreprocessor, kMaxPreprocessorBytes);
  digest.add_number(text.ok() ? 1 : 0);
  if (absl::IsNotFound(text.status())) return ok_status();
  RETURN_IF_ERROR(text.status());
  const StatusOr<Json> json = Json::parse(*text);
  if (!json.ok()) return with_prefix(json.status(), folder.name_of(kPreprocessor));
  add_json(*json, false, digest);
  return ok_status();
}

}  // namespace

StatusOr<ContentDigest> model_fingerprint(const ModelConfig& config, const WeightMap& weights,
                                          const FingerprintOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<ContentDigest> one, model_fingerprints(config, weights, {&options, 1}));
  return one.front();
}

StatusOr<std::vector<ContentDigest>> model_fingerprints(const ModelConfig& config, const WeightMap& weights,
                                                        std::span<const FingerprintOptions> options) {
  const auto less = [](const ContentDigest& a, const ContentDigest& b) { return a.bytes < b.bytes; };
  std::set<ContentDigest, decltype(less)> samples(less);
  weights.visit_samples(
      kSampleBytes, [](std::string_view name) { return !is_decoders(name); },
      [&](const WeightMap::Sample& sample) { samples.insert(digest_of(sample)); });
  std::vector<ContentDigest> fingerprints;
  for (const FingerprintOptions& one : options) {
    DigestBuilder digest;
    digest.add_number(one.wire_version);
    digest.add_text(one.weight_storage.has_value() ? weight_format_name(*one.weight_storage) : "");
    add_json(config.raw, true, digest);
    RETURN_IF_ERROR(add_preprocessor(config.folder, digest));
    digest.add_number(std::ssize(samples));
    for (const ContentDigest& sample : samples) digest.add_bytes(sample.bytes);
    fingerprints.push_back(digest.finish());
  }
  return fingerprints;
}

ContentDigest with_transfer_dtype(const ContentDigest& fingerprint, DType dtype) {
  DigestBuilder digest;
  digest.add_bytes(fingerprint.bytes);
  digest.add_text(dtype_name(dtype));
  return digest.finish();
}

}  // namespace transept
