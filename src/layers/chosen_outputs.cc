#include "layers/chosen_outputs.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {

ChosenOutputs::ChosenOutputs(const LmHead& whole, int64_t num_parts) : whole_(whole) {
  const PackedMatrix& packed = whole.linear().packed();
  const auto pool = std::make_shared<PagePool>(static_cast<size_t>(num_parts) * part_bytes(whole));
  const auto count = static_cast<size_t>(num_parts);
  matrices_.reserve(count);
  for (size_t i = 0; i < count; ++i) matrices_.emplace_back(kPartColumns, packed.k(), packed.format(), pool);
  if (!whole.linear().bias().empty()) biases_.resize(count * static_cast<size_t>(kPartColumns));
  free_.reserve(count);
  for (size_t i = count; i > 0; --i) free_.push_back(static_cast<int32_t>(i - 1));
}

uint64_t ChosenOutputs::part_bytes(const LmHead& whole) {
  const PackedMatrix& packed = whole.linear().packed();
  const uint64_t bytes_of_panel = packed.bytes() / static_cast<uint64_t>(std::max<int64_t>(packed.num_panels(), 1));
  return round_up(static_cast<int64_t>(bytes_of_panel), Arena::kAlignment) * (kPartColumns / kPanelColumns);
}

int64_t ChosenOutputs::parts_for(int64_t num_ids) { return ceil_div(num_ids, kPartColumns); }

bool ChosenOutputs::gather(ThreadPool& threads, std::span<const int32_t> ids, std::vector<GemmPart>& parts) {
  CHECK(parts.empty());
  const auto count = static_cast<size_t>(parts_for(std::ssize(ids)));
  if (count > free_.size()) return false;
  const std::span<const int32_t> taken = std::span(free_).last(count);
  const std::span<const float> bias = whole_.linear().bias();
  for (const int32_t place : taken) {
    const auto i = static_cast<size_t>(place);
    parts.push_back({&matrices_[i], bias.empty() ? nullptr : &biases_[i * static_cast<size_t>(kPartColumns)]});
  }
  threads.parallel_for(static_cast<int64_t>(count), [&](int64_t task, int) {
    const size_t begin = static_cast<size_t>(task) * static_cast<size_t>(kPartColumns);
    const std::span<const int32_t> own =
        ids.subspan(begin, std::min(ids.size() - begin, static_cast<size_t>(kPartColumns)));
    const auto i = static_cast<size_t>(taken[static_cast<size_t>(task)]);
    matrices_[i].copy_rows(whole_.linear().packed(), own);
    for (size_t j = 0; !bias.empty() && j < own.size(); ++j) {
      biases_[i * static_cast<size_t>(kPartColumns) + j] = bias[static_cast<size_t>(own[j])];
    }
  });
  free_.resize(free_.size() - count);
  return true;
}

void ChosenOutputs::release(std::vector<GemmPart>& parts) {
  for (const GemmPart& part : parts) free_.push_back(static_cast<int32_t>(part.w - matrices_.data()));
  DCHECK(free_.size() <= matrices_.size());
  parts.clear();
}

}  // namespace transept
