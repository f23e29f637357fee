// Copies the rows of encoded items to the host, for a plan that asks for them. A function; the engine thread calls it.
#pragma once

#include <span>
#include <vector>

#include "rank/encode_inputs.h"
#include "rank/step_plan.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace transept {

// Appends the rows of each item whose group is in `wanted`, in the order of the batch. rows: [positions, width] of
// `inputs`, in `memory`.
void capture_encodes(std::span<const GroupId> wanted, const EncodeInputs& inputs, const TensorView& rows,
                     DeviceMemory& memory, std::vector<CapturedEncode>& captured);

}  // namespace transept
