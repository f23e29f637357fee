#include "attention/cpu_kernel.h"
#include "ops/vec_avx2.h"

namespace transept::avx2 {

void attend(const AttentionTask& task) { attend_rows<Vec>(task); }

}  // namespace transept::avx2
