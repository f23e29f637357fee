#include "attention/backend.h"

#include "attention/cpu.h"
#include "attention/reference.h"

namespace transept {

StatusOr<std::unique_ptr<AttentionBackend>> make_attention_backend(std::string_view name) {
  if (name == "auto" || name == "cpu") return std::make_unique<CpuBackend>();
  if (name == "reference") return std::make_unique<ReferenceBackend>();
  return invalid_argument("attention backend ", name, ": unknown; one of auto, reference, cpu");
}

}  // namespace transept
