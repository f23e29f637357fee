// What a plan says of the input of an encode.
#pragma once

#include <vector>

#include "core/encoder_item.h"
#include "scheduling/scheduler_outputs.h"

namespace transept {

// Sets what is read: ids, media (whose values are appended to `bulk`), sizes and consumers; of a remote item sizes and
// consumers alone. Leaves alone whose it is, and where its rows come from and go.
void plan_item(const EncoderItem& item, PlannedEncode& encode, std::vector<float>& bulk);

}  // namespace transept
