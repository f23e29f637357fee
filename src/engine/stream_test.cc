// Proves that a streamed answer, put together, is the answer that is not streamed, in every field, whatever ends it;
// that each step's tokens are told after it; that no piece ends inside a character; and that what may be cut off is not
// sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/utf8.h"
#include "engine/engine_testing.h"
#include "engine/llm_engine.h"
#include "engine/stream_deltas.h"

namespace transept {
namespace {

using testing::FakeExecutor;

// A token is the bytes that the test gives it.
class TableTokenizer final : public Tokenizer {
 public:
  explicit TableTokenizer(std::vector<std::string> table) : table_(std::move(table)) {}

  StatusOr<std::vector<int32_t>> encode(std::string_view, const EncodeOptions&) const override {
    return unimplemented("not needed here");
  }
  void append_bytes(std::span<const int32_t>, int32_t token_id, std::string& out) const override {
    out += table_.at(static_cast<size_t>(token_id));
  }
  std::string token_to_string(int32_t token_id) const override { return table_.at(static_cast<size_t>(token_id)); }
  std::optional<int32_t> string_to_token(std::string_view) const override { return std::nullopt; }
  bool is_special(int32_t) const override { return false; }
  int32_t vocab_size() const override { return static_cast<int32_t>(table_.size()); }

 private:
  std::vector<std::string> table_;
};

std::unique_ptr<LLMEngine> make_engine(const Tokenizer& tokenizer, const Clock& clock) {
  const LLMEngine::Options options = testing::small_engine_options(24);  // tight, so that sequences are preempted
  return std::make_unique<LLMEngine>(options, std::make_unique<FakeExecutor>(), &tokenizer, clock);
}

EncoderDecoderInputs inputs() {
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids({3, 4, 5});
  inputs.prompt_token_ids = {2};
  return inputs;
}

void expect_equal(const RequestOutput& streamed, const RequestOutput& plain) {
  EXPECT_EQ(streamed.finished, plain.finished);
  EXPECT_EQ(streamed.request_id, plain.request_id);
  EXPECT_EQ(streamed.encoder_prompt_token_ids, plain.encoder_prompt_token_ids);
  EXPECT_EQ(streamed.prompt_token_ids, plain.prompt_token_ids);
  EXPECT_EQ(streamed.error, plain.error);
  EXPECT_EQ(streamed.prompt_logprobs.has_value(), plain.prompt_logprobs.has_value());
  EXPECT_EQ(streamed.metrics.total_s, plain.metrics.total_s);
  ASSERT_EQ(streamed.outputs.size(), plain.outputs.size());
  for (size_t i = 0; i < plain.outputs.size(); ++i) {
    const CompletionOutput &a = streamed.outputs[i], &b = plain.outputs[i];
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.token_ids, b.token_ids);
    EXPECT_EQ(a.cumulative_logprob, b.cumulative_logprob);
    EXPECT_EQ(a.finish_reason, b.finish_reason);
    EXPECT_EQ(a.stop_reason, b.stop_reason);
    EXPECT_EQ(a.alignments, b.alignments);
    ASSERT_EQ(a.logprobs.has_value(), b.logprobs.has_value());
    if (!a.logprobs.has_value()) continue;
    ASSERT_EQ(a.logprobs->size(), b.logprobs->size());
    for (size_t t = 0; t < a.logprobs->size(); ++t) {
      EXPECT_EQ((*a.logprobs)[t].at(0).token_id, (*b.logprobs)[t].at(0).token_id);
    }
  }
}

bool is_whole_characters(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (step.kind != Utf8Step::Kind::kValid) return false;
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return true;
}

// Halves of characters, bytes that are none, stop strings whole and in parts.
const std::vector<std::string> kPieces = {"a",    "b", "ab",   "\n",   "E",    "EN",       "ND",   "END",
                                          "x y",  "é", "\xC3", "\xA9", "\xFF", "\xE2\x82", "\xAC", "\xF0\x9F\x98",
                                          "\x80", "",  "aab"};
const std::vector<std::string> kStops = {"ab", "aab", "END", "é", "\n\n", "b\n", "EEND"};

// Two engines in step with each other, one of them streaming.
class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> table(FakeExecutor::kVocabSize);
    for (std::string& piece : table) piece = kPieces[random_() % kPieces.size()];
    tokenizer_ = std::make_unique<TableTokenizer>(std::move(table));
    plain_ = make_engine(*tokenizer_, clock_);
    streaming_ = make_engine(*tokenizer_, clock_);
    whole_.clear();
  }

  void add(const std::string& id, const SamplingParams& params) {
    ASSERT_TRUE(plain_->add_request(id, inputs(), params).ok());
    ASSERT_TRUE(streaming_->add_request(id, inputs(), params, {.stream = true}).ok());
  }

  SamplingParams random_params() {
    const auto below = [&](uint64_t end) { return static_cast<int32_t>(random_() % end); };
    SamplingParams params;
    params.max_tokens = 1 + below(20);
    params.seed = random_() % 1000;
    params.n = below(4) == 0 ? 1 + below(3) : 1;
    params.min_tokens = below(3) == 0 ? below(params.max_tokens) : 0;
    for (int32_t i = below(4); i > 0; --i) params.stop.push_back(kStops[random_() % kStops.size()]);
    if (below(2) == 0) params.eos_token_ids = {below(FakeExecutor::kVocabSize)};
    if (below(4) == 0) params.stop_token_ids = {below(FakeExecutor::kVocabSize)};
    params.include_stop_str_in_output = below(3) == 0;
    if (below(2) == 0) params.logprobs = 0;
    params.return_alignments = below(4) == 0;
    return params;
  }

  void abort_some() {
    if (random_() % 30 != 0 || whole_.empty()) return;
    const std::string id = whole_.begin()->first;
    StatusOr<RequestOutput> plain = plain_->abort_request(id), last = streaming_->abort_request(id);
    ASSERT_EQ(plain.ok(), last.ok());
    if (!plain.ok()) return;
    end(std::move(*last), *plain);
  }

  void end(RequestOutput&& last, const RequestOutput& plain) {
    RequestOutput& whole = whole_[plain.request_id];
    merge_delta(whole, std::move(last));
    expect_equal(whole, plain);
    for (CompletionOutput& output : whole.outputs) EXPECT_TRUE(is_whole_characters(output.text));
    whole_.erase(plain.request_id);
    ++num_compared_;
  }

  void step() {
    std::vector<RequestOutput> plain, pieces;
    ASSERT_TRUE(plain_->step(plain).ok());
    ASSERT_TRUE(streaming_->step(pieces).ok());
    ASSERT_EQ(streaming_->stats().num_generated_tokens, plain_->stats().num_generated_tokens);
    size_t num_finished = 0;
    for (RequestOutput& piece : pieces) {
      num_pieces_ += piece.finished ? 0 : 1;
      if (!piece.finished) {
        for (const CompletionOutput& output : piece.outputs) {
          EXPECT_TRUE(is_whole_characters(output.text));
          EXPECT_GE(output.token_ids.size(), 1u);
        }
        merge_delta(whole_[piece.request_id], std::move(piece));
        continue;
      }
      ASSERT_LT(num_finished, plain.size());
      ASSERT_EQ(piece.request_id, plain[num_finished].request_id);
      end(std::move(piece), plain[num_finished++]);
    }
    EXPECT_EQ(num_finished, plain.size());
    clock_.advance(std::chrono::milliseconds(3));
  }

  std::mt19937_64 random_{20};
  FakeClock clock_;
  std::unique_ptr<TableTokenizer> tokenizer_;
  std::unique_ptr<LLMEngine> plain_, streaming_;
  std::map<std::string, RequestOutput> whole_;  // of requests in flight: their pieces so far
  int64_t num_compared_ = 0, num_pieces_ = 0;
};

TEST_F(StreamTest, PiecesTogetherAreTheWholeAnswer) {
  int64_t num_preemptions = 0;
  for (int round = 0; round < 150; ++round) {
    SetUp();
    for (int i = 0; i < 8; ++i) add(str_cat(round, ".", i), random_params());
    while (plain_->has_unfinished_requests() && !HasFailure()) {
      step();
      abort_some();
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
    EXPECT_FALSE(streaming_->has_unfinished_requests());
    num_preemptions += streaming_->stats().num_preemptions;
  }
  EXPECT_GT(num_preemptions, 0);
  EXPECT_EQ(num_compared_, 150 * 8);
  EXPECT_GT(num_pieces_, 2000);
}

// Stop strings, end tokens and limits cut inside a draft exactly where they cut token by token.
TEST_F(StreamTest, DraftsChangeNothingOfWhatEndsAnAnswer) {
  int64_t num_drafts = 0, num_accepted = 0;
  for (int round = 0; round < 150; ++round) {
    SetUp();
    LLMEngine::Options options = testing::small_engine_options(24);
    options.speculation.is_adaptive = false;
    options.speculation.num_speculative_tokens = 1 + round % 9;
    LLMEngine drafting(options, std::make_unique<FakeExecutor>(), tokenizer_.get(), clock_);
    std::map<std::string, RequestOutput> plain, whole;
    for (int i = 0; i < 8; ++i) {
      const std::string id = str_cat(round, ".", i);
      SamplingParams params = random_params();
      ASSERT_TRUE(plain_->add_request(id, inputs(), params).ok());
      params.draft_token_ids = testing::foretold(params.seed, params.max_tokens);
      for (int32_t& token : params.draft_token_ids) token = random_() % 4 == 0 ? 7 : token;
      ASSERT_TRUE(drafting.add_request(id, inputs(), params, {.stream = i % 2 == 0}).ok());
    }
    std::vector<RequestOutput> outputs, pieces;
    while (plain_->has_unfinished_requests()) ASSERT_TRUE(plain_->step(outputs).ok());
    while (drafting.has_unfinished_requests()) {
      ASSERT_TRUE(drafting.step(pieces).ok());
      ASSERT_EQ(drafting.scheduler().check_invariants(), ok_status());
    }
    for (RequestOutput& piece : pieces) {
      for (const CompletionOutput& output : piece.outputs) EXPECT_TRUE(is_whole_characters(output.text));
      merge_delta(whole[piece.request_id], std::move(piece));
    }
    for (const RequestOutput& output : outputs) expect_equal(whole.at(output.request_id), output);
    EXPECT_EQ(drafting.stats().num_generated_tokens, plain_->stats().num_generated_tokens);
    testing::expect_nothing_left(drafting);
    num_drafts += drafting.stats().drafts.num_draft_tokens;
    num_accepted += drafting.stats().drafts.num_accepted_tokens;
  }
  EXPECT_GT(num_drafts, 2000);
  EXPECT_GT(num_accepted, 1000);
}

TEST_F(StreamTest, EveryStepsTokensComeAfterIt) {
  SamplingParams params;
  params.max_tokens = 5;
  params.logprobs = 0;
  ASSERT_TRUE(streaming_->add_request("a", inputs(), params, {.stream = true}).ok());
  for (int32_t i = 0; i < 5; ++i) {
    std::vector<RequestOutput> pieces;
    ASSERT_TRUE(streaming_->step(pieces).ok());
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].finished, i == 4);
    EXPECT_EQ(pieces[0].outputs.at(0).token_ids, std::vector<int32_t>{FakeExecutor::token(0, 0, i)});
    EXPECT_EQ(pieces[0].outputs[0].logprobs->size(), 1u);
    EXPECT_EQ(pieces[0].encoder_prompt_token_ids.empty(), i < 4) << "prompts come with the end";
  }
}

TEST_F(StreamTest, TheBeginningOfAStopStringIsHeldBackUntilItIsNone) {
  std::vector<std::string> table(FakeExecutor::kVocabSize, "?");
  const std::vector<std::string> words = {"Is it the E", "N", "Z? No, the EN", "D", "of it"};
  for (size_t i = 0; i < words.size(); ++i) table[i * 3] = words[i];  // seed 0: token 3 * position
  const TableTokenizer tokenizer(table);
  const std::unique_ptr<LLMEngine> engine = make_engine(tokenizer, clock_);
  SamplingParams params;
  params.max_tokens = 5;
  params.stop = {"END"};
  ASSERT_TRUE(engine->add_request("a", inputs(), params, {.stream = true}).ok());
  std::vector<std::string> texts;
  texts.reserve(5);
  std::vector<RequestOutput> pieces;
  while (engine->has_unfinished_requests()) ASSERT_TRUE(engine->step(pieces).ok());
  for (const RequestOutput& piece : pieces) texts.push_back(piece.outputs[0].text);
  EXPECT_THAT(texts, ::testing::ElementsAre("Is it the ", "", "ENZ? No, the ", ""));
}

TEST_F(StreamTest, AnswersThatAreChosenAtTheEndComeAtTheEnd) {
  SamplingParams best_of;
  best_of.max_tokens = 6;
  best_of.best_of = 3;
  best_of.temperature = 1;
  SamplingParams score;
  score.max_tokens = 1;
  score.score_only = true;
  for (const SamplingParams& params : {best_of, score}) {
    ASSERT_TRUE(streaming_->add_request("a", inputs(), params, {.stream = true}).ok());
    std::vector<RequestOutput> pieces;
    while (streaming_->has_unfinished_requests()) ASSERT_TRUE(streaming_->step(pieces).ok());
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_TRUE(pieces[0].finished);
    EXPECT_EQ(pieces[0].outputs.size(), params.score_only ? 0u : 1u);
  }
}

}  // namespace
}  // namespace transept
