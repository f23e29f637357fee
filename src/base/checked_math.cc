#include "base/checked_math.h"

#include <charconv>
#include <string>

#include "base/ascii.h"

namespace transept {

StatusOr<uint64_t> parse_bytes(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument("\"", text, "\" is not a size; write for example 512MiB, 4GiB or a number of bytes");
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return refuse();
  const std::string unit = ascii_lower(trim(text.substr(static_cast<size_t>(end - text.data()))));
  double scale = 1;
  if (!unit.empty() && unit != "b") {
    constexpr std::string_view kPrefixes = "kmgt";
    const size_t power = kPrefixes.find(unit[0]);
    if (power == std::string_view::npos) return refuse();
    const std::string_view rest = std::string_view(unit).substr(1);
    if (!rest.empty() && rest != "ib" && rest != "b") return refuse();
    for (size_t i = 0; i <= power; ++i) scale *= rest == "b" ? 1000 : 1024;
  }
  const double bytes = number * scale;
  if (!(bytes < 9.0e18)) return invalid_argument("\"", text, "\" is more than the 7.8 EiB that can be counted");
  return static_cast<uint64_t>(bytes);
}

}  // namespace transept
