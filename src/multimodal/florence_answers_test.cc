// Answers of Florence-2 are what transformers' own class makes of them: texts and answers of
// testdata/florence_answers.jsonl (tests/make_florence_answers.py made them), and examples whose answers can be read
// off.
#include "multimodal/florence_answers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/source_dir_testing.h"
#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using testing::json_of;

// The script's list.
constexpr std::string_view kBanned[] = {"it", "the image", "a", "you"};

TEST(FlorenceAnswer, IsTheReferences) {
  std::ifstream file(source_dir() + "/src/multimodal/testdata/florence_answers.jsonl");
  int num_lines = 0;
  for (std::string line; std::getline(file, line); ++num_lines) {
    const Json row = json_of(line);
    const auto text = [&](const char* key) -> const std::string& { return row.find(key)->as_string(); };
    const Json::Array& size = row.find("size")->as_array();
    const Json answer = florence_answer(text("task"), text("text"), size[0].as_int(), size[1].as_int(), kBanned);
    EXPECT_EQ(answer.dump(), row.find("answer")->dump()) << line;
  }
  EXPECT_GE(num_lines, 500);
}

TEST(FlorenceAnswer, PlacesAreMiddlesOfBinsInPixels) {
  const Json boxes = florence_answer(
      "<OD>", "</s><s>car<loc_0><loc_10><loc_500><loc_999>door<loc_1><loc_2><loc_3><loc_4></s>", 2000, 1000);
  EXPECT_EQ(boxes.dump(), json_of(R"({"<OD>": {"bboxes": [[1, 10, 1001, 999], [3, 2, 7, 4]],
                                      "labels": ["car", "door"]}})")
                              .dump());
  EXPECT_EQ(florence_answer("<CAPTION>", "<s> A red car. </s>", 1, 1).dump(), R"({"<CAPTION>": "A red car."})");
}

TEST(FlorenceAnswer, PhrasesThatNameNothingHaveNoBoxes) {
  const char* text = "it<loc_1><loc_2><loc_3><loc_4>a cat<loc_1><loc_2><loc_3><loc_4>";
  EXPECT_EQ(florence_answer("<CAPTION_TO_PHRASE_GROUNDING>", text, 1000, 1000).dump(),
            json_of(R"({"<CAPTION_TO_PHRASE_GROUNDING>": {"bboxes": [[1, 2, 3, 4]], "labels": ["a cat"]}})").dump());
}

// A model may write any of them.
TEST(FlorenceAnswer, LongTextsTakeLinearTime) {
  constexpr size_t kTimes = 200'000;
  for (const char* part :
       {"<", "<loc_1>", "<loc_", "a<loc_1><loc_2><loc_3>", "\n", "x", "<poly>", "<loc_9\n>", "<sep>"}) {
    std::string text;
    for (size_t i = 0; i < kTimes; ++i) text += part;
    for (const char* task : {"<OD>", "<OCR_WITH_REGION>", "<REGION_PROPOSAL>", "<REGION_TO_SEGMENTATION>",
                             "<OPEN_VOCABULARY_DETECTION>", "<CAPTION>"}) {
      EXPECT_TRUE(florence_answer(task, text, 640, 480).is_object());
    }
  }
  const std::string digits = "a<loc_" + std::string(kTimes, '9') + "><loc_1><loc_1><loc_1>";
  EXPECT_EQ(florence_answer("<OD>", digits, 1'000'000, 1).find("<OD>")->find("bboxes")->as_array().size(), 1u);
}

}  // namespace
}  // namespace transept
