#include "attention/cpu_kernel.h"
#include "ops/vec_avx512.h"

namespace transept::avx512 {

void attend(const AttentionTask& task) { attend_rows<Vec>(task); }

}  // namespace transept::avx512
