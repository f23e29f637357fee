#include "attention/cpu_int8_kernel.h"
#include "attention/kv_vec_avx512_vnni.h"

namespace transept::avx512_vnni {

void attend_int8(const AttentionTask& task) { attend_rows<KvVec, Int8Tile<KvVec>>(task); }

}  // namespace transept::avx512_vnni
