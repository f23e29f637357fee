#include "layers/chosen_outputs.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {

ChosenOutputs::ChosenOutputs(const Linear& whole, int64_t num_parts) : whole_(whole) {
  const PackedMatrix& packed = whole.packed_;
  const auto pool = std::make_shared<PagePool>(static_cast<size_t>(num_parts) * part_bytes(whole));
  const auto count = static_cast<size_t>(num_parts);
  matrices_.reserve(count);
  const NibbleMeanings meanings = packed.nibble_meanings();
  for (size_t i = 0; i < count; ++i) matrices_.emplace_back(kPartColumns, packed.k(), packed.format(), pool, meanings);
  if (!whole.bias_.empty()) biases_.resize(count * static_cast<size_t>(kPartColumns));
  free_.reserve(count);
  for (size_t i = count; i > 0; --i) free_.push_back(static_cast<int32_t>(i - 1));
}

uint64_t ChosenOutputs::part_bytes(const Linear& whole) {
  const PackedMatrix& packed = whole.packed_;
  if (packed.is_nibbles()) {
    return static_cast<uint64_t>(round_up(packed.nibbles().bytes(kPartColumns / kPanelColumns), Arena::kAlignment));
  }
  const uint64_t bytes_of_panel = packed.bytes() / static_cast<uint64_t>(std::max<int64_t>(packed.num_panels(), 1));
  return round_up(static_cast<int64_t>(bytes_of_panel), Arena::kAlignment) * (kPartColumns / kPanelColumns);
}

int64_t ChosenOutputs::parts_for(int64_t num_outputs) { return ceil_div(num_outputs, kPartColumns); }

bool ChosenOutputs::gather(ThreadPool& threads, std::span<const int32_t> chosen, OutputCopies& copies) {
  CHECK(copies.empty());
  const auto count = static_cast<size_t>(parts_for(std::ssize(chosen)));
  if (count > free_.size()) return false;
  const std::span<const int32_t> taken = std::span(free_).last(count);
  const std::span<const float> bias(whole_.bias_.data(), whole_.bias_.size());
  for (const int32_t place : taken) {
    const auto i = static_cast<size_t>(place);
    copies.parts_.push_back({&matrices_[i], bias.empty() ? nullptr : &biases_[i * static_cast<size_t>(kPartColumns)]});
  }
  threads.parallel_for(static_cast<int64_t>(count), [&](int64_t task, int) {
    const size_t begin = static_cast<size_t>(task) * static_cast<size_t>(kPartColumns);
    const std::span<const int32_t> own =
        chosen.subspan(begin, std::min(chosen.size() - begin, static_cast<size_t>(kPartColumns)));
    const auto i = static_cast<size_t>(taken[static_cast<size_t>(task)]);
    matrices_[i].copy_rows(whole_.packed_, own);
    for (size_t j = 0; !bias.empty() && j < own.size(); ++j) {
      biases_[i * static_cast<size_t>(kPartColumns) + j] = bias[static_cast<size_t>(own[j])];
    }
  });
  free_.resize(free_.size() - count);
  return true;
}

void ChosenOutputs::release(OutputCopies& copies) {
  for (const GemmPart& part : copies.parts_) free_.push_back(static_cast<int32_t>(part.w - matrices_.data()));
  DCHECK(free_.size() <= matrices_.size());
  copies.parts_.clear();
}

void ChosenOutputs::forward(Context& context, const Linear& whole, std::span<const ChosenProduct> products) {
  // A list of fixed size: step memory cannot be written to in a dry run, which reads the products' rows.
  constexpr size_t kAtOnce = 64;
  std::array<PartedGemm, kAtOnce> parted;
  while (!products.empty()) {
    const std::span<const ChosenProduct> some = products.first(std::min(products.size(), kAtOnce));
    std::ranges::transform(some, parted.begin(), [](const ChosenProduct& product) {
      const OutputCopies* copies = product.outputs;
      return PartedGemm{product.x, copies == nullptr ? std::span<const GemmPart>() : copies->parts_, product.y};
    });
    gemm_parted(context, whole.packed_, std::span(parted).first(some.size()));
    products = products.subspan(some.size());
  }
}

}  // namespace transept
