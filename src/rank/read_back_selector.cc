#include "rank/read_back_selector.h"

#include <algorithm>

#include "ops/cpu_device.h"
#include "sampling/select.h"

namespace transept {
namespace {

constexpr int64_t kRowsAtOnce = 32;  // of select_scored()

class ReadBackSelector final : public Selector {
 public:
  ReadBackSelector(ThreadPool& threads, Isa isa) : host_(threads, isa) {}

  void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
              SampleOutput& output) const override {
    const int64_t vocab = lm_head.vocab_size();
    const Arena::Scope scope(context.arena);
    const TensorView there = scores_there(context, lm_head, hidden.dim(0));
    const auto score = [&](int64_t first, int64_t last, const TensorView& out) {
      // Rows that only fill the step behind the last are scored, too: so it is the same for any number of others.
      const int64_t end = std::min(hidden.dim(0), first + kRowsAtOnce);
      const TensorView some = there.rows(0, end - first);
      lm_head.logits(context, hidden.rows(first, end), some);
      CHECK(out.stride[0] == vocab && last <= end);
      const auto row_bytes = static_cast<size_t>(vocab) * sizeof(float);
      context.device.memory().copy_out_some(out.raw, some.raw, static_cast<size_t>(last - first) * row_bytes,
                                            static_cast<size_t>(end - first) * row_bytes);
    };
    const int64_t overflows = scratch_->num_overflows();
    Context here{host_, *scratch_};
    select_scored(here, vocab, hidden.dim(0), score, rows, output);
    if (scratch_->num_overflows() > overflows) scratch_ = std::make_unique<Arena>(scratch_->high_water_bytes());
  }
  void dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) const override {
    const Arena::Scope scope(context.arena);
    const TensorView there = scores_there(context, lm_head, num_rows);
    lm_head.logits(context, hidden.rows(0, there.dim(0)), there);
  }

 private:
  static TensorView scores_there(Context& context, const LmHead& lm_head, int64_t num_rows) {
    return context.arena.tensor(DType::kFloat32, {std::min(num_rows, kRowsAtOnce), lm_head.vocab_size()});
  }

  mutable CpuDevice host_;
  // What the processor's own selection takes of its step memory: as much as the largest step so far.
  mutable std::unique_ptr<Arena> scratch_ = std::make_unique<Arena>(Arena::kAlignment);
};

}  // namespace

std::unique_ptr<const Selector> make_read_back_selector(ThreadPool& threads, Isa isa) {
  return std::make_unique<ReadBackSelector>(threads, isa);
}

}  // namespace transept
