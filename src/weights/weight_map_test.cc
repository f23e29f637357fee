// Opening folders (single file, shards, prefixes), asking for tensors, what nobody read, and widening to float32.
#include "weights/weight_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/folder_testing.h"
#include "base/source_dir_testing.h"
#include "weights/safetensors_testing.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::safetensors_bytes;
using testing::TestFolder;
using testing::TestTensor;

TestTensor floats(std::string name, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return {std::move(name), "F32", {count}, bytes_of(values)};
}

TEST(WeightMap, ServesTensorsByNameAndShape) {
  const TestFolder dir;
  dir.write("model.safetensors", safetensors_bytes({{"w", "F32", {2, 3}, bytes_of<float>({1, 2, 3, 4, 5, 6})},
                                                    {"position_ids", "I64", {1}, std::string(8, '\0')},
                                                    {"quantised", "F8_E4M3", {2}, "ab"}}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ((*map)->total_bytes(), 34u);
  EXPECT_TRUE((*map)->contains("w"));
  EXPECT_TRUE((*map)->contains("position_ids"));
  EXPECT_FALSE((*map)->contains("v"));

  const auto w = (*map)->get("w", {2, 3});
  ASSERT_TRUE(w.ok()) << w.status().message();
  EXPECT_EQ(w->num_elements(), 6);
  EXPECT_THAT(to_floats(*w), ElementsAre(1, 2, 3, 4, 5, 6));
  std::vector<float> part(2);
  widen_to_float(*w, 3, part);
  EXPECT_THAT(part, ElementsAre(4, 5));

  const auto missing = (*map)->get("v", {2});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error_message(missing.status()), HasSubstr("model.safetensors: tensor \"v\" is missing"));
  const auto misshapen = (*map)->get("w", {3, 2});
  EXPECT_THAT(error_message(misshapen.status()), HasSubstr("tensor \"w\": shape [2, 3], expected [3, 2]"));
  EXPECT_EQ(error_param(misshapen.status()), "w");
  EXPECT_FALSE((*map)->get("w", {6}).ok());
  EXPECT_THAT(error_message((*map)->get("position_ids", {1}).status()), HasSubstr("dtype I64 is not a floating-point"));
  EXPECT_THAT(error_message((*map)->get("quantised", {2}).status()), HasSubstr("dtype F8_E4M3 is not"));
}

TEST(WeightMap, SaysWhichFormatMostBytesHave) {
  const auto main_format = [](const std::vector<TestTensor>& tensors) {
    const TestFolder dir;
    dir.write("model.safetensors", safetensors_bytes(tensors));
    return (*WeightMap::open(dir.path()))->main_format();
  };
  const TestTensor wide = floats("wide", {1, 2}), ids = {"ids", "I64", {4}, std::string(32, '\0')};
  const auto half = [](std::string name, std::string type, int64_t count) {
    return TestTensor{std::move(name), std::move(type), {count}, std::string(2 * count, '\0')};
  };
  EXPECT_EQ(main_format({ids}), kFloat32Format);
  EXPECT_EQ(main_format({wide, ids, half("a", "BF16", 4)}), kFloat32Format) << "as many bytes";
  EXPECT_EQ(main_format({wide, ids, half("a", "BF16", 5)}), kBFloat16Format);
  EXPECT_EQ(main_format({wide, half("a", "BF16", 3), half("b", "F16", 3), half("c", "F16", 2)}), kFloat16Format);
}

TEST(WeightMap, SaysWhatNothingRead) {
  const TestFolder dir;
  dir.write("model.safetensors",
            safetensors_bytes({floats("c", {1}), floats("a", {1}), floats("b", {1}), floats("d", {1})}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok());
  EXPECT_THAT((*map)->unread(), ElementsAre("a", "b", "c", "d"));
  EXPECT_TRUE((*map)->get("b", {1}).ok());
  EXPECT_FALSE((*map)->get("c", {2}).ok());  // asked for in vain: still unread
  (*map)->ignore("d");
  (*map)->ignore("not there");
  EXPECT_THAT((*map)->unread(), ElementsAre("a", "c"));
}

// Only the beginning counts: cross-attention of decoders is "encoder_attn", and names may hold the other side's.
TEST(WeightMap, IgnoresAllThatBeginsSo) {
  const TestFolder dir;
  dir.write("model.safetensors",
            safetensors_bytes({floats("side.a", {1}), floats("model.side.b", {1}), floats("sidelong", {1}),
                               floats("other.side.c", {1}), floats("side.", {1}), floats("model.other", {1})}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok());
  (*map)->ignore_below("none.");
  (*map)->ignore_below("side.");
  EXPECT_THAT((*map)->unread(), ElementsAre("model.other", "model.side.b", "other.side.c", "sidelong"));
  (*map)->set_optional_prefix("model.");
  (*map)->ignore_below("side.");
  EXPECT_THAT((*map)->unread(), ElementsAre("model.other", "other.side.c", "sidelong"));
  EXPECT_TRUE((*map)->get("side.b", {1}).ok()) << "it is there for who asks";
}

TEST(WeightMap, TellsWhatATensorIsWithoutReadingIt) {
  const TestFolder dir;
  dir.write("model.safetensors", safetensors_bytes({{"model.a.scale", "I8", {2, 1}, "xy"}, floats("b", {1})}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status();
  (*map)->set_optional_prefix("model.");
  const auto form = (*map)->form_of("a.scale");
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->name, "model.a.scale");
  EXPECT_EQ(form->dtype, "I8");
  EXPECT_EQ(std::vector<int64_t>(form->shape.begin(), form->shape.end()), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(static_cast<char>(form->data[1]), 'y');
  EXPECT_FALSE((*map)->form_of("c").has_value());
  EXPECT_EQ(error_message((*map)->tensor_error("a.scale", "is odd")),
            dir.path() + "/model.safetensors: tensor \"model.a.scale\": is odd");
  EXPECT_EQ(error_message((*map)->tensor_error("c", "is odd")),
            dir.path() + "/model.safetensors: tensor \"c\": is odd");
  EXPECT_THAT((*map)->unread(), ElementsAre("b", "model.a.scale"));
  (*map)->ignore_where([](std::string_view name) { return name.ends_with(".scale"); });
  EXPECT_THAT((*map)->unread(), ElementsAre("b"));
}

TEST(WeightMap, FindsNamesWithAndWithoutThePrefix) {
  const TestFolder dir;
  dir.write("model.safetensors", safetensors_bytes({floats("model.with", {1}), floats("without", {2}),
                                                    floats("both", {3}), floats("model.both", {4})}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok());
  EXPECT_FALSE((*map)->contains("with"));
  (*map)->set_optional_prefix("model.");
  EXPECT_EQ((*map)->get("with", {1})->name, "model.with");
  EXPECT_EQ((*map)->get("model.without", {1})->name, "without");
  EXPECT_THAT(to_floats(*(*map)->get("both", {1})), ElementsAre(3));
  EXPECT_THAT(to_floats(*(*map)->get("model.both", {1})), ElementsAre(4));
  EXPECT_TRUE((*map)->unread().empty());
}

TEST(WeightMap, ReadsShards) {
  const TestFolder dir;
  dir.write("s1.safetensors", safetensors_bytes({floats("a", {1})}));
  dir.write("s2.safetensors", safetensors_bytes({floats("b", {2}), floats("unlisted", {3})}));
  dir.write("model.safetensors.index.json",
            R"({"metadata": {"total_size": 12, "x": [1, {"y": null}]},
                "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}})");
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_THAT(to_floats(*(*map)->get("a", {1})), ElementsAre(1));
  EXPECT_THAT(to_floats(*(*map)->get("b", {1})), ElementsAre(2));
  EXPECT_THAT((*map)->unread(), ElementsAre("unlisted"));
}

// ---- Files of torch.save

testing::TestStorage storage_of(std::string key, const std::vector<float>& values) {
  return {std::move(key), "FloatStorage", std::ssize(values), bytes_of(values)};
}

TEST(WeightMap, ReadsFilesOfTorch) {
  const std::vector<testing::TestTorchTensor> tensors = {{"w", 0, 0, {2, 3}, {3, 1}},
                                                         {"transposed", 0, 0, {3, 2}, {1, 3}},
                                                         {"bias", 0, 1, {2}, {3}},
                                                         {"tied", 0, 0, {2, 3}, {3, 1}}};
  const std::vector<testing::TestStorage> storages = {storage_of("0", {1, 2, 3, 4, 5, 6})};
  for (const std::string& file : {testing::torch_zip(tensors, storages), testing::torch_legacy(tensors, storages)}) {
    const TestFolder dir;
    dir.write("pytorch_model.bin", file);
    const auto map = WeightMap::open(dir.path());
    ASSERT_TRUE(map.ok()) << map.status().message();
    EXPECT_EQ((*map)->source(), dir.path() + "/pytorch_model.bin");
    EXPECT_EQ((*map)->main_format(), kFloat32Format);
    const auto w = (*map)->get("w", {2, 3}), tied = (*map)->get("tied", {2, 3});
    ASSERT_TRUE(w.ok() && tied.ok());
    EXPECT_EQ(w->data.data(), tied->data.data()) << "one storage, viewed";
    EXPECT_NE(w->file, nullptr);
    EXPECT_THAT((*map)->unread(), ElementsAre("bias", "transposed"));
    const auto bias = (*map)->get("bias", {2});
    EXPECT_THAT(to_floats(*bias), ElementsAre(2, 5));
    EXPECT_EQ(bias->file, nullptr) << "gathered";
    for (const WeightUse use : {WeightUse::kPacked, WeightUse::kRead, WeightUse::kPacked}) {
      const auto matrix = (*map)->matrix("transposed", {3, 2}, use);
      ASSERT_TRUE(matrix.ok()) << matrix.status().message();
      std::vector<float> rows(4);
      (*matrix)->read_rows(1, 2, {0, 2}, rows);
      EXPECT_THAT(rows, ElementsAre(2, 5, 3, 6));
    }
    for (const SafetensorsTensor& tensor : (*map)->read_tensors()) {
      int64_t elements = 1;
      for (const int64_t dim : tensor.shape) elements *= dim;
      EXPECT_EQ(tensor.data.size(), static_cast<size_t>(elements) * 4) << tensor.name << ": dense, as a file has it";
    }
    EXPECT_FALSE((*map)->get("w", {3, 2}).ok());
  }
}

// A large transposed table, as a model's embedding that is its output layer too: its rows are gathered when they are
// read, and all of them for who asks for the whole.
TEST(WeightMap, GathersRowsOfALargeTableAsTheyAreRead) {
  constexpr int64_t kRows = 8200, kDim = 130;
  std::vector<float> values(static_cast<size_t>(kRows * kDim));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto value = [](int64_t row, int64_t column) { return static_cast<float>(row + column * kRows); };
  const TestFolder dir;
  dir.write("pytorch_model.bin",
            testing::torch_zip({{"table", 0, 0, {kRows, kDim}, {1, kRows}}}, {storage_of("0", values)}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status().message();
  const auto table = (*map)->matrix("table", {kRows, kDim}, WeightUse::kRead);
  const auto again = (*map)->matrix("table", {kRows, kDim}, WeightUse::kRead);
  const auto packed = (*map)->matrix("table", {kRows, kDim}, WeightUse::kPacked);
  ASSERT_TRUE(table.ok() && again.ok() && packed.ok());
  EXPECT_TRUE((*packed)->is_by_input()) << "taken as the file has it";
  EXPECT_THAT((*map)->unread(), IsEmpty());
  for (const MatrixSource* const source : {table->get(), again->get(), packed->get()}) {
    std::vector<float> rows(2 * kDim);
    source->read_rows(5003, 2, {0, kDim}, rows);
    for (int64_t i = 0; i < 2 * kDim; ++i) {
      ASSERT_EQ(rows[static_cast<size_t>(i)], value(5003 + i / kDim, i % kDim)) << i;
    }
  }
  const std::vector<SafetensorsTensor> read = (*map)->read_tensors();
  ASSERT_EQ(read.size(), 1u);
  const auto whole = (*map)->get("table", {kRows, kDim});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->data.data(), read.front().data.data());
  EXPECT_EQ(whole->file, nullptr);
  const std::vector<float> got = to_floats(*whole);
  for (int64_t i = 0; i < kRows * kDim; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], value(i / kDim, i % kDim)) << i;
  std::vector<float> row(kDim);
  (*table)->read_rows(kRows - 1, 1, {0, kDim}, row);
  EXPECT_EQ(row.back(), value(kRows - 1, kDim - 1));
}

TEST(WeightMap, ReadsShardsOfTorch) {
  const TestFolder dir;
  dir.write("s1.bin", testing::torch_zip({{"a", 0, 0, {1}, {1}}}, {storage_of("0", {1})}));
  dir.write("s2.bin", testing::torch_legacy({{"b", 0, 1, {2}, {1}}}, {storage_of("0", {1, 2, 3})}));
  dir.write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "s1.bin", "b": "s2.bin"}})");
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_THAT(to_floats(*(*map)->get("a", {1})), ElementsAre(1));
  EXPECT_THAT(to_floats(*(*map)->get("b", {2})), ElementsAre(2, 3));
  dir.write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "s1.bin", "b": "s1.bin"}})");
  EXPECT_THAT(error_message(WeightMap::open(dir.path()).status()), HasSubstr("\"b\" is not in its shard s1.bin"));
  dir.write("pytorch_model.bin.index.json", R"({"weight_map": {"a": "s1.bin", "b": "s3.bin"}})");
  EXPECT_THAT(error_message(WeightMap::open(dir.path()).status()), HasSubstr("the shard s3.bin is missing"));
}

TEST(WeightMap, SafetensorsGoBeforeFilesOfTorch) {
  const TestFolder dir;
  dir.write("pytorch_model.bin", "this is never opened");
  dir.write("model.safetensors", safetensors_bytes({floats("a", {5})}));
  const auto map = WeightMap::open(dir.path());
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_THAT(to_floats(*(*map)->get("a", {1})), ElementsAre(5));
}

// Files of a folder that was packed for ranks.
TEST(WeightMap, ReadsTheFileOfItsRank) {
  const auto part = [](int64_t rank, float value) {
    const std::string header = str_cat(R"({"__metadata__": {"transept.layout": "2", "transept.ranks": ")", rank,
                                       R"( of 2"}, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})");
    return testing::raw_safetensors(header, bytes_of(std::vector<float>{value}));
  };
  const TestFolder dir;
  const auto error = [&](const ReadingRank& reading) {
    return error_message(WeightMap::open(dir.path(), reading).status());
  };
  for (const char* const name : {"model-tp-2-of-2", "model-tp-00-of-2", "model-tp-0-of-1", "model-tp-0-of-99999999999",
                                 "model-tp--1-of-2", "model-tp-x-of-y", "model-tp-0-of-2x"}) {
    dir.write(str_cat(name, ".safetensors"), "is no rank's");
  }
  EXPECT_FALSE(has_checkpoint(dir.path()));
  EXPECT_THAT(error({0, 2}), HasSubstr("no weights"));
  dir.write("model-tp-0-of-2.safetensors", part(0, 5));
  EXPECT_TRUE(has_checkpoint(dir.path()));
  EXPECT_EQ(num_packed_ranks(dir.path()), 2);
  EXPECT_THAT(error({1, 2}), HasSubstr("model-tp-1-of-2.safetensors: is missing"));
  EXPECT_THAT(error({}), HasSubstr("is packed for --tensor-parallel-size 2, not for 1"));
  dir.write("model-tp-1-of-2.safetensors", part(1, 6));
  for (const int32_t rank : {0, 1}) {
    const auto map = WeightMap::open(dir.path(), {rank, 2});
    ASSERT_TRUE(map.ok()) << map.status().message();
    EXPECT_EQ((*map)->pack_tag()->rank, rank);
    EXPECT_THAT(to_floats(*(*map)->get("a", {1})), ElementsAre(static_cast<float>(5 + rank)));
  }
  dir.write("model-tp-1-of-2.safetensors", part(0, 6));
  EXPECT_THAT(error({1, 2}), HasSubstr("the part of rank 0 of 2 by its metadata, and of rank 1 of 2 by its name"));
  dir.write("model.safetensors", part(1, 7));
  EXPECT_THAT(error({}), HasSubstr("the part of rank 1 of 2 by its metadata, and of rank 0 of 1 by its name"));
  dir.write("model.safetensors", safetensors_bytes({floats("a", {9})}));
  EXPECT_EQ(num_packed_ranks(dir.path()), 1) << "whole weights go before";
  EXPECT_THAT(to_floats(*(*WeightMap::open(dir.path(), {1, 2}))->get("a", {1})), ElementsAre(9));
}

TEST(WeightMap, RefusesDamagedIndexes) {
  struct Case {
    std::string index, reason;
  };
  const Case cases[] = {
      {"", "expected '{'"},
      {"[]", "expected '{'"},
      {"{}", "weight_map is missing"},
      {R"({"weight_map": {"a": "s1.safetensors"}, "weight_map": {}})", "weight_map stands twice"},
      {R"({"weight_map": {"a": "s1.safetensors", "a": "s1.safetensors"}})", "\"a\" stands twice"},
      {R"({"weight_map": {"a": 1}})", "expected a string"},
      {R"({"weight_map": {"a": "s1.safetensors"}} x)", "something follows"},
      {R"({"weight_map": {"a": "s9.safetensors"}})", "shard s9.safetensors is missing"},
      {R"({"weight_map": {"a": "s1.safetensors", "c": "s1.safetensors"}})", "\"c\" is not in its shard s1"},
      // "b" is in s2, not where the index says
      {R"({"weight_map": {"a": "s2.safetensors", "b": "s1.safetensors"}})", "is not in its shard"},
      {R"({"weight_map": {"a": "s1.safetensors", "b": "again.safetensors"}})", "stands in"},
      {R"({"weight_map": {"a": "../s1.safetensors"}})", "not the name of a file in the folder"},
      {R"({"weight_map": {"a": "/etc/passwd"}})", "not the name of a file in the folder"},
      {R"({"weight_map": {"a": "sub/s1.safetensors"}})", "not the name of a file in the folder"},
      {R"({"weight_map": {"a": ".."}})", "not the name of a file in the folder"},
      {R"({"weight_map": {"a": ""}})", "not the name of a file in the folder"},
      {R"({"weight_map": {"a": "s1.safetensors\u0000"}})", "not the name of a file in the folder"},
  };
  const TestFolder dir;
  dir.write("s1.safetensors", safetensors_bytes({floats("a", {1})}));
  dir.write("s2.safetensors", safetensors_bytes({floats("b", {2})}));
  dir.write("again.safetensors", safetensors_bytes({floats("a", {1}), floats("b", {1})}));
  for (const Case& c : cases) {
    dir.write("model.safetensors.index.json", c.index);
    const auto map = WeightMap::open(dir.path());
    ASSERT_FALSE(map.ok()) << c.index;
    EXPECT_THAT(error_message(map.status()), HasSubstr(c.reason)) << c.index;
    EXPECT_THAT(error_message(map.status()), HasSubstr(".safetensors")) << c.index;
  }
}

TEST(WeightMap, NamesTheFileThatIsMissingOrDamaged) {
  const TestFolder dir;
  auto map = WeightMap::open(dir.path());
  EXPECT_EQ(map.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error_message(map.status()), HasSubstr(dir.path()));
  dir.write("pytorch_model.bin", "x");
  map = WeightMap::open(dir.path());
  EXPECT_THAT(error_message(map.status()), HasSubstr(dir.path() + "/pytorch_model.bin: is no file of torch.save"));
  dir.write("model.safetensors", "");
  map = WeightMap::open(dir.path());
  EXPECT_THAT(error_message(map.status()), HasSubstr(dir.path() + "/model.safetensors"));
  EXPECT_FALSE(WeightMap::open(dir.path() + "/nowhere").ok());
}

// All 65,536 values of both 16-bit types, at an odd address, against dtype.h's scalar conversions.
TEST(Widen, ConvertsEveryValueOf16Bits) {
  std::vector<uint16_t> all(65'536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const std::string odd = "x" + bytes_of(all);
  const std::span<const std::byte> data(reinterpret_cast<const std::byte*>(odd.data()) + 1, odd.size() - 1);
  const WeightView half{"h", DType::kFloat16, {65'536}, data};
  const WeightView brain{"b", DType::kBFloat16, {256, 256}, data};
  const std::vector<float> halves = to_floats(half), brains = to_floats(brain);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(halves[i]), std::bit_cast<uint32_t>(float16_to_float(all[i]))) << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(brains[i]), static_cast<uint32_t>(i) << 16) << i;
  }
  // Landmarks of IEEE 754 binary16: one, the smallest subnormal, the largest finite value, infinity.
  EXPECT_EQ(halves[0x3C00], 1.0f);
  EXPECT_EQ(halves[0x0001], std::ldexp(1.0f, -24));
  EXPECT_EQ(halves[0xFBFF], -65504.0f);
  EXPECT_EQ(halves[0x7C00], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(halves[0x7E00]));
}

TEST(Widen, ReadsPartsOfUnalignedFloats) {
  const std::string odd = "xyz" + bytes_of<float>({1, 2, 3, 4});
  const WeightView view{"f", DType::kFloat32, {2, 2}, std::as_bytes(std::span(odd.data() + 3, odd.size() - 3))};
  std::vector<float> out(3);
  widen_to_float(view, 1, out);
  EXPECT_THAT(out, ElementsAre(2, 3, 4));
  widen_to_float(view, 4, std::span<float>());  // nothing at the end is in range
}

// The sharded golden model, when it is there: every tensor of a real writer's files is found and finite.
TEST(WeightMap, ReadsTheSharedGoldens) {
  const std::string root = source_dir() + "/../shared/golden/text/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no ../shared";
  for (const char* name : {"bart", "bart-bare-bf16", "bart-tied-fp16", "bart-scaled-sharded"}) {
    const auto map = WeightMap::open(root + name);
    ASSERT_TRUE(map.ok()) << map.status().message();
    EXPECT_GT((*map)->unread().size(), 20u);
  }
}

}  // namespace
}  // namespace transept
