#include "apps/epd_shape.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/cpus.h"
#include "base/quoted.h"
#include "startup/engine_ranges.h"

namespace transept {
namespace {

constexpr int32_t kMaxInstances = 64;  // of a role

Status shape_error(std::string_view text, std::string_view reason) {
  return invalid_argument("--epd ", printable(text), ": ", reason);
}

// Takes a number from the front of `text`; nullopt: there is none. One that is too large stays so.
std::optional<int32_t> take_number(std::string_view& text) {
  int32_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() ? number : INT32_MAX;
}

std::optional<int32_t> take_count(std::string_view& text, char letter) {
  const std::optional<int32_t> number = take_number(text);
  if (!number.has_value() || text.empty() || text.front() != letter) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

// The processors of one core first, then the second of each.
std::vector<int> interleaved(std::span<const std::vector<int>> cores) {
  std::vector<int> cpus;
  for (size_t rank = 0;; ++rank) {
    const size_t num_before = cpus.size();
    for (const std::vector<int>& core : cores) {
      if (rank < core.size()) cpus.push_back(core[rank]);
    }
    if (cpus.size() == num_before) return cpus;
  }
}

// Takes cores from the front, until their processors suffice. Empty: they do not.
std::vector<int> take_cores(std::span<const std::vector<int>>& cores, int32_t num_threads, bool is_one_each) {
  const auto wanted = static_cast<size_t>(num_threads);
  size_t num_cores = 0;
  for (size_t found = 0; found < wanted; ++num_cores) {
    if (num_cores == cores.size()) return {};
    found += is_one_each ? 1 : cores[num_cores].size();
  }
  std::vector<int> cpus = interleaved(cores.first(num_cores));
  cpus.resize(wanted);
  cores = cores.subspan(num_cores);
  return cpus;
}

bool pin_to_cores(std::span<EpdInstance> instances, std::span<const std::vector<int>> cores, bool is_one_each) {
  std::vector<std::string> lists;
  for (const EpdInstance& instance : instances) {
    const std::vector<int> cpus = take_cores(cores, instance.num_threads, is_one_each);
    if (cpus.empty()) return false;
    lists.push_back(format_cpu_list(cpus));
  }
  for (size_t i = 0; i < instances.size(); ++i) instances[i].cpus = lists[i];
  return true;
}

bool pin_to_processors(std::span<EpdInstance> instances, std::span<const std::vector<int>> cores) {
  std::vector<std::vector<int>> processors;
  for (const std::vector<int>& core : cores) {
    for (const int cpu : core) processors.push_back({cpu});
  }
  return pin_to_cores(instances, processors, true);
}

}  // namespace

std::string EpdShape::text() const { return str_cat(num_encode, "E", num_decode, "D"); }

StatusOr<EpdShape> parse_epd_shape(std::string_view text) {
  const std::string lower = ascii_lower(text);
  std::string_view rest = lower;
  const std::optional<int32_t> num_encode = take_count(rest, 'e');
  const std::optional<int32_t> num_decode = num_encode.has_value() ? take_count(rest, 'd') : std::nullopt;
  if (!num_decode.has_value() || !rest.empty()) {
    return shape_error(text, "expected numbers of encode and of decode instances, as in 1E1D or 2E1D");
  }
  if (*num_encode < 1 || *num_decode < 1) return shape_error(text, "at least one instance of each is needed");
  if (*num_encode > kMaxInstances || *num_decode > kMaxInstances) {
    return shape_error(text, str_cat("at most ", kMaxInstances, " instances of each"));
  }
  return EpdShape{*num_encode, *num_decode};
}

StatusOr<EpdThreads> parse_epd_threads(std::string_view text) {
  std::string_view rest = text;
  const auto is_count = [](const std::optional<int32_t>& number) {
    return number.has_value() && *number >= 1 && *number <= kMaxThreads;
  };
  const std::optional<int32_t> encode = take_number(rest);
  const bool has_comma = rest.starts_with(',');
  if (has_comma) rest.remove_prefix(1);
  const std::optional<int32_t> decode = take_number(rest);
  if (!has_comma || !rest.empty() || !is_count(encode) || !is_count(decode)) {
    return invalid_argument("--epd-threads ", printable(text),
                            ": expected threads of an encode and of a decode instance, as in 1,1; 1 to ", kMaxThreads);
  }
  return EpdThreads{*encode, *decode};
}

std::vector<EpdInstance> plan_epd(const EpdShape& shape, const std::optional<EpdThreads>& threads, int32_t num_cpus,
                                  std::span<const std::vector<int>> cores) {
  const int32_t share = std::max(num_cpus / shape.num_instances(), 1);
  const EpdThreads counts = threads.value_or(EpdThreads{share, share});
  std::vector<EpdInstance> instances;
  instances.reserve(static_cast<size_t>(shape.num_instances()));
  for (int32_t i = 0; i < shape.num_encode; ++i) {
    instances.push_back({str_cat("e", i), InstanceRole::kEncode, counts.encode, "none"});
  }
  for (int32_t i = 0; i < shape.num_decode; ++i) {
    instances.push_back({str_cat("p", i), InstanceRole::kDecode, counts.decode, "none"});
  }
  if (!pin_to_cores(instances, cores, true) && !pin_to_cores(instances, cores, false)) {
    pin_to_processors(instances, cores);
  }
  return instances;
}

}  // namespace transept
