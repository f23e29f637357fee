#include "sampling/selector.h"

#include "sampling/select.h"

namespace transept {
namespace {

class CpuSelector final : public Selector {
 public:
  void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
              SampleOutput& output) const override {
    transept::select(context, lm_head, hidden, rows, output);
  }
  void dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) const override {
    select_dry_run(context, lm_head, hidden, num_rows);
  }
};

}  // namespace

std::unique_ptr<const Selector> make_cpu_selector() { return std::make_unique<CpuSelector>(); }

}  // namespace transept
