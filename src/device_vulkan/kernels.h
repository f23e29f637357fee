// The kernels of this folder: what each declares (recording/recording.h), and its shader, which the build compiles from
// kernels/*.comp. The order of the operands is that of the shader's bindings. Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device_vulkan/matrix_kinds.h"
#include "recording/recording.h"

namespace transept {

// What a device must allow: lanes of a group, memory that they share, and bytes beside the operands: one an operand
// (where it begins in what is bound, in words) and the arguments.
constexpr uint32_t kMostLanes = 128;
constexpr uint32_t kSharedBytes = 16384;
constexpr uint32_t kPushBytes = kMaxOperands + kMaxArgumentBytes;
// Operands of the kernels that every device must run; those of more are fused ones (fuse_ops.h).
constexpr uint32_t kLeastOperands = 8;

// Of kernels of matrices (kernels/matrix.glsl): what they stage, or their sums, and what tails have.
constexpr uint32_t matrix_shared_bytes(const MatrixTile& tile) {
  const uint32_t staged = 4 * tile.m * tile.k + 64 * tile.k, sums = 128 * tile.m;
  return (staged > sums ? staged : sums) * 4 + 8192;
}

extern const KernelSpec kLayerNormKernel, kRmsNormKernel, kRowSumsKernel, kMeanKernel, kNormalizeKernel,
    kDepthwiseConvKernel, kChannelProductsKernel, kSoftmaxRowsKernel, kMixChannelsKernel, kMeanOfRowsKernel,
    kGatedActivationKernel, kAddRowsKernel, kRopeKernel, kTransposeKernel, kChooseKernel, kRoundRowsKernel,
    kProductInt8Kernel, kRoundHeadsKernel, kLookAtScoresKernel, kWeightRangeKernel;
// By format: float32, float16, bfloat16.
extern const KernelSpec kProductKernels[3], kGatherRowsKernels[3], kAddGatheredRowsKernels[3];
// By matrix units: float16, bfloat16, int8. They have the operands and arguments of the kernels without.
extern const KernelSpec kProductMatrixKernels[3];
// Products with what is behind them (kernels/tail.glsl), by format: those of kProductKernels, int8, those of
// kProductMatrixKernels. A tail:
enum class ProductTail : uint8_t {
  kLayerNorm,
  kRmsNorm,
  kWriteKv,
  kWriteKvFloat16,
  kWriteKvBFloat16,
  kWriteKvInt8,
  kGate
};
constexpr size_t kNumTails = 7;
constexpr size_t kNumProducts = 7;
extern const KernelSpec kProductTailKernels[kNumProducts][kNumTails];
// Of int8, with the rounding of what the tail makes behind it (kernels/round.glsl); a tail that is none, last.
enum class RoundedTail : uint8_t { kLayerNorm, kRmsNorm, kGate, kNone };
constexpr size_t kNumRoundedTails = 4;
extern const KernelSpec kProductRoundKernels[kNumRoundedTails];
// Attention with the rounding of what it gives, by the type of KV.
extern const KernelSpec kAttentionRoundKernels[4];
// Attention with the product behind it and the norm of that, by the type of KV and the product's format.
extern const KernelSpec kAttentionOutKernels[4][3];
// By the type of KV in blocks (KvType, attention/kv_format.h).
extern const KernelSpec kWriteKvKernels[4], kAttentionKernels[4], kCaptureKernels[4];

// Whose tile a kernel's matrices have.
enum class ShaderTile : uint8_t { kNone, kHalf, kInt8 };

struct VulkanShader {
  const KernelSpec* spec;
  std::span<const uint32_t> words;      // SPIR-V
  std::span<const uint32_t> reversed;   // the same with its lanes in reverse (kernels/dialect.glsl)
  ShaderTile tile = ShaderTile::kNone;  // of others the words are not what devices take (matrix_words.h)
};

// All of them.
std::span<const VulkanShader> vulkan_shaders();

// By its name: so a test may give a kernel another declaration. Null: there is none.
const VulkanShader* find_shader(std::string_view name);

}  // namespace transept
