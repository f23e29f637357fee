#include "encoder_cache/ec_types.h"

namespace transept {

uint64_t ec_payload_bytes(const EcMeta& meta) {
  return static_cast<uint64_t>(meta.num_positions) * static_cast<uint64_t>(meta.width) * dtype_bytes(meta.dtype);
}

}  // namespace transept
