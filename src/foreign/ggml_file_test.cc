// Files of whisper.cpp: what they hold, and files that are none.
#include "foreign/ggml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign/ggml_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GgmlWriter;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::initializer_list<int32_t> kSizes = {300, 10, 32, 2, 1, 20, 32, 4, 3, 2, 1001};

GgmlWriter small_ggml_file() {
  GgmlWriter file(kSizes);
  file.filters(2, 3);
  file.tokens({"a", "", "bc"});
  file.tensor("encoder.conv1.bias", {2, 1}, 0, std::string(8, '\1'));
  file.tensor("half", {3}, 1, std::string(6, '\2'));
  file.tensor("blocks", {2, 64}, 7, std::string(96, '\3'));
  return file;
}

std::string ggml_error(std::string_view bytes) {
  const auto parsed = parse_ggml_file(std::as_bytes(std::span(bytes)), "m.bin");
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : error_message(parsed.status());
}

TEST(GgmlFile, IsReadWhole) {
  const GgmlWriter written = small_ggml_file();
  EXPECT_TRUE(begins_as_ggml_file(written.span()));
  const auto model = parse_ggml_file(written.span(), "m.bin");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->n_vocab, 300);
  EXPECT_EQ(model->n_audio_head, 2);
  EXPECT_EQ(model->n_text_ctx, 20);
  EXPECT_EQ(model->n_text_layer, 3);
  EXPECT_EQ(model->ftype, 1001);
  EXPECT_EQ(model->num_bins, 3);
  EXPECT_EQ(model->filters.size(), 6u);
  EXPECT_THAT(model->tokens, ElementsAre("a", "", "bc"));
  ASSERT_EQ(model->tensors.size(), 3u);
  EXPECT_THAT(model->tensors[0].shape, ElementsAre(2, 1));
  EXPECT_EQ(model->tensors[0].dtype, "F32");
  EXPECT_EQ(model->tensors[1].dtype, "F16");
  EXPECT_EQ(model->tensors[2].blocks, BlockType::kQ5_1);
  EXPECT_EQ(model->tensors[2].data.size(), 96u);
}

TEST(GgmlFile, CutAnywhereIsAnErrorThatNamesThePlace) {
  const GgmlWriter written = small_ggml_file();
  const std::string& whole = written.bytes();
  size_t num_good = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto model = parse_ggml_file(written.span().first(size), "m.bin");
    num_good += model.ok();  // after each tensor the file may end
    if (!model.ok()) {
      EXPECT_THAT(error_message(model.status()), StartsWith("m.bin: "));
    }
  }
  EXPECT_EQ(num_good, 3u) << "without tensors, and behind the first and the second";
  EXPECT_THAT(ggml_error(whole.substr(0, 20)), HasSubstr("ends within n_audio_layer"));
  EXPECT_THAT(ggml_error(whole.substr(0, whole.size() - 1)), HasSubstr("tensor \"blocks\": is larger than the rest"));
}

TEST(GgmlFile, NumbersAreChecked) {
  const auto with = [](size_t at, int32_t value) {
    std::string bytes = small_ggml_file().bytes();
    bytes.replace(at, 4, reinterpret_cast<const char*>(&value), 4);
    return ggml_error(bytes);
  };
  EXPECT_THAT(with(0, 1), HasSubstr("is no file of whisper.cpp"));
  for (const int32_t value : {0, -1, 1 << 30, INT32_MIN}) {
    EXPECT_THAT(with(4, value), AllOf(HasSubstr("n_vocab"), HasSubstr("is not from 1 to")));
    EXPECT_THAT(with(40, value), HasSubstr("n_mels"));
  }
  EXPECT_THAT(with(48, 3), HasSubstr("the number of mel filters: 3 is not from 2 to 2"));
  EXPECT_THAT(with(52, INT32_MAX), HasSubstr("the width of mel filters"));
  EXPECT_THAT(with(80, 301), HasSubstr("the number of tokens"));
  EXPECT_THAT(with(84, -5), HasSubstr("token 0"));
  EXPECT_THAT(with(84, 5000), HasSubstr("token 0"));
}

TEST(GgmlFile, TensorsAreChecked) {
  const auto with = [](const std::vector<int64_t>& shape, int32_t type, std::string_view name = "x") {
    GgmlWriter file(kSizes);
    file.filters(2, 3);
    file.tokens({"a"});
    file.tensor(name, shape, type, std::string(64, 'x'));
    return ggml_error(file.bytes());
  };
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0), HasSubstr("tensor 0: dimensions"));
  EXPECT_THAT(with({0}, 0), HasSubstr("dimension 0"));
  EXPECT_THAT(with({1 << 30, 1 << 30, 1 << 30, 1 << 30}, 0), HasSubstr("is larger than the rest of the file"));
  EXPECT_THAT(with({2, 33}, 8), HasSubstr("33 inputs are no whole blocks of 32"));
  EXPECT_THAT(with({2, 256}, 16), AllOf(HasSubstr("ggml type 16 is not supported"), HasSubstr("q5_1")));
  EXPECT_THAT(with({2, 64}, 12), HasSubstr("64 inputs are no whole blocks of 256"));
  EXPECT_THAT(with({2}, 0, ""), HasSubstr("its name's length"));
  EXPECT_THAT(with({2}, 0, std::string(5000, 'n')), HasSubstr("its name's length"));
}

TEST(GgmlFile, FiltersAreNumbers) {
  GgmlWriter file(kSizes);
  file.filters(2, 3);
  std::string bytes = file.bytes();
  const float infinity = INFINITY;
  bytes.replace(bytes.size() - 4, 4, reinterpret_cast<const char*>(&infinity), 4);
  EXPECT_THAT(ggml_error(bytes), HasSubstr("mel filters: a value is no finite number"));
}

}  // namespace
}  // namespace transept
