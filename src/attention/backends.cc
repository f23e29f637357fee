#include "attention/backends.h"

#include "attention/cpu.h"
#include "attention/reference.h"

namespace transept {

std::span<const std::string_view> attention_backend_names() {
  static constexpr std::string_view kNames[] = {"cpu", "reference"};
  return kNames;
}

StatusOr<std::unique_ptr<AttentionBackend>> make_attention_backend(std::string_view name) {
  if (name == "auto" || name == "cpu") return std::make_unique<CpuBackend>();
  if (name == "reference") return std::make_unique<ReferenceBackend>();
  return invalid_argument("--attention-backend ", name, ": unknown; one of auto, ",
                          join({attention_backend_names().begin(), attention_backend_names().end()}, ", "));
}

}  // namespace transept
