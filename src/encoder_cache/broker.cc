#include "encoder_cache/broker.h"

#include <algorithm>

#include "base/strings.h"

namespace transept {

std::string_view name(InstanceRole role) {
  switch (role) {
    case InstanceRole::kEncode: return "encode";
    case InstanceRole::kDecode: return "decode";
    case InstanceRole::kBoth: return "both";
  }
  return "?";
}

std::string explain_other_secret(const InstanceRecord& peer, std::string_view own_mark) {
  if (peer.secret_mark == own_mark) return "";
  if (own_mark.empty()) return str_cat(peer.id.name, " has an --ec-secret-file, and this instance has none");
  if (peer.secret_mark.empty()) return str_cat(peer.id.name, " has no --ec-secret-file, and this instance has one");
  return str_cat(peer.id.name, " has another --ec-secret-file than this instance");
}

ModelFingerprint queue_of(const ModelFingerprint& model, const EcSecret* secret) {
  if (secret == nullptr) return model;
  constexpr std::string_view kPurpose = "transept queue\n";  // no frame and no call begins so
  ModelFingerprint queue;
  auto out = queue.bytes.begin();
  for (const std::string_view half : {"1", "2"}) {
    const EcMac code =
        secret->mac({std::as_bytes(std::span(kPurpose)), std::as_bytes(std::span(half)), std::span(model.bytes)});
    out = std::ranges::copy(code, out).out;
  }
  return queue;
}

}  // namespace transept
