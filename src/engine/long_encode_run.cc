#include "engine/long_encode_run.h"

#include "base/check.h"

namespace transept {

bool LongEncodeRun::run(const LongEncode& plan, double seconds) {
  if (!plan.runs) return false;
  if (plan.begins) {
    group_id_ = plan.group_id;
    inputs_.clear();
    inputs_.add(plan.input, plan.cross_block_table);
    inputs_.finish();
    call_.begin([this] { encode_(inputs_); });
  }
  CHECK(call_.is_under_way() && group_id_ == plan.group_id, "no encode of group ", plan.group_id.value(),
        " is under way");
  if (plan.to_the_end) return call_.run(SlicedCall::kToTheEnd);
  return call_.run(std::chrono::duration_cast<SlicedCall::Duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace transept
