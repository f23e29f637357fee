// ../shared/golden/vision: what the processors of transformers make of the pictures there, for the folders of each
// family.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using testing::json_of;

constexpr double kTolerance = 2e-5;  // values there have six decimals

// Beside the repository; TRANSEPT_SHARED says where else.
std::string shared_path(std::string_view name) {
  const char* elsewhere = std::getenv("TRANSEPT_SHARED");
  return elsewhere != nullptr ? str_cat(elsewhere, "/", name) : str_cat(source_dir(), "/../shared/", name);
}

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  if (!std::filesystem::exists(path)) return rows;
  const StatusOr<std::string> text = read_file(path);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return rows;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.empty()) rows.push_back(json_of(line));
  }
  return rows;
}

std::vector<int64_t> whole_numbers(const Json* list) {
  std::vector<int64_t> out;
  if (list == nullptr) return out;
  for (const Json& number : list->as_array()) out.push_back(number.as_int());
  return out;
}

void expect_values(const Json& expected, const std::vector<float>& got) {
  for (const Json& point : expected.find("points")->as_array()) {
    const Json::Array& pair = point.as_array();
    EXPECT_NEAR(got.at(static_cast<size_t>(pair[0].as_int())), pair[1].as_double(), kTolerance) << pair[0].dump();
  }
  // Sixteen parts of equal length, but the last.
  const Json::Array& means = expected.find("chunks")->as_array();
  const size_t step = (got.size() + 15) / 16;
  for (size_t i = 0; i < means.size(); ++i) {
    double sum = 0;
    const size_t begin = std::min(i * step, got.size()), end = std::min(begin + step, got.size());
    for (size_t at = begin; at < end; ++at) sum += got[at];
    EXPECT_NEAR(sum / static_cast<double>(std::max<size_t>(end - begin, 1)), means[i].as_double(), kTolerance) << i;
  }
}

void expect_features(const Json& expected, const EncoderFeatures& got) {
  ASSERT_EQ(got.shape, whole_numbers(expected.find("shape")));
  const std::vector<int64_t> extras(got.extras.begin(), got.extras.end());
  if (const Json* id = expected.find("aspect_ratio_id"); id != nullptr) {
    EXPECT_EQ(extras, std::vector<int64_t>{id->as_int()});
    EXPECT_EQ(got.shape[0], expected.find("num_tiles")->as_int());
  } else {
    EXPECT_EQ(extras, whole_numbers(expected.find("grid")));
  }
  expect_values(expected, got.values);
}

class ImageGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(ImageGolden, GivesTheValuesOfTransformers) {
  const std::string folder = shared_path(str_cat("golden/vision/", GetParam()));
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared: " << folder;
  const auto config = ModelConfig::load(folder);
  ASSERT_TRUE(config.ok()) << config.status();
  const auto registry = MultiModalRegistry::create(*config);
  ASSERT_TRUE(registry.ok()) << registry.status();
  ASSERT_NE((*registry)->image(), nullptr);
  int num_cases = 0;
  for (const char* file : {"/preprocess.jsonl", "/preprocess_exact.jsonl"}) {
    for (const Json& row : rows_of(folder + file)) {
      SCOPED_TRACE(row.find("id")->as_string());
      ++num_cases;
      Json data = Json::object();
      data.set("image", shared_path(row.find("image")->as_string()));
      const auto features = (*registry)->process(data, {.local_paths = true});
      ASSERT_TRUE(features.ok()) << features.status();
      ASSERT_NO_FATAL_FAILURE(expect_features(*row.find("expect"), *features->front()));
    }
  }
  EXPECT_GE(num_cases, 30);
}

INSTANTIATE_TEST_SUITE_P(Families, ImageGolden,
                         ::testing::Values("trocr-base", "vit-gpt2", "donut", "nougat", "florence2", "pix2struct",
                                           "blip", "mllama", "qwen2_5_vl"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '-'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace transept
