#include "encoder_cache/broker.h"

namespace transept {

std::string_view name(InstanceRole role) {
  switch (role) {
    case InstanceRole::kEncode: return "encode";
    case InstanceRole::kDecode: return "decode";
    case InstanceRole::kBoth: return "both";
  }
  return "?";
}

}  // namespace transept
