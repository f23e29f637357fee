// Forms of answers, against those of the reference.
#include "multimodal/structured_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "multimodal/florence_answers.h"
#include "multimodal/multimodal_testing.h"

namespace transept::testing {
namespace {

TEST(DonutFields, AreThoseOfTheReference) {
  const StatusOr<std::string> file = read_file(str_cat(source_dir(), "/src/multimodal/testdata/donut_fields.jsonl"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::set<std::string, std::less<>> tokens;
  int count = 0;
  for (const std::string_view line : split(*file, '\n')) {
    if (line.empty()) continue;
    const Json row = json_of(line);
    if (const Json* words = row.find("tokens"); words != nullptr) {
      for (const Json& word : words->as_array()) tokens.insert(word.as_string());
      continue;
    }
    const Json fields =
        donut_fields(row.find("text")->as_string(), [&](std::string_view word) { return tokens.contains(word); });
    EXPECT_EQ(fields.dump(), row.find("fields")->dump()) << row.find("text")->as_string();
    ++count;
  }
  EXPECT_GT(count, 400);
}

TEST(DonutFields, AreTextBelowAHundredLevels) {
  std::string open, close;
  for (int i = 0; i < 3000; ++i) {
    open += str_cat("<s_", i, ">");
    close.insert(0, str_cat("</s_", i, ">"));
  }
  Json fields = donut_fields(open + "x" + close, [](std::string_view) { return false; });
  int depth = 0;
  for (const Json* one = &fields; one->is_object(); one = &one->as_object().front().second) ++depth;
  EXPECT_EQ(depth, 101);
}

// Tokens as they are spelled, one behind another.
class Spelling final : public Tokenizer {
 public:
  explicit Spelling(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  StatusOr<std::vector<int32_t>> encode(std::string_view, const EncodeOptions&) const override {
    return unimplemented("not needed");
  }
  void append_bytes(std::span<const int32_t>, int32_t id, std::string& out) const override {
    out += tokens_[static_cast<size_t>(id)];
  }
  std::string token_to_string(int32_t id) const override { return tokens_[static_cast<size_t>(id)]; }
  std::optional<int32_t> string_to_token(std::string_view token) const override {
    const auto found = std::ranges::find(tokens_, token);
    if (found == tokens_.end()) return std::nullopt;
    return static_cast<int32_t>(found - tokens_.begin());
  }
  bool is_special(int32_t id) const override { return id < 4; }
  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }

 private:
  std::vector<std::string> tokens_;
};

// The task's token stands at the begin of the decoder prompt; a question stands behind it.
TEST(DonutAnswers, AreOfTheWholeSequenceWithoutItsTask) {
  TestFolder folder;
  folder.write("config.json",
               R"({"model_type": "vision-encoder-decoder", "architectures": ["VisionEncoderDecoderModel"],
      "encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart", "vocab_size": 9},
      "eos_token_id": 1, "pad_token_id": 0})");
  folder.write("preprocessor_config.json", R"({"image_processor_type": "DonutImageProcessor"})");
  const ModelConfig config = ModelConfig::load(folder.path()).value();
  const auto answers = make_composite_answers(config).value();
  ASSERT_NE(answers, nullptr);
  const Spelling tokenizer({"<pad>", "</s>", "<s_docvqa>", "<s_question>", "</s_question>", "<s_answer>", "</s_answer>",
                            "Who?", "<yes/>", " I"});
  RequestOutput output;
  output.prompt_token_ids = {2, 3, 7, 4, 5};
  output.outputs.resize(3);
  output.outputs[0].token_ids = {9, 6, 1};
  output.outputs[1].token_ids = {8, 6, 1, 0, 0};
  output.outputs[2].token_ids = {9};
  add_structured(*answers, tokenizer, output);
  EXPECT_EQ(output.outputs[0].structured->dump(), R"({"question": "Who?", "answer": "I"})");
  EXPECT_EQ(output.outputs[1].structured->dump(), R"({"question": "Who?", "answer": "yes"})");
  EXPECT_EQ(output.outputs[2].structured->dump(), R"({"question": "Who?"})");
  folder.write("preprocessor_config.json", R"({"image_processor_type": "NougatImageProcessor"})");
  EXPECT_EQ(make_composite_answers(config).value(), nullptr) << "Nougat writes pages";
}

// By the task word that the prompt begins with, in pixels of the picture that was sent.
TEST(FlorenceAnswers, AreOfTheTaskOfThePrompt) {
  const auto answers = make_florence2_answers(ModelConfig()).value();
  std::vector<std::string> tokens = {"<s>", "<pad>", "</s>", "car", "Cars."};
  for (int i = 0; i < 1000; i += 100) tokens.push_back(str_cat("<loc_", i, ">"));
  const Spelling tokenizer(tokens);
  RequestOutput output;
  output.outputs.resize(1);
  output.outputs[0].token_ids = {2, 0, 3, 5, 6, 7, 8, 2, 1};
  output.encoder_prompt = "<OD>";
  add_structured(*answers, tokenizer, output);
  EXPECT_EQ(output.outputs[0].structured->dump(), "null") << "the picture's sizes are not known";
  output.images = {{{.width = 1000, .height = 2000}, 577}};
  add_structured(*answers, tokenizer, output);
  EXPECT_EQ(output.outputs[0].structured->dump(),
            florence_answer("<OD>", "car<loc_0><loc_100><loc_200><loc_300>", 1000, 2000).dump());
  const Json& box = output.outputs[0].structured->find("<OD>")->find("bboxes")->as_array().at(0);
  EXPECT_NEAR(box.as_array().at(3).as_double(), 601, 1e-3) << "the middle of a thousandth";
  output.encoder_prompt = "<CAPTION_TO_PHRASE_GROUNDING>a car";
  add_structured(*answers, tokenizer, output);
  EXPECT_NE(output.outputs[0].structured->find("<CAPTION_TO_PHRASE_GROUNDING>"), nullptr);
  output.encoder_prompt = "What is it?";
  output.outputs[0].token_ids = {0, 4, 2};
  add_structured(*answers, tokenizer, output);
  EXPECT_EQ(output.outputs[0].structured->dump(), R"({"What is it?": "Cars."})");
}

}  // namespace
}  // namespace transept::testing
