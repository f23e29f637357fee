#include "attention/cpu_kernel.h"
#include "ops/vec_generic.h"

namespace transept::generic {

void attend(const AttentionTask& task) { attend_rows<Vec>(task); }

}  // namespace transept::generic
