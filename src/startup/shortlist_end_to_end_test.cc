// Proves over a real (tiny, random) Marian model that requests generate what its shortlist allows and nothing else;
// that copied outputs give the bits of scores picked out of all ids', in every type of weights, whatever stands beside
// a request, is preempted or aborted; and which file is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/allocation_count_testing.h"
#include "rank/local_executor.h"
#include "startup/shortlist_file.h"
#include "startup/tiny_model_testing.h"
#include "weights/shortlist_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::Answers;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Request;
using ::testing::StartsWith;
using testing::TestShortlist;

constexpr int32_t kVocab = 500, kEos = 2;

class ShortlistEndToEndTest : public testing::TinyModelTest {
 protected:
  ShortlistEndToEndTest() {
    // Wide enough for int8.
    testing::TinyBart tiny{.vocab_size = kVocab, .d_model = 192, .heads = 4, .ffn = 192, .encoder_layers = 1};
    std::vector<testing::TestTensor> tensors = tiny.tensors();
    std::erase_if(tensors, [](const testing::TestTensor& tensor) {
      return tensor.name.find("embed_positions") != std::string::npos ||
             tensor.name.find("layernorm_embedding") != std::string::npos;
    });
    tiny.write(dir_, tensors);
    std::string config = tiny.config();
    config.replace(config.find("\"bart\""), 6, "\"marian\"");
    config.replace(config.find("BartForConditionalGeneration"), 28, "MarianMTModel");
    dir_.write("config.json", config);
    // The commonest leave the end token out: it is allowed all the same.
    std::mt19937 random(3);
    std::vector<std::vector<uint32_t>> lists(static_cast<size_t>(kVocab));
    for (std::vector<uint32_t>& list : lists) {
      for (auto i = random() % 9; i > 0; --i) list.push_back(static_cast<uint32_t>(random() % kVocab));
    }
    file_ = TestShortlist::of(2, lists).bytes();
    dir_.write("lex.s2t.bin", file_);
  }

  EngineConfig config() const {
    EngineConfig config = TinyModelTest::config();
    config.max_model_len = 40;
    config.shortlist_parts = 100;  // for all of them at once
    return config;
  }
  static const GroupShortlists& shortlists_of(const LoadedModel& model) {
    return *static_cast<const LocalExecutor&>(model.engine->executor()).runner().shortlists();
  }
  static EngineConfig with_parts(EngineConfig config, int64_t parts) {
    config.shortlist_parts = parts;
    return config;
  }

  Shortlist list() const {
    StatusOr<Shortlist> list = Shortlist::parse(std::as_bytes(std::span(file_)), "lex",
                                                {.source = kVocab, .target = kVocab, .is_shared = true});
    CHECK(list.ok());
    return std::move(list).value();
  }
  std::vector<int32_t> allowed(const EncoderDecoderInputs& inputs) const {
    std::vector<int32_t> also = inputs.prompt_token_ids, ids;
    also[0] = kEos;  // the start token is nobody's to generate
    list().set_of(inputs.encoder_token_ids(), also, ids);
    return ids;
  }

  // Every way to choose tokens; inputs of which some are the same, decoder prompts of tokens that no list holds.
  static std::vector<Request> requests() {
    std::vector<Request> list;
    for (int32_t i = 0; i < 18; ++i) {
      Request& request = list.emplace_back();
      request.id = str_cat("r", i);
      std::vector<int32_t> ids;
      ids.reserve(64);
      for (int32_t j = 0; j < 2 + 7 * (i % 5); ++j) ids.push_back((i % 5 * 71 + j * 37) % kVocab);
      request.inputs.set_encoder_ids(std::move(ids));
      request.inputs.prompt_token_ids = {2};
      for (int32_t j = 0; j < i % 3; ++j) request.inputs.prompt_token_ids.push_back(490 + j);
      SamplingParams& params = request.params;
      params.max_tokens = 3 + (i * 11) % 17;
      params.seed = static_cast<uint64_t>(i);
      params.eos_token_ids = {kEos};
      if (i % 3 == 1) params.temperature = 1.5f;
      if (i % 6 == 1) params.top_k = 20, params.top_p = 0.9f, params.n = 3;
      if (i % 5 == 2) params.num_beams = 3, params.n = 2, params.temperature = 0;
      if (i % 4 == 2) params.prompt_logprobs = 1;
      if (i % 4 == 0) params.logprobs = 3;
      if (i % 7 == 3) params.repetition_penalty = 1.3f, params.no_repeat_ngram_size = 2;
      if (i % 7 == 4) params.presence_penalty = 0.5f, params.min_tokens = params.min_tokens_before_eos = 2;
    }
    return list;
  }

  std::string file_;
};

TEST_F(ShortlistEndToEndTest, AnswersHoldWhatTheListsAllow) {
  const LoadedModel model = load(config());
  const Answers answers = run(*model.engine, requests());
  EngineConfig none = config();
  none.shortlist = "none";
  EXPECT_NE(run(*load(none).engine, requests()), answers) << "the shortlist was not looked at";
  size_t num_tokens = 0;
  for (const Request& request : requests()) {
    const std::vector<int32_t> ids = allowed(request.inputs);
    EXPECT_LT(ids.size(), static_cast<size_t>(kVocab) / 2);
    for (const auto& [tokens, logprob] : answers.at(request.id)) {
      EXPECT_TRUE(std::isfinite(logprob)) << request.id;
      for (const int32_t token : tokens) {
        EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), token)) << request.id << " " << token;
        ++num_tokens;
      }
    }
  }
  EXPECT_GT(num_tokens, 150u);
}

TEST_F(ShortlistEndToEndTest, CopiedOutputsGiveThePickedScoresBits) {
  for (const std::string storage : {"float32", "bfloat16", "float16", "int8"}) {
    EngineConfig fast = config();
    if (storage == "int8") {
      fast.quantization = storage;
      fast.quantization_given = true;
    } else {
      fast.dtype = storage;
    }
    const LoadedModel model = load(fast);
    EXPECT_THAT(model.info.report, Contains(AllOf(StartsWith("weights: "), HasSubstr(storage))));
    EXPECT_THAT(model.info.report, Contains(AllOf(StartsWith("shortlist: "), HasSubstr("lex.s2t.bin"))));
    const Answers answers = run(*model.engine, requests());
    EXPECT_EQ(run(*load(with_parts(fast, 0)).engine, requests()), answers) << storage << ": picked";
    EXPECT_EQ(run(*load(with_parts(fast, 3)).engine, requests()), answers) << storage << ": picked in some steps";
    fast.shortlist_parts.reset();
    EXPECT_EQ(run(*load(fast).engine, requests()), answers) << storage << ": as many parts as it has by itself";
    EXPECT_EQ(model.engine->executor_stats().num_arena_overflows, 0);
  }
}

TEST_F(ShortlistEndToEndTest, WhoStandsBesideARequestChangesNothing) {
  const Answers together = run(*load(config()).engine, requests());
  EXPECT_EQ(run(*load(config()).engine, requests(), 2), together) << "one after the other";
  EngineConfig other = config();
  other.share_identical_inputs = false;
  other.threads = 1;
  LoadedModel model = load(other);
  for (const Request& request : requests()) {
    EXPECT_EQ(run(*model.engine, {request}).at(request.id), together.at(request.id)) << request.id << " alone";
  }
}

TEST_F(ShortlistEndToEndTest, PreemptedRequestsGoOnAsIfNothingHadBeen) {
  const LoadedModel roomy = load(config());
  const Answers expected = run(*roomy.engine, requests());
  for (const char* mode : {"recompute", "swap"}) {
    EngineConfig tiny = config();
    tiny.preemption_mode = mode;
    tiny.swap_space = uint64_t{1} << 24;
    tiny.share_identical_inputs = false;
    // A block of 4 tokens of self and cross KV of the one decoder layer.
    tiny.kv_cache_memory = uint64_t{30} * 4 * 192 * 2 * sizeof(float);
    const LoadedModel model = load(tiny);
    EXPECT_EQ(run(*model.engine, requests()), expected) << mode;
    EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
  }
}

// Who has ended or was aborted has given its parts back by the next step.
TEST_F(ShortlistEndToEndTest, PartsComeBack) {
  const LoadedModel model = load(config());
  const GroupShortlists& shortlists = shortlists_of(model);
  std::vector<Request> list = requests();
  Answers answers;
  for (const Request& request : list) add(*model.engine, request);
  for (int i = 0; i < 2; ++i) step(*model.engine, answers);
  EXPECT_GT(shortlists.num_sets(), 4u);
  EXPECT_LT(shortlists.outputs().num_free(), shortlists.outputs().num_parts());
  for (const Request& request : list) {
    if (!answers.contains(request.id)) {
      EXPECT_TRUE(model.engine->abort_request(request.id).ok());
    }
  }
  list[0].params.max_tokens = 1;
  const int64_t its_own = ChosenOutputs::parts_for(std::ssize(allowed(list[0].inputs)));
  run(*model.engine, {list[0]});
  EXPECT_EQ(shortlists.num_sets(), 1u) << "the last one's, whose end no step has seen";
  EXPECT_EQ(shortlists.outputs().num_free(), shortlists.outputs().num_parts() - its_own);
}

// Scores of all ids that one of them needs serve the others, too.
TEST_F(ShortlistEndToEndTest, AStepThatWantsMorePartsThanThereArePicksForEverybody) {
  const LoadedModel model = load(with_parts(config(), 2));
  const GroupShortlists& shortlists = shortlists_of(model);
  std::vector<Request> list = requests();
  list.resize(3);
  for (Request& request : list) {
    request.params.max_tokens = 6;
    request.params.n = 1;
    EXPECT_EQ(ChosenOutputs::parts_for(std::ssize(allowed(request.inputs))), 1) << request.id;
  }
  Answers answers;
  const auto has_parts = [&](int32_t group) { return shortlists.subset(group)->copies != nullptr; };
  add(*model.engine, list[0]);
  add(*model.engine, list[1]);
  step(*model.engine, answers);
  EXPECT_TRUE(has_parts(0) && has_parts(1)) << "two fit";
  add(*model.engine, list[2]);
  step(*model.engine, answers);
  EXPECT_FALSE(has_parts(0) || has_parts(1) || has_parts(2));
  ASSERT_TRUE(model.engine->abort_request(list[0].id).ok());
  step(*model.engine, answers);
  EXPECT_TRUE(has_parts(0) && has_parts(1)) << "two again, one of them new";
}

TEST_F(ShortlistEndToEndTest, ASteadyStepAllocatesNothing) {
  for (const int64_t parts : {100, 0}) {
    EngineConfig plain = with_parts(config(), parts);
    plain.debug_poison = false;
    const LoadedModel model = load(plain);
    std::vector<RequestOutput> finished;
    finished.reserve(64);
    for (int round = 0; round < 2; ++round) {  // the first round warms every buffer up
      for (int32_t i = 0; i < 6; ++i) {
        SamplingParams params;
        params.max_tokens = 30;
        params.temperature = i % 2 == 0 ? 0.0f : 0.8f;
        params.top_p = 0.9f;
        const std::string id = str_cat("r", i);
        ASSERT_TRUE(model.engine->add_request(id, requests()[static_cast<size_t>(i)].inputs, params).ok());
      }
      for (int warm_up = 0; warm_up < 3; ++warm_up) ASSERT_TRUE(model.engine->step(finished).ok());
      const int64_t before = testing::num_allocations();
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(model.engine->step(finished).ok());
      if (round == 1) {
        EXPECT_EQ(testing::num_allocations() - before, 0) << parts << " parts";
      }
      while (model.engine->has_unfinished_requests()) ASSERT_TRUE(model.engine->step(finished).ok());
      finished.clear();
    }
  }
}

TEST_F(ShortlistEndToEndTest, PromptsAndEndTokensAreAlwaysAllowed) {
  const LoadedModel model = load(config());
  Request request;
  request.id = "r";
  request.inputs.set_encoder_ids({100});
  request.inputs.prompt_token_ids = {2, 491, 492};
  request.params.max_tokens = 5;
  request.params.eos_token_ids = {kEos};
  request.params.prompt_logprobs = 0;
  request.params.logit_bias = {{kEos, 1000.0f}, {493, 5000.0f}};  // a bias lets nothing in
  add(*model.engine, request);
  std::vector<RequestOutput> outputs;
  while (outputs.empty()) ASSERT_TRUE(model.engine->step(outputs).ok());
  EXPECT_EQ(outputs[0].outputs[0].token_ids, std::vector<int32_t>{kEos});
  ASSERT_TRUE(outputs[0].prompt_logprobs.has_value());
  ASSERT_EQ(outputs[0].prompt_logprobs->size(), 3u);
  for (size_t i = 1; i < 3; ++i) {
    const std::optional<PositionLogprobs>& position = (*outputs[0].prompt_logprobs)[i];
    ASSERT_TRUE(position.has_value() && !position->empty());
    for (const TokenLogprob& entry : *position) EXPECT_TRUE(std::isfinite(entry.logprob)) << i;
  }
}

TEST_F(ShortlistEndToEndTest, AutoTakesTheOneInTheFolder) {
  const auto error = [&](const EngineConfig& config) {
    const StatusOr<LoadedModel> model = load_engine(config, clock_);
    return model.ok() ? std::string() : error_message(model.status());
  };
  const auto report_of = [&](const EngineConfig& config) { return load(config).info.report; };
  EngineConfig named = config();
  EXPECT_THAT(report_of(named), Contains(HasSubstr("/lex.s2t.bin")));
  named.shortlist = "none";
  EXPECT_THAT(report_of(named), ::testing::Not(Contains(StartsWith("shortlist"))));
  dir_.write("lex.50.50.ende.s2t.bin", file_);
  EXPECT_THAT(error(config()),
              AllOf(HasSubstr("/lex.50.50.ende.s2t.bin, "), HasSubstr("/lex.s2t.bin"), HasSubstr("--shortlist FILE")));
  named.shortlist = dir_.path() + "/lex.50.50.ende.s2t.bin";
  EXPECT_THAT(report_of(named), Contains(HasSubstr("/lex.50.50.ende.s2t.bin: ")));
  dir_.write("text.s2t", "ein\tone\t0.5\n");
  named.shortlist = dir_.path() + "/text.s2t";
  EXPECT_THAT(error(named), AllOf(HasSubstr("/text.s2t: magic: "), HasSubstr("text: marian-conv")));
  named.shortlist = dir_.path() + "/nothing.bin";
  EXPECT_THAT(error(named), HasSubstr("/nothing.bin"));
}

TEST_F(ShortlistEndToEndTest, OnlyMarianModelsTakeOne) {
  testing::TestFolder bart;
  testing::TinyBart().write(bart);
  bart.write("lex.s2t.bin", file_);
  EngineConfig config = TinyModelTest::config();
  config.model = bart.path();
  EXPECT_TRUE(load_engine(config, clock_).ok()) << "auto looks at Marian's folders alone";
  config.shortlist = bart.path() + "/lex.s2t.bin";
  const StatusOr<LoadedModel> model = load_engine(config, clock_);
  EXPECT_THAT(error_message(model.status()), AllOf(HasSubstr("--shortlist "), HasSubstr("only Marian models")));
}

TEST_F(ShortlistEndToEndTest, ReplicasHaveEachTheirOwn) {
  EngineConfig two = config();
  two.replicas = 2;
  two.threads = 1;
  const LoadedModel model = load(two);
  const Answers expected = run(*load(config()).engine, requests());
  EXPECT_EQ(run(*model.engine, requests()), expected);
  EXPECT_EQ(run(*model.more_engines[0], requests()), expected);
}

}  // namespace
}  // namespace transept
