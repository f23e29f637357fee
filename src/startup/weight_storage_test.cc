// Proves what the flags of storage mean together, above all what --quantization auto chooses, and that it says so.
#include "startup/weight_storage.h"
#include "layers/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

const StoredWeights kFloats = {kFloat32Format};

EngineConfig flags(std::string quantization, std::string dtype = "auto", std::string kv = "auto") {
  EngineConfig config;
  config.quantization = std::move(quantization);
  config.dtype = std::move(dtype);
  config.kv_cache_dtype = std::move(kv);
  return config;
}

// "float16 int8 or float16": weights, then keys and values, and those of narrow models where they differ.
std::string chosen(const EngineConfig& config, const StoredWeights& stored = kFloats, Isa isa = Isa::kAvx2) {
  const StatusOr<StorageTypes> types = storage_types(config, isa, stored, kLeastInt8Width);
  if (!types.ok()) return error_message(types.status());
  const StatusOr<StorageTypes> narrow = storage_types(config, isa, stored, kLeastInt8Width - 1);
  EXPECT_EQ(narrow->weights, types->weights);
  EXPECT_EQ(narrow->as_packed, types->as_packed);
  return str_cat(types->weights.has_value() ? weight_format_name(*types->weights) : "stored",
                 types->as_packed ? " as packed " : " ", dtype_name(types->kv),
                 narrow->kv != types->kv ? str_cat(" or ", dtype_name(narrow->kv)) : std::string());
}

std::string report(const EngineConfig& config, const StoredWeights& stored = kFloats, Isa isa = Isa::kAvx2,
                   int64_t width = kLeastInt8Width) {
  return storage_types(config, isa, stored, width)->report;
}

TEST(StorageTypes, NamesMeanWhatTheySay) {
  EXPECT_EQ(chosen(flags("none")), "stored float32");
  EXPECT_EQ(chosen(flags("none", "bfloat16", "int8")), "bfloat16 int8");
  EXPECT_EQ(chosen(flags("int8")), "int8 float32");
  EXPECT_EQ(chosen(flags("int8", "float16", "float16")), "int8 float16") << "int8 goes before";
  EXPECT_EQ(chosen(flags("int4")), "int4-g32 float32");
  EXPECT_EQ(report(flags("int8", "float16")), "");
  EXPECT_THAT(chosen(flags("auto", "auto", "int3")), HasSubstr("--kv-cache-dtype int3"));
}

TEST(StorageTypes, AutoHalvesFloatsOnEveryLevelThatWidensThemFast) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Fp16, Isa::kAmx}) {
    EXPECT_EQ(chosen(flags("auto"), kFloats, isa), "float16 int8 or float16") << isa_name(isa);
  }
  EXPECT_THAT(report(flags("auto")), HasSubstr("weights in float16, the fastest type that passes every gate"));
  EXPECT_THAT(report(flags("auto")), HasSubstr("KV cache in int8;"));
  EXPECT_THAT(report(flags("auto"), kFloats, Isa::kAvx2, 160),
              HasSubstr("KV cache in float16 (a model 160 wide: in int8 from 192);"));
  EXPECT_EQ(chosen(flags("auto"), kFloats, Isa::kGeneric), "stored float32");
  EXPECT_THAT(report(flags("auto"), kFloats, Isa::kGeneric),
              HasSubstr("float32: generic kernels widen 16 bits slowly"));
}

TEST(StorageTypes, AutoRoundsNothingThatHas16BitsOrIsPacked) {
  EXPECT_EQ(chosen(flags("auto"), {kBFloat16Format}), "stored int8 or float16");
  EXPECT_EQ(chosen(flags("auto"), {kFloat16Format}), "stored int8 or float16");
  EXPECT_THAT(report(flags("auto"), {kBFloat16Format}), HasSubstr("the checkpoint's own bfloat16"));
  const StoredWeights packed = {.format = kFloat32Format, .is_packed = true};
  EXPECT_EQ(chosen(flags("auto"), packed), "stored as packed int8 or float16");
  EXPECT_THAT(report(flags("auto"), packed), HasSubstr("as the packed folder has them"));
}

// A packed folder stays as it is unless another type is requested by name.
TEST(StorageTypes, PackedMatricesStayUnlessAnotherTypeIsRequested) {
  const StoredWeights packed = {.format = kFloat32Format, .is_packed = true, .packed_as = kInt8Format};
  EXPECT_EQ(chosen(flags("none"), packed), "int8 as packed float32");
  EXPECT_EQ(chosen(flags("auto"), packed), "int8 as packed int8 or float16");
  EXPECT_EQ(chosen(flags("int8"), packed), "int8 as packed float32");
  EXPECT_EQ(chosen(flags("int4"), packed), "int4-g32 float32");
  EXPECT_EQ(chosen(flags("none", "float16"), packed), "float16 float32");
  EngineConfig given = flags("none");
  given.quantization_given = true;
  EXPECT_EQ(chosen(given, packed), "stored float32");
  EXPECT_EQ(chosen(given, {.format = kFloat32Format, .is_packed = true}), "stored as packed float32");
}

TEST(StorageTypes, FlagsThatMeanAStorageNameIt) {
  for (const char* name : {"int8", "int4"}) {
    EngineConfig config = flags("none");
    set_storage_flags(storage_types(flags(name), Isa::kAvx2, kFloats, kLeastInt8Width)->weights, config);
    EXPECT_EQ(config.quantization, name);
    EXPECT_EQ(config.dtype, "auto");
  }
}

TEST(StorageTypes, AutoLeavesWhatOtherFlagsName) {
  EXPECT_EQ(chosen(flags("auto", "float32", "float32")), "float32 float32");
  EXPECT_EQ(chosen(flags("auto", "bfloat16")), "bfloat16 int8 or float16");
  EXPECT_EQ(chosen(flags("auto", "auto", "int8")), "float16 int8");
  EXPECT_THAT(report(flags("auto", "bfloat16")), HasSubstr("weights in bfloat16, as --dtype says"));
  EXPECT_THAT(report(flags("auto", "auto", "int8")), HasSubstr("KV cache in int8, as --kv-cache-dtype says"));
}

PackedLayer layer(int64_t n, int64_t k, WeightFormat format, size_t bytes_of_16_weights) {
  PackedLayer layer{.format = {.weights = format}, .n = n, .k = k};
  layer.bytes = static_cast<size_t>(n * k) * bytes_of_16_weights / 16;
  return layer;
}

TEST(FasterStorage, SaysWhatIsReadOfTheBytesByName) {
  // 8 bytes an output of 400 inputs, and 4 a group of 32.
  EXPECT_THAT(faster_storage_note({layer(1000, 400, kFloat32Format, 64)}, Isa::kAvx2),
              HasSubstr("--quantization int8 reads 26 % of these bytes of weights a step, int4 16 %;"));
  EXPECT_THAT(faster_storage_note({layer(1000, 400, kFloat16Format, 32)}, Isa::kAmx),
              HasSubstr("int8 reads 51 % of these bytes of weights a step, int4 31 %;"));
  // Half of the bytes stay: (0.255 + 1) / 2.
  EXPECT_THAT(
      faster_storage_note({layer(1000, 400, kFloat32Format, 64), layer(4000, 100, kFloat32Format, 64)}, Isa::kAvx2),
      HasSubstr("int8 reads 63 % of"));
}

TEST(FasterStorage, SaysNothingWhereThereIsLittleToGain) {
  EXPECT_EQ(faster_storage_note({layer(1000, 400, kInt8Format, 16)}, Isa::kAvx2), "");
  EXPECT_EQ(faster_storage_note({layer(1000, 400, kInt4Format, 10)}, Isa::kAvx2), "");
  EXPECT_EQ(faster_storage_note({layer(1000, 191, kFloat32Format, 64)}, Isa::kAvx2), "") << "narrow";
  EXPECT_EQ(faster_storage_note({layer(1000, 400, kFloat32Format, 64)}, Isa::kGeneric), "");
  EXPECT_EQ(faster_storage_note({}, Isa::kAvx2), "");
}

}  // namespace
}  // namespace transept
