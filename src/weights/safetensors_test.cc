// Each form of damage that a file can have is refused with the file, the tensor and the reason; what is whole is read.
#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::raw_safetensors;
using testing::safetensors_bytes;

StatusOr<std::vector<SafetensorsTensor>> parse(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "f.safetensors");
}

TEST(Safetensors, ReadsTensorsInOrderOfTheirData) {
  // Header order is free: "b" lies first in the file.
  const std::string file = raw_safetensors(
      R"({"a": {"dtype":"BF16","shape":[2],"data_offsets":[6,10]},
          "b": {"shape":[1,3],"data_offsets":[0,6],"dtype":"F16"},
          "__metadata__": {"format":"pt","note":"\u00e9\ud83d\ude00"},
          "none": {"dtype":"F32","shape":[0,7],"data_offsets":[6,6]},
          "scalar": {"dtype":"I64","shape":[],"data_offsets":[10,18]}}   )",
      "0123456789abcdefgh");
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[0].shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ((*tensors)[1].name, "none");
  EXPECT_EQ((*tensors)[2].name, "a");
  EXPECT_EQ(static_cast<char>((*tensors)[2].data[0]), '6');
  EXPECT_EQ((*tensors)[3].dtype, "I64");
  EXPECT_TRUE((*tensors)[3].shape.empty());
  EXPECT_EQ((*tensors)[3].data.size(), 8u);
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  const auto tensors = parse(raw_safetensors("{}", ""));
  ASSERT_TRUE(tensors.ok());
  EXPECT_TRUE(tensors->empty());
}

struct Damage {
  std::string name;
  std::string file;
  std::string reason;  // must stand in the message
};

std::string one(std::string_view entry, std::string_view data = "12345678") {
  return raw_safetensors(str_cat("{\"w\": ", entry, "}"), data);
}

std::string with_length(uint64_t length, std::string_view rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file.append(rest);
}

std::vector<Damage> damages() {
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  std::string many = "{";
  for (int i = 0; i <= 100'000; ++i) {
    many += str_cat(i > 0 ? "," : "", "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  return {
      {"Empty", "", "too short"},
      {"CutInLength", std::string(7, '\0'), "too short"},
      {"HeaderOver100MB", with_length(100'000'001, "{}"), "100000001 bytes is over the 100000000"},
      {"HeaderLengthHuge", with_length(~uint64_t{0}, "{}"), "is over the"},
      {"HeaderAfterEnd", with_length(100, "{}"), "ends after the file"},
      {"HeaderEmpty", with_length(0, ""), "does not begin with '{'"},
      {"HeaderBeginsWithSpace", raw_safetensors(" {}", ""), "does not begin with '{'"},
      {"HeaderIsList", raw_safetensors("[]", ""), "does not begin with '{'"},
      {"HeaderCut", raw_safetensors(R"({"w": {"dtype")", ""), "not valid JSON"},
      {"HeaderTrailing", raw_safetensors("{} {}", ""), "something follows"},
      {"NotUtf8", raw_safetensors("{\"\xff\": 1}", ""), "not UTF-8"},
      {"LoneSurrogate", raw_safetensors(R"({"\ud800": 1})", ""), "surrogate"},
      {"DeepMetadata", raw_safetensors("{\"__metadata__\": " + std::string(5000, '['), ""), "nested deeper"},
      {"TooManyTensors", raw_safetensors(many + "}", ""), "more than the 100000 tensors"},
      {"Twice", raw_safetensors(str_cat("{\"w\": ", good, ", \"w\": ", good, "}"), "12345678"), "stands twice"},
      {"EntryNotObject", one("5"), "expected '{'"},
      {"NoDtype", one(R"({"shape":[2],"data_offsets":[0,8]})"), "dtype is missing"},
      {"NoShape", one(R"({"dtype":"F32","data_offsets":[0,8]})"), "shape is missing"},
      {"NoOffsets", one(R"({"dtype":"F32","shape":[2]})"), "data_offsets are missing"},
      {"OneOffset", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})"), "not two numbers"},
      {"ThreeOffsets", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})"), "more than 2 numbers"},
      {"DtypeTwice", one(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "dtype stands twice"},
      {"DtypeNumber", one(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"), "expected a string"},
      {"DtypeUnknown", one(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})"), "dtype F4 is not supported"},
      {"DimNegative", one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "whole number"},
      {"DimFraction", one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "expected ']'"},
      {"DimText", one(R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})"), "whole number"},
      {"DimOverInt64", one(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})"), "too large"},
      {"ProductOverflows", one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), "too large"},
      // 2^62 + 2 elements of 4 bytes are 8 bytes modulo 2^64.
      {"ProductWraps", one(R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})"), "too large"},
      {"RankTooHigh", one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})"),
       "more than 16 numbers"},
      {"TooSmallForShape", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "not the 12 bytes"},
      {"TooLargeForShape", one(R"({"dtype":"F16","shape":[2],"data_offsets":[0,8]})"), "not the 4 bytes"},
      {"OffsetsReversed", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "not the 8 bytes"},
      {"NotFromZero", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "begins at 4 and not at 0"},
      {"Gap",
       raw_safetensors(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                                  "w":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                       "123456"),
       "begins at 4 and not at 2"},
      {"Overlap",
       raw_safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                      "w":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                       "123456"),
       "begins at 2 and not at 4"},
      {"FileCut", one(good, "1234567"), "data ends at 8, after the 7 data bytes"},
      {"FileLonger", one(good, "123456789"), "end at byte 8 of 9 data bytes"},
      {"DataWithoutTensors", raw_safetensors("{}", "x"), "end at byte 0 of 1 data bytes"},
  };
}

class SafetensorsDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(SafetensorsDamage, IsRefusedWithFileAndReason) {
  const auto tensors = parse(GetParam().file);
  ASSERT_FALSE(tensors.ok());
  EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message = error_message(tensors.status());
  EXPECT_THAT(message, ::testing::StartsWith("f.safetensors: "));
  EXPECT_THAT(message, HasSubstr(GetParam().reason));
  if (GetParam().file.find("\"w\": {") != std::string::npos && GetParam().name != "HeaderCut" &&
      GetParam().name != "FileLonger") {
    EXPECT_THAT(message, HasSubstr("tensor \"w\""));
    EXPECT_EQ(error_param(tensors.status()), "w");
  }
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsDamage, ::testing::ValuesIn(damages()),
                         [](const auto& test) { return test.param.name; });

// Every prefix of a good file, and every single byte changed, ends in an answer: either an error or tensors that lie
// inside the file.
TEST(Safetensors, SurvivesEveryCutAndEveryChangedByte) {
  const std::string good = safetensors_bytes({{"a", "F32", {2}, "12345678"}, {"b", "BF16", {1, 3}, "123456"}});
  ASSERT_TRUE(parse(good).ok());
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(parse(good.substr(0, length)).ok()) << length;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int change : {1, 2, 0x20, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ change);
      const auto tensors = parse(bad);
      if (!tensors.ok()) continue;
      for (const SafetensorsTensor& tensor : *tensors) {
        const auto* begin = reinterpret_cast<const char*>(tensor.data.data());
        EXPECT_GE(begin, bad.data());
        EXPECT_LE(begin + tensor.data.size(), bad.data() + bad.size());
      }
    }
  }
}

TEST(Safetensors, LongNamesAreCutInMessages) {
  const auto tensors = parse(raw_safetensors(str_cat("{\"", std::string(100'000, 'n'), "\": 1}"), ""));
  ASSERT_FALSE(tensors.ok());
  EXPECT_LT(tensors.status().message().size(), 500u);
}

}  // namespace
}  // namespace transept
