#include "device_vulkan/kernels.h"

#include "device_vulkan/shaders.inc"

namespace transept {
namespace {

constexpr Use R = Use::kRead, W = Use::kWrite, RW = Use::kReadWrite;
constexpr Use kThreeToOne[] = {R, R, R, W};
constexpr Use kRmsNormUses[] = {R, R, W};
constexpr Use kProductUses[] = {R, R, R, R, W};
constexpr Use kProductInt8Uses[] = {R, R, R, R, R, R, R, W};
constexpr Use kOneToTwo[] = {R, W, W};
constexpr Use kNormalizeUses[] = {R, R, R, R, R, W};
constexpr Use kTwoToOne[] = {R, R, W};
constexpr Use kTwoIntoOne[] = {R, R, RW};
constexpr Use kInPlace[] = {RW};
constexpr Use kOneToOne[] = {R, W};
constexpr Use kLookUses[] = {R, R, RW, W};
constexpr Use kWriteKvUses[] = {R, R, R, W};
constexpr Use kMergeKvUses[] = {R, R, R, RW};  // rows share words
constexpr Use kAttentionUses[] = {R, R, R, R, R, R, W};

// Of products with a tail: inputs, weights, bias, y, those of the tail, arrivals. Before y int8 has two more.
constexpr Use kLayerNormTail[] = {R, R, R, RW, R, R, W, RW}, kRmsNormTail[] = {R, R, R, RW, R, W, RW};
constexpr Use kWriteKvTail[] = {R, R, R, RW, R, W, RW}, kMergeKvTail[] = {R, R, R, RW, R, RW, RW};
constexpr Use kGateTail[] = {R, R, R, RW, RW};
constexpr Use kLayerNormTailInt8[] = {R, R, R, R, R, R, RW, R, R, W, RW};
constexpr Use kRmsNormTailInt8[] = {R, R, R, R, R, R, RW, R, W, RW};
constexpr Use kWriteKvTailInt8[] = {R, R, R, R, R, R, RW, R, W, RW};
constexpr Use kMergeKvTailInt8[] = {R, R, R, R, R, R, RW, R, RW, RW};
constexpr Use kGateTailInt8[] = {R, R, R, R, R, R, RW, RW};
constexpr Use kLayerNormRound[] = {R, R, R, R, R, R, RW, R, R, RW, W, W, RW};
constexpr Use kRmsNormRound[] = {R, R, R, R, R, R, RW, R, RW, W, W, RW};
constexpr Use kPlainRound[] = {R, R, R, R, R, R, RW, W, W, RW};
constexpr Use kAttentionRoundUses[] = {R, R, R, R, R, R, RW, W, W, RW};
// Attention's; weights, bias, y, gain, shift, what is normalised, sums, arrivals.
constexpr Use kAttentionOutUses[] = {R, R, R, R, R, R, W, R, R, RW, R, R, W, RW, RW};

constexpr size_t words(size_t count) { return count * sizeof(uint32_t); }

}  // namespace

// The counts of ARGUMENTS in kernels/*.comp.
const KernelSpec kLayerNormKernel{"layer_norm", kThreeToOne, words(4)};
const KernelSpec kRmsNormKernel{"rms_norm", kRmsNormUses, words(4)};
const KernelSpec kRowSumsKernel{"row_sums", kTwoToOne, words(3)};
const KernelSpec kMeanKernel{"mean", kOneToOne, words(2)};
const KernelSpec kNormalizeKernel{"normalize", kNormalizeUses, words(4)};
const KernelSpec kDepthwiseConvKernel{"depthwise_conv", kThreeToOne, words(5)};
const KernelSpec kChannelProductsKernel{"channel_products", kTwoIntoOne, words(6)};
const KernelSpec kSoftmaxRowsKernel{"softmax_rows", kInPlace, words(3)};
const KernelSpec kMixChannelsKernel{"mix_channels", kTwoToOne, words(5)};
const KernelSpec kMeanOfRowsKernel{"mean_of_rows", kOneToOne, words(3)};
const KernelSpec kGatedActivationKernel{"gated_activation", kTwoToOne, words(5)};
const KernelSpec kAddRowsKernel{"add_rows", kTwoIntoOne, words(4)};
const KernelSpec kRopeKernel{"rope", kTwoIntoOne, words(5)};
const KernelSpec kTransposeKernel{"transpose", kOneToOne, words(3)};
const KernelSpec kChooseKernel{"choose", kOneToOne, words(2)};
const KernelSpec kLookAtScoresKernel{"look_at_scores", kLookUses, words(4)};
const KernelSpec kRoundRowsKernel{"round_rows", kOneToTwo, words(3)};
const KernelSpec kProductInt8Kernel{"product_int8", kProductInt8Uses, words(8)};
const KernelSpec kRoundHeadsKernel{"round_heads", kOneToOne, words(3)};
const KernelSpec kProductKernels[3] = {{"product_float32", kProductUses, words(8)},
                                       {"product_float16", kProductUses, words(8)},
                                       {"product_bfloat16", kProductUses, words(8)}};
const KernelSpec kWeightRangeKernel{"weight_range", kOneToOne, words(1)};
const KernelSpec kProductMatrixKernels[3] = {{"product_matrix_float16", kProductUses, words(8)},
                                             {"product_matrix_bfloat16", kProductUses, words(8)},
                                             {"product_matrix_int8", kProductInt8Uses, words(8)}};
// `of`: a product; `with`: what its uses are called, "" or Int8.
#define TAIL_SPECS(of, with)                                                 \
  {                                                                          \
    {"product_" of "_layer_norm", kLayerNormTail##with, words(9)},           \
        {"product_" of "_rms_norm", kRmsNormTail##with, words(9)},           \
        {"product_" of "_write_kv", kWriteKvTail##with, words(14)},          \
        {"product_" of "_write_kv_float16", kMergeKvTail##with, words(14)},  \
        {"product_" of "_write_kv_bfloat16", kMergeKvTail##with, words(14)}, \
        {"product_" of "_write_kv_int8", kMergeKvTail##with, words(14)}, {   \
      "product_" of "_gate", kGateTail##with, words(12)                      \
    }                                                                        \
  }
const KernelSpec kProductTailKernels[kNumProducts][kNumTails] = {
    TAIL_SPECS("float32", ),        TAIL_SPECS("float16", ),        TAIL_SPECS("bfloat16", ),
    TAIL_SPECS("int8", Int8),       TAIL_SPECS("matrix_float16", ), TAIL_SPECS("matrix_bfloat16", ),
    TAIL_SPECS("matrix_int8", Int8)};
#undef TAIL_SPECS
const KernelSpec kProductRoundKernels[kNumRoundedTails] = {
    {"product_int8_layer_norm_round", kLayerNormRound, words(10)},
    {"product_int8_rms_norm_round", kRmsNormRound, words(10)},
    {"product_int8_gate_round", kPlainRound, words(13)},
    {"product_int8_round", kPlainRound, words(8)}};
const KernelSpec kAttentionRoundKernels[4] = {{"attention_round", kAttentionRoundUses, words(22)},
                                              {"attention_float16_round", kAttentionRoundUses, words(22)},
                                              {"attention_bfloat16_round", kAttentionRoundUses, words(22)},
                                              {"attention_int8_round", kAttentionRoundUses, words(22)}};
const KernelSpec kGatherRowsKernels[3] = {{"gather_rows_float32", kTwoToOne, words(5)},
                                          {"gather_rows_float16", kTwoToOne, words(5)},
                                          {"gather_rows_bfloat16", kTwoToOne, words(5)}};
const KernelSpec kAddGatheredRowsKernels[3] = {{"add_gathered_rows_float32", kTwoIntoOne, words(5)},
                                               {"add_gathered_rows_float16", kTwoIntoOne, words(5)},
                                               {"add_gathered_rows_bfloat16", kTwoIntoOne, words(5)}};

const KernelSpec kWriteKvKernels[4] = {{"write_kv", kWriteKvUses, words(8)},
                                       {"write_kv_float16", kMergeKvUses, words(8)},
                                       {"write_kv_bfloat16", kMergeKvUses, words(8)},
                                       {"write_kv_int8", kMergeKvUses, words(8)}};
const KernelSpec kAttentionKernels[4] = {{"attention", kAttentionUses, words(21)},
                                         {"attention_float16", kAttentionUses, words(21)},
                                         {"attention_bfloat16", kAttentionUses, words(21)},
                                         {"attention_int8", kAttentionUses, words(21)}};
const KernelSpec kAttentionOutKernels[4][3] = {{{"attention_out_float32", kAttentionOutUses, words(27)},
                                                {"attention_out_float16", kAttentionOutUses, words(27)},
                                                {"attention_out_bfloat16", kAttentionOutUses, words(27)}},
                                               {{"attention_float16_out_float32", kAttentionOutUses, words(27)},
                                                {"attention_float16_out_float16", kAttentionOutUses, words(27)},
                                                {"attention_float16_out_bfloat16", kAttentionOutUses, words(27)}},
                                               {{"attention_bfloat16_out_float32", kAttentionOutUses, words(27)},
                                                {"attention_bfloat16_out_float16", kAttentionOutUses, words(27)},
                                                {"attention_bfloat16_out_bfloat16", kAttentionOutUses, words(27)}},
                                               {{"attention_int8_out_float32", kAttentionOutUses, words(27)},
                                                {"attention_int8_out_float16", kAttentionOutUses, words(27)},
                                                {"attention_int8_out_bfloat16", kAttentionOutUses, words(27)}}};
const KernelSpec kCaptureKernels[4] = {{"capture", kAttentionUses, words(24)},
                                       {"capture_float16", kAttentionUses, words(24)},
                                       {"capture_bfloat16", kAttentionUses, words(24)},
                                       {"capture_int8", kAttentionUses, words(24)}};

namespace {

#define SHADER(name, spec) \
  { &(spec), shader_##name, shader_##name##_reversed }
#define MATRICES(name, spec, tile) \
  { &(spec), shader_##name, shader_##name##_reversed, ShaderTile::tile }
#define MATRIX_TAILS(of, format, tile)                                                  \
  MATRICES(product_##of, kProductMatrixKernels[(format)-4], tile),                      \
      MATRICES(product_##of##_layer_norm, kProductTailKernels[format][0], tile),        \
      MATRICES(product_##of##_rms_norm, kProductTailKernels[format][1], tile),          \
      MATRICES(product_##of##_write_kv, kProductTailKernels[format][2], tile),          \
      MATRICES(product_##of##_write_kv_float16, kProductTailKernels[format][3], tile),  \
      MATRICES(product_##of##_write_kv_bfloat16, kProductTailKernels[format][4], tile), \
      MATRICES(product_##of##_write_kv_int8, kProductTailKernels[format][5], tile),     \
      MATRICES(product_##of##_gate, kProductTailKernels[format][6], tile)
#define TAILS(of, format)                                                       \
  SHADER(product_##of##_layer_norm, kProductTailKernels[format][0]),            \
      SHADER(product_##of##_rms_norm, kProductTailKernels[format][1]),          \
      SHADER(product_##of##_write_kv, kProductTailKernels[format][2]),          \
      SHADER(product_##of##_write_kv_float16, kProductTailKernels[format][3]),  \
      SHADER(product_##of##_write_kv_bfloat16, kProductTailKernels[format][4]), \
      SHADER(product_##of##_write_kv_int8, kProductTailKernels[format][5]),     \
      SHADER(product_##of##_gate, kProductTailKernels[format][6])
constexpr VulkanShader kShaders[] = {SHADER(layer_norm, kLayerNormKernel),
                                     SHADER(rms_norm, kRmsNormKernel),
                                     SHADER(row_sums, kRowSumsKernel),
                                     SHADER(mean, kMeanKernel),
                                     SHADER(normalize, kNormalizeKernel),
                                     SHADER(depthwise_conv, kDepthwiseConvKernel),
                                     SHADER(channel_products, kChannelProductsKernel),
                                     SHADER(softmax_rows, kSoftmaxRowsKernel),
                                     SHADER(mix_channels, kMixChannelsKernel),
                                     SHADER(mean_of_rows, kMeanOfRowsKernel),
                                     SHADER(gated_activation, kGatedActivationKernel),
                                     SHADER(add_rows, kAddRowsKernel),
                                     SHADER(rope, kRopeKernel),
                                     SHADER(transpose, kTransposeKernel),
                                     SHADER(write_kv, kWriteKvKernels[0]),
                                     SHADER(write_kv_float16, kWriteKvKernels[1]),
                                     SHADER(write_kv_bfloat16, kWriteKvKernels[2]),
                                     SHADER(write_kv_int8, kWriteKvKernels[3]),
                                     SHADER(attention, kAttentionKernels[0]),
                                     SHADER(attention_float16, kAttentionKernels[1]),
                                     SHADER(attention_bfloat16, kAttentionKernels[2]),
                                     SHADER(attention_int8, kAttentionKernels[3]),
                                     SHADER(attention_out_float32, kAttentionOutKernels[0][0]),
                                     SHADER(attention_out_float16, kAttentionOutKernels[0][1]),
                                     SHADER(attention_out_bfloat16, kAttentionOutKernels[0][2]),
                                     SHADER(attention_float16_out_float32, kAttentionOutKernels[1][0]),
                                     SHADER(attention_float16_out_float16, kAttentionOutKernels[1][1]),
                                     SHADER(attention_float16_out_bfloat16, kAttentionOutKernels[1][2]),
                                     SHADER(attention_bfloat16_out_float32, kAttentionOutKernels[2][0]),
                                     SHADER(attention_bfloat16_out_float16, kAttentionOutKernels[2][1]),
                                     SHADER(attention_bfloat16_out_bfloat16, kAttentionOutKernels[2][2]),
                                     SHADER(attention_int8_out_float32, kAttentionOutKernels[3][0]),
                                     SHADER(attention_int8_out_float16, kAttentionOutKernels[3][1]),
                                     SHADER(attention_int8_out_bfloat16, kAttentionOutKernels[3][2]),
                                     SHADER(attention_round, kAttentionRoundKernels[0]),
                                     SHADER(attention_float16_round, kAttentionRoundKernels[1]),
                                     SHADER(attention_bfloat16_round, kAttentionRoundKernels[2]),
                                     SHADER(attention_int8_round, kAttentionRoundKernels[3]),
                                     SHADER(product_int8_layer_norm_round, kProductRoundKernels[0]),
                                     SHADER(product_int8_rms_norm_round, kProductRoundKernels[1]),
                                     SHADER(product_int8_gate_round, kProductRoundKernels[2]),
                                     SHADER(product_int8_round, kProductRoundKernels[3]),
                                     SHADER(capture, kCaptureKernels[0]),
                                     SHADER(capture_float16, kCaptureKernels[1]),
                                     SHADER(capture_bfloat16, kCaptureKernels[2]),
                                     SHADER(capture_int8, kCaptureKernels[3]),
                                     SHADER(choose, kChooseKernel),
                                     SHADER(look_at_scores, kLookAtScoresKernel),
                                     SHADER(product_float32, kProductKernels[0]),
                                     SHADER(product_float16, kProductKernels[1]),
                                     SHADER(product_bfloat16, kProductKernels[2]),
                                     TAILS(float32, 0),
                                     TAILS(float16, 1),
                                     TAILS(bfloat16, 2),
                                     TAILS(int8, 3),
                                     MATRIX_TAILS(matrix_float16, 4, kHalf),
                                     MATRIX_TAILS(matrix_bfloat16, 5, kHalf),
                                     MATRIX_TAILS(matrix_int8, 6, kInt8),
                                     SHADER(weight_range, kWeightRangeKernel),
                                     SHADER(product_int8, kProductInt8Kernel),
                                     SHADER(round_rows, kRoundRowsKernel),
                                     SHADER(round_heads, kRoundHeadsKernel),
                                     SHADER(gather_rows_float32, kGatherRowsKernels[0]),
                                     SHADER(gather_rows_float16, kGatherRowsKernels[1]),
                                     SHADER(gather_rows_bfloat16, kGatherRowsKernels[2]),
                                     SHADER(add_gathered_rows_float32, kAddGatheredRowsKernels[0]),
                                     SHADER(add_gathered_rows_float16, kAddGatheredRowsKernels[1]),
                                     SHADER(add_gathered_rows_bfloat16, kAddGatheredRowsKernels[2])};
#undef TAILS
#undef MATRIX_TAILS
#undef MATRICES
#undef SHADER

}  // namespace

std::span<const VulkanShader> vulkan_shaders() { return kShaders; }

const VulkanShader* find_shader(std::string_view name) {
  for (const VulkanShader& shader : vulkan_shaders()) {
    if (shader.spec->name == name) return &shader;
  }
  return nullptr;
}

}  // namespace transept
