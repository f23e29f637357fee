// Any text as the YAML that Marian writes: parsing must end, and a value is a scalar or a list.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "foreign/marian_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto map = transept::parse_yaml_map({reinterpret_cast<const char*>(data), size});
  if (!map.ok()) return 0;
  for (const auto& [key, value] : *map) {
    if (!value.is_list && !value.list.empty()) std::abort();
    if (value.is_list && !value.text.empty()) std::abort();
    if (transept::find_yaml(*map, key) == nullptr) std::abort();
  }
  return 0;
}
