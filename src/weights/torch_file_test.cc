// Files of torch.save in both forms: of torch itself (testdata, made by tools/make_torch_fixtures.py), and damaged ones
// of the tests' own writer.
#include "weights/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "weights/safetensors_testing.h"
#include "weights/strides.h"
#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using testing::global;
using ::testing::HasSubstr;
using testing::pickled;
using testing::state_dict;
using testing::TestStorage;
using testing::TestTorchTensor;
using testing::torch_legacy;
using testing::torch_zip;

StatusOr<std::vector<StoredTensor>> parse(const std::string& file) {
  return parse_torch_file(std::as_bytes(std::span(file)), "f.bin");
}

std::string why(const std::string& file) {
  const auto tensors = parse(file);
  return tensors.ok() ? "read" : error_message(tensors.status());
}

// Type, shape and elements in row-major order: as the tensor's library would print them.
struct Dense {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;

  friend bool operator==(const Dense&, const Dense&) = default;
};

Dense dense(const StoredTensor& tensor) {
  std::string data(reinterpret_cast<const char*>(tensor.view.data.data()), tensor.view.data.size());
  if (!tensor.strides.empty()) {
    const auto width = static_cast<size_t>(safetensors_dtype_bytes(tensor.view.dtype));
    std::vector<std::byte> all(static_cast<size_t>(num_elements(tensor.view.shape).value()) * width);
    gather(tensor.view.data, width, tensor.view.shape, tensor.strides, all, nullptr);
    data.assign(reinterpret_cast<const char*>(all.data()), all.size());
  }
  return {tensor.view.dtype, tensor.view.shape, data};
}

const TestStorage kStorage = {"0", "FloatStorage", 12, bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})};
const std::vector<TestTorchTensor> kTensors = {{"w", 0, 0, {3, 4}, {4, 1}}, {"t", 0, 4, {2, 3}, {1, 2}}};

// What torch wrote: tools/make_torch_fixtures.py has the same table.
const std::map<std::string, Dense>& expected_of_torch() {
  static const std::map<std::string, Dense> table = {
      {"dense", {"F32", {3, 4}, bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}},
      {"tied", {"F32", {3, 4}, bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}},
      {"transposed", {"F32", {4, 3}, bytes_of<float>({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11})}},
      {"row", {"F32", {4}, bytes_of<float>({4, 5, 6, 7})}},
      {"column", {"F32", {3}, bytes_of<float>({1, 5, 9})}},
      {"part", {"F32", {2, 2}, bytes_of<float>({5, 6, 9, 10})}},
      {"repeated", {"F32", {2, 3}, bytes_of<float>({7, 7, 7, 7, 7, 7})}},
      {"parameter", {"F32", {2}, bytes_of<float>({1, 1})}},
      {"scalar", {"I64", {}, bytes_of<int64_t>({3})}},
      {"empty", {"F32", {0, 3}, ""}},
      {"half", {"F16", {3}, bytes_of<uint16_t>({0x3C00, 0x4000, 0x4200})}},
      {"brain", {"BF16", {3}, bytes_of<uint16_t>({0x3F80, 0x4000, 0x4040})}},
      {"double", {"F64", {2}, bytes_of<double>({1, 2})}},
      {"int32", {"I32", {2}, bytes_of<int32_t>({1, 2})}},
      {"int16", {"I16", {2}, bytes_of<int16_t>({1, 2})}},
      {"int8", {"I8", {2}, bytes_of<int8_t>({1, 2})}},
      {"uint8", {"U8", {2}, bytes_of<uint8_t>({1, 2})}},
      {"bool", {"BOOL", {2}, bytes_of<uint8_t>({1, 1})}},
      {"complex", {"C64", {1}, bytes_of<float>({1, 0})}},
      {"uint16", {"U16", {2}, bytes_of<uint16_t>({1, 2})}},
      {"float8", {"F8_E4M3", {2}, bytes_of<uint8_t>({0x38, 0x40})}},
  };
  return table;
}

TEST(TorchFile, ReadsWhatTorchWroteInBothForms) {
  for (const char* name : {"torch_zip.bin", "torch_legacy.bin"}) {
    const std::string path = source_dir() + "/src/weights/testdata/" + name;
    const StatusOr<std::string> file = read_file(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto tensors = parse(*file);
    ASSERT_TRUE(tensors.ok()) << tensors.status().message();
    std::map<std::string, Dense> got;
    for (const StoredTensor& tensor : *tensors) got.emplace(tensor.view.name, dense(tensor));
    for (const auto& [tensor, value] : expected_of_torch()) {
      EXPECT_TRUE(got.contains(tensor) && got.at(tensor) == value) << name << ": " << tensor;
    }
    EXPECT_EQ(got.size(), expected_of_torch().size()) << name;
  }
}

TEST(TorchFile, ViewsStoragesWhereTheyLie) {
  for (const std::string& file : {torch_zip(kTensors, {kStorage}), torch_legacy(kTensors, {kStorage})}) {
    const auto tensors = parse(file);
    ASSERT_TRUE(tensors.ok()) << tensors.status().message();
    ASSERT_EQ(tensors->size(), 2u);
    const StoredTensor &w = (*tensors)[0], &t = (*tensors)[1];
    EXPECT_EQ(w.view.name, "w");
    EXPECT_TRUE(w.strides.empty());
    EXPECT_EQ(w.view.data.size(), 48u);
    EXPECT_GE(reinterpret_cast<const char*>(w.view.data.data()), file.data());
    EXPECT_LE(reinterpret_cast<const char*>(w.view.data.data()) + 48, file.data() + file.size());
    EXPECT_EQ(t.view.data.data(), w.view.data.data() + 16) << "one storage";
    EXPECT_THAT(t.strides, ElementsAre(1, 2));
    EXPECT_EQ(dense(t).data, bytes_of<float>({4, 6, 8, 5, 7, 9}));
  }
}

TEST(TorchFile, LeavesOutWhatIsNoTensor) {
  const std::string object = "}(" + pickled("step") + "K\x05" + pickled("w") +
                             testing::tensor_value({"w", 0, 0, {12}, {1}}, kStorage, false) + pickled("args") + "}u";
  const std::string file = torch_zip(object, {kStorage});
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ((*tensors)[0].view.name, "w");
}

TEST(TorchFile, NamesWhatIsNoStateDict) {
  EXPECT_THAT(why("{}"), HasSubstr("f.bin: is no file of torch.save"));
  EXPECT_THAT(why(testing::zip_bytes({{"m/x", ""}})), HasSubstr("without data.pkl"));
  EXPECT_THAT(why(testing::zip_bytes({{"m/data.pkl", ""}, {"n/data.pkl", ""}})), HasSubstr("two objects"));
  EXPECT_THAT(why(testing::zip_bytes({{"m/constants.pkl", ""}, {"m/data.pkl", ""}})), HasSubstr("TorchScript"));
  EXPECT_THAT(why(torch_zip("N", {})), HasSubstr("no dict of tensors"));
  const std::string nested = "}(" + pickled("epoch") + "K\x01" + pickled("state_dict") + "}u";
  EXPECT_THAT(why(torch_zip(nested, {})), HasSubstr("a dict is below \"state_dict\""));
  EXPECT_THAT(why(torch_legacy(nested, {})), HasSubstr("a dict is below \"state_dict\""));
  EXPECT_EQ(why(torch_zip("}", {})), "read");
  const std::string big = testing::zip_bytes({{"m/data.pkl", testing::pickle_of("}")}, {"m/byteorder", "big"}});
  EXPECT_THAT(why(big), HasSubstr("byte order \"big\""));
  const std::string twice = torch_zip(std::vector<TestTorchTensor>{kTensors[0], kTensors[0]}, {kStorage});
  EXPECT_THAT(why(twice), HasSubstr("tensor \"w\": stands twice"));
}

TEST(TorchFile, NamesOpcodeAndOffsetOfAPickleThatWouldRun) {
  const std::string evil = global("os", "system") + pickled("touch /tmp/owned") + "\x85R";
  EXPECT_THAT(why(torch_zip(evil, {})), HasSubstr("f.bin: data.pkl: GLOBAL at byte 2: \"os.system\""));
  EXPECT_THAT(why(torch_legacy(evil, {})), HasSubstr("f.bin: object (a pickle at byte "));
  EXPECT_THAT(why(torch_legacy(evil, {})), HasSubstr("GLOBAL at byte 2: \"os.system\""));
  EXPECT_THAT(why(testing::zip_bytes({{"m/data.pkl", testing::pickle_of("}") + "x"}})), HasSubstr("something follows"));
}

TEST(TorchFile, RefusesTensorsOutsideTheirStorages) {
  const auto with = [](TestTorchTensor tensor, const TestStorage& storage = kStorage) {
    const std::vector<TestTorchTensor> tensors = {std::move(tensor)};
    std::string zip = why(torch_zip(tensors, {storage})), legacy = why(torch_legacy(tensors, {storage}));
    EXPECT_EQ(zip, legacy);
    return zip;
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(with({"w", 0, 0, {12}, {1}}), "read");
  EXPECT_EQ(with({"w", 0, 11, {1}, {kHuge}}), "read") << "that stride is never taken";
  EXPECT_EQ(with({"w", 0, 12, {0}, {1}}), "read");
  EXPECT_THAT(with({"w", 0, 1, {12}, {1}}),
              HasSubstr("f.bin: tensor \"w\": shape [12] with strides [1] from element 1"));
  EXPECT_THAT(with({"w", 0, 0, {4, 4}, {4, 1}}), HasSubstr("ends after the 12 elements"));
  EXPECT_THAT(with({"w", 0, 13, {0}, {1}}), HasSubstr("ends after"));
  EXPECT_THAT(with({"w", 0, kHuge, {1}, {1}}), HasSubstr("ends after"));
  EXPECT_THAT(with({"w", 0, 0, {2, 2}, {kHuge, kHuge}}), HasSubstr("is too large"));
  EXPECT_THAT(with({"w", 0, 0, {kHuge, 4}, {0, 0}}), HasSubstr("is too large"));
  EXPECT_THAT(with({"w", 0, 0, {1 << 20, 1 << 20}, {0, 0}}), HasSubstr("more bytes than the file"));
  EXPECT_EQ(with({"w", 0, 3, {2, 5}, {0, 0}}), "read");
}

TEST(TorchFile, RefusesStoragesThatLie) {
  TestStorage storage = kStorage;
  const std::vector<TestTorchTensor> tensors = {{"w", 0, 0, {4}, {1}}};
  storage.num_elements = 13;
  EXPECT_THAT(why(torch_zip(tensors, {storage})), HasSubstr("storage \"0\" has 48 bytes, not 13 elements of F32"));
  EXPECT_THAT(why(torch_legacy(tensors, {storage})), HasSubstr("13 elements end after the file"));
  storage.num_elements = int64_t{1} << 62;
  EXPECT_THAT(why(torch_zip(tensors, {storage})), HasSubstr("has 48 bytes"));
  EXPECT_THAT(why(torch_legacy(tensors, {storage})), HasSubstr("end after the file"));
  const TestStorage other = {"1", "FloatStorage", 0, ""};
  EXPECT_THAT(why(torch_zip(state_dict(tensors, {kStorage}), {other})), HasSubstr("storage \"0\" is missing"));
  EXPECT_THAT(why(torch_legacy(state_dict(tensors, {kStorage}, true), {})), HasSubstr("storage \"0\" is missing"));
  EXPECT_THAT(why(torch_legacy(state_dict(tensors, {kStorage}, true), {kStorage, kStorage})),
              HasSubstr("stands twice"));
  EXPECT_THAT(why(torch_legacy(state_dict(tensors, {kStorage}, true), {kStorage, other})),
              HasSubstr("storage \"1\" belongs to no tensor"));
  TestStorage half = kStorage;
  half.type = "HalfStorage";
  const std::string both = "}(" + pickled("a") + testing::tensor_value(kTensors[0], kStorage, true) + pickled("b") +
                           testing::tensor_value(kTensors[0], half, true) + "u";
  EXPECT_THAT(why(torch_legacy(both, {kStorage})), HasSubstr("storage \"0\" has two types"));
}

TEST(TorchFile, LegacyFilesHaveTheirOwnHeader) {
  std::string file = torch_legacy(kTensors, {kStorage});
  EXPECT_TRUE(begins_as_torch_file(std::as_bytes(std::span(file))));
  file[17] = '\x00';  // of 1001
  EXPECT_THAT(why(file), HasSubstr("protocol version at byte 15"));
  file = torch_legacy(kTensors, {kStorage});
  file.replace(file.find("little_endian") + 13, 1, "\x89");
  EXPECT_THAT(why(file), HasSubstr("little_endian is not true"));
}

TEST(TorchFile, EndsAtEveryCut) {
  for (const std::string& good : {torch_zip(kTensors, {kStorage}), torch_legacy(kTensors, {kStorage})}) {
    for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(why(good.substr(0, size)), "read") << size;
  }
}

}  // namespace
}  // namespace transept
