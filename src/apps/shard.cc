#include "apps/shard.h"

#include <charconv>
#include <string_view>

namespace transept {
namespace {

// Digits alone, up to kMaxCount.
std::optional<size_t> number_of(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value > static_cast<size_t>(Shard::kMaxCount)) return std::nullopt;
  return value;
}

}  // namespace

FlagSpec shard_flag(const char* group) {
  return {"shard", "I/N", "", "every N-th input alone, from the I-th on, counted from 0; JSON lines have its \"index\"",
          group};
}

StatusOr<std::optional<Shard>> shard_of(const Flags& flags) {
  const std::optional<std::string> text = flags.text("shard");
  if (!text.has_value()) return std::optional<Shard>();
  const auto error = [&](std::string_view why) {
    return invalid_argument(flags.name_of("shard"), " ", text->substr(0, 60), ": ", why);
  };
  const size_t slash = text->find('/');
  if (slash == std::string::npos) return error("expected I/N: part I, from 0, of N parts");
  const auto index = number_of(std::string_view(*text).substr(0, slash));
  const auto count = number_of(std::string_view(*text).substr(slash + 1));
  if (!index.has_value() || !count.has_value() || *count == 0) {
    return error(str_cat("expected I/N, both whole numbers, N from 1 to ", Shard::kMaxCount));
  }
  if (*index >= *count) {
    return error(str_cat("part ", *index, " of ", *count, " is none: parts are counted from 0 to ", *count - 1));
  }
  return std::optional<Shard>({.index = *index, .count = *count});
}

void keep_shard(const std::optional<Shard>& shard, std::vector<FoundFile>& inputs) {
  if (shard.has_value()) std::erase_if(inputs, [&](const FoundFile& input) { return !shard->has(input.index); });
}

}  // namespace transept
