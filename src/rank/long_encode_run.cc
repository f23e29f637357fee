#include "rank/long_encode_run.h"

#include "base/check.h"

namespace transept {

bool LongEncodeRun::run(const LongEncode& plan, std::span<const float> bulk, int64_t num_tasks) {
  if (!plan.runs) return false;
  if (plan.begins) {
    group_id_ = plan.encode.group_id;
    item_ = plan.encode.item;
    inputs_.clear();
    values_.assign(bulk.begin(), bulk.end());
    inputs_.add(plan.encode, values_);
    inputs_.finish();
    call_.begin([this] { encode_(inputs_); });
  }
  CHECK(call_.is_under_way() && group_id_ == plan.encode.group_id && item_ == plan.encode.item, "no encode of group ",
        plan.encode.group_id.value(), " is under way");
  return call_.run(plan.to_the_end ? SlicedCall::kToTheEnd : num_tasks);
}

}  // namespace transept
