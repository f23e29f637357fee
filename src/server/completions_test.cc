// Completions over HTTP: every form of a prompt, lists of them, streams that are the whole in pieces, and errors by
// field.
#include "server/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "rank/fake_executor_testing.h"
#include "server/engine_call.h"
#include "server/served_model_testing.h"
#include "server/transcription_testing.h"

namespace transept {
namespace {

using testing::at;
using ::testing::HasSubstr;
using testing::ServedModel;

class Completions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    served_ = std::make_unique<ServedModel>();
    served_->load();
  }
  static void TearDownTestSuite() { served_.reset(); }

  static Json complete(std::string_view body) {
    const HttpClient::Reply reply = served_->post("/v1/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return ServedModel::json(reply);
  }
  static Json error(std::string_view body) {
    const HttpClient::Reply reply = served_->post("/v1/completions", body);
    EXPECT_EQ(reply.status, 400) << body << reply.body;
    return at(ServedModel::json(reply), "error");
  }
  static std::vector<Json> stream(std::string_view body) { return stream(*served_, body); }
  static std::vector<Json> stream(const ServedModel& served, std::string_view body) {
    std::vector<Json> chunks;
    SseReader reader;
    bool is_done = false;
    const auto take = [&](std::string_view, std::string_view data) {
      EXPECT_FALSE(is_done);
      is_done = data == "[DONE]";
      if (is_done) return;
      chunks.push_back(Json::parse(data).value());
    };
    const auto reply = served.client().post_streamed("/v1/completions", "application/json", body,
                                                     [&](std::string_view piece) { return reader.push(piece, take); });
    EXPECT_TRUE(reply.ok() && reply->status == 200) << body;
    EXPECT_TRUE(is_done);
    return chunks;
  }
  static std::string text_of(std::string_view body) { return at(complete(body), "choices", 0, "text").as_string(); }

  static std::unique_ptr<ServedModel> served_;
};
std::unique_ptr<ServedModel> Completions::served_;

TEST_F(Completions, AnswersWithOpenAisKeys) {
  const Json body = complete(R"({"prompt": "hello", "model": "g2p"})");
  EXPECT_EQ(at(body, "object").as_string(), "text_completion");
  EXPECT_EQ(at(body, "model").as_string(), "g2p");
  // As in a form: the model that there is.
  EXPECT_EQ(at(complete(R"({"prompt": "hello", "model": ""})"), "model").as_string(), "g2p");
  EXPECT_TRUE(at(body, "id").as_string().starts_with("cmpl-"));
  EXPECT_TRUE(at(body, "created").is_int());
  EXPECT_FALSE(at(body, "choices", 0, "text").as_string().empty());
  EXPECT_EQ(at(body, "choices", 0, "finish_reason").as_string(), "stop");
  EXPECT_TRUE(at(body, "choices", 0, "logprobs").is_null());
  const int64_t encoder = at(body, "usage", "prompt_tokens_details", "encoder_tokens").as_int();
  const int64_t decoder = at(body, "usage", "prompt_tokens_details", "decoder_tokens").as_int();
  EXPECT_EQ(encoder, 7);  // <s> h e l l o </s>
  EXPECT_EQ(decoder, 2);
  EXPECT_EQ(at(body, "usage", "prompt_tokens").as_int(), encoder + decoder);
  EXPECT_EQ(at(body, "usage", "total_tokens").as_int(), 9 + at(body, "usage", "completion_tokens").as_int());
}

TEST_F(Completions, MoreTextsToTranslateThanTheQueueTakesAreRefusedByName) {
  Json::Array texts(513, Json("a"));
  Json body = Json::object();
  body.set("text", std::move(texts));
  const HttpClient::Reply reply = served_->post("/v1/translate", body.dump());
  EXPECT_EQ(reply.status, 400);
  const Json refusal = at(ServedModel::json(reply), "error");
  EXPECT_EQ(at(refusal, "param").as_string(), "text");
  EXPECT_THAT(at(refusal, "message").as_string(), HasSubstr("513; at most 512"));
}

TEST_F(Completions, EveryFormOfAPromptIsTheSamePrompt) {
  const std::string text = text_of(R"({"prompt": "hello"})");
  const Json ids = at(ServedModel::json(served_->post("/tokenize", R"({"prompt": "hello"})")), "tokens");
  EXPECT_EQ(text_of(str_cat(R"({"prompt": )", ids.dump(), "}")), text);
  EXPECT_EQ(text_of(str_cat(R"({"prompt": {"prompt_token_ids": )", ids.dump(), "}}")), text);
  EXPECT_EQ(text_of(R"({"prompt": {"prompt": "hello"}})"), text);
  EXPECT_EQ(text_of(R"({"prompt": {"encoder_prompt": "hello", "decoder_prompt": null}})"), text);
}

TEST_F(Completions, AListIsABatchWhoseAnswersStandInOrder) {
  const Json body = complete(R"({"prompt": ["hello", "world", "hello"], "n": 2, "temperature": 0.8, "seed": 3})");
  ASSERT_EQ(at(body, "choices").as_array().size(), 6u);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(at(body, "choices", i, "index").as_int(), i);
  const Json alone = complete(R"({"prompt": "world", "n": 2, "temperature": 0.8, "seed": 3})");
  EXPECT_EQ(at(body, "choices", 2, "text").as_string(), at(alone, "choices", 0, "text").as_string());
  EXPECT_EQ(at(body, "choices", 3, "text").as_string(), at(alone, "choices", 1, "text").as_string());
}

TEST_F(Completions, PiecesOfAStreamAreTheWhole) {
  const std::string request =
      R"("prompt": ["encoder", "decoder"], "n": 2, "temperature": 0.9, "seed": 1, "logprobs": 2)";
  const Json whole = complete("{" + request + "}");
  std::map<int64_t, std::string> texts;
  std::map<int64_t, size_t> num_tokens, num_ends;
  const auto chunks = stream("{" + request + R"(, "stream": true, "stream_options": {"include_usage": true}})");
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    const Json& choice = at(chunks[i], "choices", 0);
    const int64_t index = at(choice, "index").as_int();
    texts[index] += at(choice, "text").as_string();
    if (at(choice, "logprobs").is_object()) {
      const auto& offsets = at(choice, "logprobs", "text_offset").as_array();
      const auto& expected = at(whole, "choices", static_cast<int>(index), "logprobs", "text_offset").as_array();
      for (size_t k = 0; k < offsets.size(); ++k) {
        EXPECT_EQ(offsets[k].as_int(), expected[num_tokens[index] + k].as_int());
      }
      num_tokens[index] += offsets.size();
    }
    num_ends[index] += at(choice, "finish_reason").is_string();
    EXPECT_TRUE(at(chunks[i], "usage").is_null());
  }
  for (int index = 0; index < 4; ++index) {
    EXPECT_EQ(texts[index], at(whole, "choices", index, "text").as_string());
    EXPECT_EQ(num_tokens[index], at(whole, "choices", index, "logprobs", "tokens").as_array().size());
    EXPECT_EQ(num_ends[index], 1u);
  }
  EXPECT_TRUE(at(chunks.back(), "choices").as_array().empty());
  EXPECT_EQ(at(chunks.back(), "usage").dump(), at(whole, "usage").dump());
}

// What the model's files ask for is cut to what can differ: choices are numbered by what is left of it.
TEST_F(Completions, AStreamNumbersItsChoicesAsTheWholeDoes) {
  const struct {
    int32_t num_return_sequences, num_beams;
    bool do_sample;
    std::string_view fields;
    int num_choices;  // of three prompts
  } cases[] = {
      {3, 1, false, "", 3},                                               // greedy: one answer
      {3, 2, false, "", 6},                                               // as many as there are beams
      {2, 1, true, R"(, "seed": 1)", 6},                                  // samples: as asked
      {3, 1, true, R"(, "temperature": 0)", 3},                           // greedy by the request
      {3, 4, false, R"(, "num_beams": 1)", 3},                            // the same
      {3, 1, false, R"(, "n": 2, "temperature": 1, "seed": 1)", 6},       // the request's own number
      {3, 1, false, R"(, "best_of": 3, "temperature": 1, "seed": 1)", 9}  // no more than n: else a stream is refused
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(str_cat(one.num_return_sequences, " of ", one.num_beams, " beams", one.fields));
    ServedModel served;
    served.load([&](LoadedModel& model) {
      model.generation.num_return_sequences = one.num_return_sequences;
      model.generation.num_beams = one.num_beams;
      model.generation.do_sample = one.do_sample;
    });
    const std::string request = str_cat(R"({"prompt": ["cat", "dog", "encyclopedia"], "max_tokens": 12)", one.fields);
    const Json whole = ServedModel::json(served.post("/v1/completions", request + "}"));
    std::map<int64_t, std::string> texts;
    for (const Json& chunk : stream(served, request + R"(, "stream": true})")) {
      texts[at(chunk, "choices", 0, "index").as_int()] += at(chunk, "choices", 0, "text").as_string();
    }
    ASSERT_EQ(at(whole, "choices").as_array().size(), static_cast<size_t>(one.num_choices));
    EXPECT_EQ(texts.size(), static_cast<size_t>(one.num_choices));
    for (int i = 0; i < one.num_choices; ++i) {
      EXPECT_EQ(at(whole, "choices", i, "index").as_int(), i);
      EXPECT_EQ(texts[i], at(whole, "choices", i, "text").as_string()) << i;
    }
  }
}

// Fails in its fourth step, by an error that is not kInternal and is the server's all the same.
class ExecutorThatLosesData final : public Executor {
 public:
  const ExecutorInfo& info() const override { return fake_.info(); }
  Status submit(const StepPlan& plan) override { return fake_.submit(plan); }
  Status collect(uint64_t step, StepOutput& output) override {
    if (++num_steps_ > 3) return absl::DataLossError("the device is gone");
    return fake_.collect(step, output);
  }
  ExecutorStats stats() const override { return fake_.stats(); }

 private:
  testing::FakeExecutor fake_;
  int num_steps_ = 0;
};

// The client is told that the log says more.
TEST(CompletionErrors, TheLogHasWhatABegunStreamDoesNotTell) {
  testing::ServerHouse house;
  LLMEngine::Options options;
  options.blocks.num_device_blocks = 64;
  const SteadyClock clock;
  AsyncEngine broken(std::make_unique<LLMEngine>(options, std::make_unique<ExecutorThatLosesData>(), nullptr, clock),
                     {}, clock);
  const ServerContext& c = house.context();
  const ServerContext context{
      c.options, c.model,   broken,         c.speech,  c.why_no_speech, c.admission, c.incoming,        c.metrics,
      c.log,     c.workers, c.long_workers, c.answers, c.transcribers,  c.clock,     c.start_time_unix, c.state};
  const auto client = std::make_shared<testing::Client>();
  const ApiCallPtr call = testing::make_call(
      context, R"({"prompt": "hello", "stream": true, "max_tokens": 20, "ignore_eos": true})", client);
  call->http.headers = {{"Content-Type", "application/json"}};
  ::testing::internal::CaptureStderr();
  handle_completion(context, call);
  for (int i = 0; i < 2000 && !client->has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(client->has_ended());
  EXPECT_TRUE(client->was_streamed());
  EXPECT_THAT(client->answer().body, HasSubstr("internal error; the server's log says more"));
  EXPECT_THAT(log, HasSubstr(R"(error internal "the device is gone" id="r")"));
}

TEST_F(Completions, AStreamEchoesThePromptOnceAndFirst) {
  const std::string request =
      R"("prompt": "hello world", "decoder_prompt": "ab", "echo": true, "logprobs": 1, "max_tokens": 8, "ignore_eos": true)";
  const Json whole = complete("{" + request + "}");
  std::string text;
  std::vector<int64_t> offsets;
  for (const Json& chunk : stream("{" + request + R"(, "stream": true})")) {
    text += at(chunk, "choices", 0, "text").as_string();
    if (const Json& places = at(chunk, "choices", 0, "logprobs", "text_offset"); places.is_array()) {
      for (const Json& place : places.as_array()) offsets.push_back(place.as_int());
    }
  }
  EXPECT_TRUE(text.starts_with("ab")) << text;
  EXPECT_EQ(text, at(whole, "choices", 0, "text").as_string());
  ASSERT_FALSE(offsets.empty());
  EXPECT_EQ(offsets.front(), 2);
}

// However much earlier than its siblings it ends.
TEST_F(Completions, EachStreamedAnswerHasThePromptsLogprobsOnceAtItsEnd) {
  constexpr std::string_view kRequest =
      R"({"prompt": "hello world", "n": 8, "temperature": 2, "seed": 1, "stop": ["e", "a", "l"], "max_tokens": 60,
          "ignore_eos": true, "prompt_logprobs": 1, "stream": true})";
  std::map<int64_t, int> num_ends, num_logprobs;
  for (const Json& chunk : stream(kRequest)) {
    const Json& choice = at(chunk, "choices", 0);
    const int64_t index = at(choice, "index").as_int();
    num_ends[index] += at(choice, "finish_reason").is_string();
    num_logprobs[index] += at(choice, "prompt_logprobs").is_array();
  }
  ASSERT_EQ(num_ends.size(), 8u);
  for (const auto& [index, count] : num_ends) {
    EXPECT_EQ(count, 1) << index;
    EXPECT_EQ(num_logprobs[index], 1) << index;
  }
}

TEST(UsageTest, CountsTokensOfBothPromptsAndOfEveryAnswerAndSecondsOfAudio) {
  RequestOutput output;
  output.encoder_prompt_token_ids = {1, 2, 3};
  output.prompt_token_ids = {4};
  output.outputs.resize(2);
  output.outputs[0].token_ids = {5, 6};
  output.outputs[1].token_ids = {7};
  Usage usage;
  usage.add(output);
  EXPECT_EQ(usage.to_json().dump(),
            R"({"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7, )"
            R"("prompt_tokens_details": {"encoder_tokens": 3, "decoder_tokens": 1, "cached_tokens": 0}})");
  output.audio_seconds = 1.5;
  usage.add(output);
  EXPECT_EQ(
      usage.to_json().dump(),
      R"({"prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14, )"
      R"("prompt_tokens_details": {"encoder_tokens": 6, "decoder_tokens": 2, "cached_tokens": 0, "audio_seconds": 1.5}})");
}

TEST(UsageTest, CachedTokensAreAPartOfThePromptsTokens) {
  RequestOutput output;  // a picture or a sound, and a prompt of four tokens
  output.prompt_token_ids = {1, 2, 3, 4};
  output.metrics.num_cached_tokens = 1502;
  output.metrics.num_cached_media = 1500;
  Usage usage;
  usage.add(output);
  const std::string said = usage.to_json().dump();
  EXPECT_THAT(said, HasSubstr(R"("cached_tokens": 2, "cached_media_tokens": 1500)"));
  EXPECT_THAT(said, HasSubstr(R"("prompt_tokens": 4)"));
}

TEST_F(Completions, BeamsAndEchoAndStops) {
  const Json beams = complete(R"({"prompt": "hello", "num_beams": 4, "n": 3})");
  EXPECT_EQ(at(beams, "choices").as_array().size(), 3u);
  const std::string plain = text_of(R"({"prompt": "hello", "decoder_prompt": "h"})");
  EXPECT_EQ(text_of(R"({"prompt": "hello", "decoder_prompt": "h", "echo": true})"), "h" + plain);
  const Json stopped = complete(R"({"prompt": "hello", "stop": ["l"]})");
  EXPECT_EQ(at(stopped, "choices", 0, "finish_reason").as_string(), "stop");
  EXPECT_EQ(at(stopped, "choices", 0, "stop_reason").as_string(), "l");
  EXPECT_THAT(at(stopped, "choices", 0, "text").as_string(), ::testing::Not(HasSubstr("l")));
  const Json inherited =
      complete(R"({"prompt": "hello", "max_tokens": 2, "prompt_logprobs": 1, "return_alignments": true})");
  EXPECT_EQ(at(inherited, "choices", 0, "finish_reason").as_string(), "length");
  EXPECT_EQ(at(inherited, "choices", 0, "prompt_logprobs").as_array().size(), 2u);
  EXPECT_EQ(at(inherited, "choices", 0, "alignments").as_array().size(), 2u);
}

TEST_F(Completions, BadWordsHoldForEveryPromptOfAListAndAreNoBooks) {
  const std::string free = text_of(R"({"prompt": "hello"})");
  ASSERT_THAT(free, HasSubstr("l"));
  const Json body = complete(R"({"prompt": ["hello", "hello"], "bad_words": ["l"]})");
  EXPECT_THAT(at(body, "choices", 0, "text").as_string(), ::testing::Not(HasSubstr("l")));
  EXPECT_EQ(at(body, "choices", 1, "text").as_string(), at(body, "choices", 0, "text").as_string());
  const Json refusal = error(str_cat(R"({"prompt": "x", "bad_words": [")", std::string(2000, 'a'), "\"]}"));
  EXPECT_EQ(at(refusal, "param").as_string(), "bad_words");
}

TEST_F(Completions, ErrorsNameTheField) {
  const auto param = [&](std::string_view body) { return at(error(body), "param").dump(); };
  EXPECT_EQ(param("{}"), R"("prompt")");
  EXPECT_EQ(param(R"({"prompt": "x", "n": 17})"), R"("n")");
  EXPECT_EQ(param(R"({"prompt": "x", "temperature": "1"})"), R"("temperature")");
  EXPECT_EQ(param(R"({"prompt": ["x", [1, 99999]]})"), R"("prompt[1]")");
  EXPECT_EQ(param(R"({"prompt": [99999]})"), R"("prompt")");
  std::string too_long = "5";
  for (int i = 0; i < 5000; ++i) too_long += ",5";
  EXPECT_EQ(param(str_cat(R"({"prompt": ["x", {"encoder_prompt": "x", "decoder_prompt": [)", too_long, "]}]}")),
            R"("decoder_prompt[1]")");
  EXPECT_EQ(param(R"({"prompt": "x", "suffix": "y"})"), R"("suffix")");
  EXPECT_EQ(param(R"({"prompt": "x", "stream": true, "num_beams": 2})"), R"("stream")");
  EXPECT_EQ(param(R"({"prompt": "x", "stream": true, "best_of": 2, "temperature": 1})"), R"("stream")");
  EXPECT_EQ(param(R"({"prompt": "x", "stream_options": {"include_usage": true}})"), R"("stream_options")");
  EXPECT_EQ(param(R"({"prompt": {"multi_modal_data": {"audio": "/etc/passwd"}}})"), R"("multi_modal_data")");
  EXPECT_EQ(param("[]"), "null");
  EXPECT_EQ(param("{"), "null");
}

TEST_F(Completions, AModelThatIsNotServedIs404) {
  const HttpClient::Reply reply = served_->post("/v1/completions", R"({"prompt": "x", "model": "other"})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(at(ServedModel::json(reply), "error", "param").as_string(), "model");
}

TEST_F(Completions, TheTextRoutesAnswer) {
  const Json score =
      ServedModel::json(served_->post("/v1/score", R"({"prompt": ["a", "b"], "decoder_prompt": ["h", "l"]})"));
  ASSERT_EQ(at(score, "data").as_array().size(), 2u);
  EXPECT_LT(at(score, "data", 1, "score").as_double(), 0);
  EXPECT_EQ(at(score, "data", 1, "prompt_token_ids").as_array().size(),
            at(score, "data", 1, "prompt_logprobs").as_array().size());
  const Json translated = ServedModel::json(served_->post("/v1/translate", R"({"text": ["hello", "world"]})"));
  EXPECT_EQ(at(translated, "translations", 1, "text").as_string(), text_of(R"({"prompt": "world"})"));
  EXPECT_EQ(served_->post("/v1/translate", R"({"text": "x", "n": 2})").status, 400);
  const Json tokens = ServedModel::json(served_->post("/tokenize", R"({"prompt": "hi", "return_token_strs": true})"));
  EXPECT_EQ(at(tokens, "count").as_int(), 4);
  EXPECT_EQ(at(tokens, "token_strs", 1).as_string(), "h");
  const Json text =
      ServedModel::json(served_->post("/detokenize", str_cat(R"({"tokens": )", at(tokens, "tokens").dump(), "}")));
  EXPECT_TRUE(at(text, "prompt").is_string());
  EXPECT_EQ(
      at(ServedModel::json(served_->post("/detokenize", R"({"tokens": [1, 99999]})")), "error", "param").as_string(),
      "tokens");
}

}  // namespace
}  // namespace transept
