// Proves the whole engine over a real (tiny, random) model: texts do not depend on backend, level, block size, pool,
// preemption, arrival or company; what is computed once is computed once; a steady step allocates nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "async/async_engine.h"
#include "base/allocation_count_testing.h"
#include "engine/stream_deltas.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using testing::Request;
using testing::TinyBart;
using testing::TinyModelTest;
using Texts = std::map<std::string, std::vector<std::vector<int32_t>>>;

class EndToEndTest : public TinyModelTest {
 protected:
  EngineConfig config() const {
    EngineConfig config = TinyModelTest::config();
    config.max_num_seqs = 8;
    return config;
  }

  // Twelve of different lengths, greedy, sampled and with beams, one and several outputs.
  static std::vector<Request> requests() {
    std::vector<Request> list;
    for (int32_t i = 0; i < 12; ++i) {
      Request request;
      request.id = str_cat("r", i);
      std::vector<int32_t> ids;
      ids.reserve(64);
      for (int32_t j = 0; j < 1 + (i * 7) % 30; ++j) ids.push_back((i * 5 + j * 3) % 40);
      request.inputs.set_encoder_ids(std::move(ids));
      request.inputs.prompt_token_ids = {2, 0};
      for (int32_t j = 0; j < i % 5; ++j) request.inputs.prompt_token_ids.push_back(4 + j);
      request.params.max_tokens = 3 + (i * 11) % 25;
      request.params.seed = static_cast<uint64_t>(i);
      request.params.temperature = i % 3 == 0 ? 0.0f : 1.0f;
      request.params.n = i % 4 == 1 ? 3 : 1;
      request.params.num_beams = i % 4 == 2 ? 3 : 1;
      request.params.eos_token_ids = {2};
      list.push_back(std::move(request));
    }
    return list;
  }

  // Adds a request every `gap` steps. Without log-probabilities, which differ by level.
  static Texts run(LLMEngine& engine, const std::vector<Request>& list, size_t gap = 0) {
    Texts texts;
    for (const auto& [id, answer] : TinyModelTest::run(engine, list, gap)) {
      for (const auto& [token_ids, logprob] : answer) texts[id].push_back(token_ids);
    }
    expect_nothing_left(engine);
    return texts;
  }
};

TEST_F(EndToEndTest, TextsDoNotDependOnHowTheyAreComputed) {
  LoadedModel plain = load(config());
  const std::vector<Request> list = requests();
  const Texts expected = run(*plain.engine, list);
  for (const Isa isa : present_isas()) {
    EngineConfig other = config();
    other.isa = isa_name(isa);
    EXPECT_EQ(run(*load(other).engine, list), expected) << isa_name(isa);
  }
  for (const char* backend : {"reference", "cpu"}) {
    for (const int32_t block_size : {1, 4, 16, 32}) {
      EngineConfig other = config();
      other.attention_backend = backend;
      other.block_size = block_size;
      EXPECT_EQ(run(*load(other).engine, list), expected) << backend << " block size " << block_size;
    }
  }
  for (const int32_t threads : {1, 3}) {
    EngineConfig other = config();
    other.threads = threads;
    EXPECT_EQ(run(*load(other).engine, list), expected) << threads << " threads";
  }
}

TEST_F(EndToEndTest, TextsDoNotDependOnCompanyArrivalOrPool) {
  LoadedModel plain = load(config());
  const std::vector<Request> list = requests();
  const Texts expected = run(*plain.engine, list);
  EXPECT_EQ(run(*plain.engine, list, 3), expected) << "trickling in";
  std::vector<Request> reversed(list.rbegin(), list.rend());
  EXPECT_EQ(run(*plain.engine, reversed), expected) << "the other way round";
  for (const Request& request : list) {
    EXPECT_EQ(run(*plain.engine, {request}).at(request.id), expected.at(request.id)) << "alone";
  }
  for (const char* mode : {"recompute", "swap", "auto"}) {
    EngineConfig tiny = config();
    tiny.preemption_mode = mode;
    tiny.kv_cache_memory = 30 * 512;  // blocks of 512 bytes: the largest group wants 28
    tiny.max_model_len = 40;
    LoadedModel model = load(tiny);
    EXPECT_EQ(run(*model.engine, list), expected) << mode;
    EXPECT_GT(model.engine->stats().num_preemptions, 0) << mode << ": the pool was not tiny";
    if (std::string_view(mode) == "swap") {
      EXPECT_GT(model.engine->executor_stats().bytes_swapped_out, 0u);
      EXPECT_GT(model.engine->executor_stats().bytes_swapped_in, 0u);
    }
  }
}

TEST_F(EndToEndTest, TextsDoNotDependOnTheThreadThatRunsTheEngine) {
  LoadedModel model = load(config());
  const std::vector<Request> list = requests();
  const Texts expected = run(*model.engine, list);
  // Loaded here, run over there, with its pool of compute threads; half of the answers are streamed.
  AsyncEngine async(std::move(model.engine), {}, clock_);
  std::vector<RequestStream> streams;
  for (const Request& request : list) {
    StatusOr<RequestStream> stream = async.add_request(
        {.id = request.id, .inputs = request.inputs, .params = request.params, .stream = streams.size() % 2 == 0});
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(stream).value());
  }
  Texts texts;
  for (RequestStream& stream : streams) {
    RequestOutput whole;
    while (!whole.finished) {
      StatusOr<RequestOutput> piece = stream.next();
      ASSERT_TRUE(piece.ok()) << piece.status();
      merge_delta(whole, std::move(piece).value());
    }
    for (const CompletionOutput& output : whole.outputs) texts[whole.request_id].push_back(output.token_ids);
  }
  EXPECT_EQ(texts, expected);
  model.engine = async.stop();
  EXPECT_EQ(run(*model.engine, list), expected) << "and back here";
}

TEST_F(EndToEndTest, StreamedBeamsComeAtTheEnd) {
  LoadedModel model = load(config());
  Request request = requests()[3];
  request.params.num_beams = 4;
  request.params.n = 2;
  const Texts expected = run(*model.engine, {request});
  ASSERT_TRUE(model.engine->add_request("b", request.inputs, request.params, {.stream = true}).ok());
  std::vector<RequestOutput> outputs;
  while (model.engine->has_unfinished_requests()) ASSERT_TRUE(model.engine->step(outputs).ok());
  ASSERT_EQ(outputs.size(), 1u);
  ASSERT_EQ(outputs[0].outputs.size(), 2u);
  EXPECT_EQ(outputs[0].outputs[1].token_ids, expected.at(request.id)[1]);
}

TEST_F(EndToEndTest, EncodesOnceForAnyNumberOfOutputsAndBeams) {
  EngineConfig wide = config();
  wide.max_num_seqs = 16;
  for (const bool beams : {false, true}) {
    LoadedModel model = load(wide);
    Request request = requests()[1];
    request.params.n = 16;
    request.params.num_beams = beams ? 16 : 1;
    const Texts texts = run(*model.engine, {request});
    EXPECT_EQ(texts.at(request.id).size(), 16u);
    EXPECT_EQ(model.engine->executor_stats().num_encoder_runs, 1);
    EXPECT_EQ(model.engine->executor_stats().num_cross_kv_writes, 1);
    EXPECT_EQ(model.engine->scheduler().blocks().get_num_free_device_blocks(),
              model.engine->scheduler().blocks().num_device_blocks());
  }
}

// Beams share everything before they part: the only KV that moves is a last block that two of them write to.
TEST_F(EndToEndTest, BeamsCopyNoMoreThanALastBlockABeam) {
  Request request = requests()[3];
  request.inputs.prompt_token_ids.assign(20, 5);
  request.params = {};
  request.params.num_beams = 4;
  request.params.max_tokens = 8;
  LoadedModel model = load(config());
  std::vector<RequestOutput> finished;
  ASSERT_TRUE(model.engine->add_request(request.id, request.inputs, request.params).ok());
  const TinyBart bart;
  const auto block_bytes = static_cast<uint64_t>(bart.decoder_layers * 2 * 4 * bart.d_model) * sizeof(float);
  uint64_t before = 0, total = 0;
  for (int step = 0; model.engine->has_unfinished_requests(); ++step) {
    ASSERT_TRUE(model.engine->step(finished).ok());
    const uint64_t copied = model.engine->executor_stats().bytes_copied;
    EXPECT_LE(copied - before, 3 * block_bytes) << "step " << step;
    // 20 prompt tokens fill 5 blocks: when the beams part they begin new ones.
    if (step <= 1) {
      EXPECT_EQ(copied, 0u) << "step " << step;
    }
    before = total = copied;
  }
  EXPECT_GT(total, 0u) << "beams that never parted inside a block prove nothing";
}

TEST_F(EndToEndTest, ScoringGivesTheAlignmentsOfTheAnswerThatItScores) {
  LoadedModel model = load(config());
  Request request = requests()[4];
  request.params.temperature = 0;
  request.params.max_tokens = 12;
  request.params.return_alignments = true;
  for (const int32_t beams : {1, 3}) {
    request.params.num_beams = beams;
    request.params.score_only = false;
    std::vector<RequestOutput> finished;
    ASSERT_TRUE(model.engine->add_request("generate", request.inputs, request.params).ok());
    while (model.engine->has_unfinished_requests()) ASSERT_TRUE(model.engine->step(finished).ok());
    const CompletionOutput& answer = finished.at(0).outputs.at(0);
    ASSERT_TRUE(answer.alignments.has_value());
    ASSERT_EQ(answer.alignments->size(), answer.token_ids.size());
    Request scored = request;
    scored.params.score_only = true;
    scored.params.num_beams = 1;
    std::vector<int32_t>& prompt = scored.inputs.prompt_token_ids;
    const size_t num_prompt = prompt.size();
    prompt.insert(prompt.end(), answer.token_ids.begin(), answer.token_ids.end());
    ASSERT_TRUE(model.engine->add_request("score", scored.inputs, scored.params).ok());
    while (model.engine->has_unfinished_requests()) ASSERT_TRUE(model.engine->step(finished).ok());
    const std::vector<int32_t>& alignments = finished.at(1).prompt_alignments.value();
    EXPECT_EQ(alignments.at(0), -1);
    EXPECT_EQ(std::vector<int32_t>(alignments.begin() + static_cast<std::ptrdiff_t>(num_prompt), alignments.end()),
              *answer.alignments);
    EXPECT_GT(std::set<int32_t>(alignments.begin(), alignments.end()).size(), 2u);
  }
}

// Every layer of the model crosses: without something to cross, its answers would mean nothing.
TEST_F(EndToEndTest, ARequestWithNothingToEncodeIsRefusedByAWholeSentence) {
  LoadedModel model = load(config());
  Request request = requests()[4];
  request.inputs.items.clear();
  const Status refused = model.engine->add_request("alone", request.inputs, request.params);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(error_param(refused), "prompt");
  EXPECT_EQ(error_message(refused),
            "every decoder layer of this model (bart) reads an encoder prompt, and the request has none: give one to "
            "encode");
  EXPECT_FALSE(model.engine->has_unfinished_requests());
}

TEST_F(EndToEndTest, ADecodeStepComputesNoEncoderNorCrossProducts) {
  LoadedModel model = load(config());
  std::vector<RequestOutput> finished;
  Request request = requests()[3];
  request.params.eos_token_ids.clear();
  ASSERT_TRUE(model.engine->add_request(request.id, request.inputs, request.params).ok());
  const auto step = [&] {
    const int64_t before = model.engine->executor_stats().num_matmuls;
    EXPECT_TRUE(model.engine->step(finished).ok());
    return model.engine->executor_stats().num_matmuls - before;
  };
  const TinyBart bart;
  const int64_t decoder = 6 * bart.decoder_layers + 1;  // qkv, out, q, out, up, down; and the output layer
  EXPECT_EQ(step(), 4 * bart.encoder_layers + bart.decoder_layers + decoder);
  EXPECT_EQ(step(), decoder);
  EXPECT_EQ(step(), decoder);
}

// With drafts of random truth some are accepted and some given back; they end the requests in fewer steps.
TEST_F(EndToEndTest, ASteadyStepAllocatesNothing) {
  for (const bool drafts : {false, true}) {
    SCOPED_TRACE(drafts ? "with drafts" : "without drafts");
    EngineConfig plain = config();
    plain.debug_poison = false;
    if (drafts) plain.speculative_config = R"({"method": "random", "num_speculative_tokens": 4})";
    LoadedModel model = load(plain);
    std::vector<Request> list = requests();
    std::vector<RequestOutput> finished;
    finished.reserve(64);
    for (int round = 0; round < 2; ++round) {  // the first round warms every buffer up
      for (size_t i = 0; i < 6; ++i) {
        list[i].params.max_tokens = 40;
        list[i].params.n = list[i].params.num_beams = 1;
        list[i].params.eos_token_ids.clear();
        list[i].params.temperature = i % 2 == 0 ? 0.0f : 0.8f;
        list[i].params.top_p = 0.9f;
        ASSERT_TRUE(model.engine->add_request(list[i].id, list[i].inputs, list[i].params).ok());
      }
      for (int warm_up = 0; warm_up < 3; ++warm_up) ASSERT_TRUE(model.engine->step(finished).ok());
      const int64_t before = testing::num_allocations(), drafted = model.engine->stats().drafts.num_draft_tokens;
      for (int step = 0; step < (drafts ? 10 : 30); ++step) ASSERT_TRUE(model.engine->step(finished).ok());
      if (round == 1) {
        EXPECT_EQ(testing::num_allocations() - before, 0);
        EXPECT_EQ(model.engine->stats().drafts.num_draft_tokens > drafted, drafts);
      }
      while (model.engine->has_unfinished_requests()) ASSERT_TRUE(model.engine->step(finished).ok());
      finished.clear();
    }
  }
}

TEST_F(EndToEndTest, APoolTooSmallForOneLongestRequestSaysWhatToChange) {
  EngineConfig tiny = config();
  tiny.kv_cache_memory = 4096;
  const StatusOr<LoadedModel> model = load_engine(tiny, clock_);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(error_message(model.status()), ::testing::HasSubstr("--kv-cache-memory"));
  EXPECT_THAT(error_message(model.status()), ::testing::HasSubstr("--max-model-len"));
}

TEST_F(EndToEndTest, LargestLoadsFitTheMeasuredStepMemory) {
  EngineConfig config_ = config();
  config_.max_num_batched_tokens = 64;
  config_.max_num_encoder_tokens = 96;
  config_.share_identical_inputs = false;  // the load is to be large
  LoadedModel model = load(config_);
  std::vector<Request> list;
  for (int32_t i = 0; i < 24; ++i) {
    Request request;
    request.id = str_cat(i);
    request.inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(i % 2 == 0 ? 60 : 3), 5));
    request.inputs.prompt_token_ids.assign(i % 3 == 0 ? 60 : 1, 2);
    request.params.max_tokens = 3;
    request.params.prompt_logprobs = 2;
    request.params.logprobs = 5;
    list.push_back(std::move(request));
  }
  EXPECT_EQ(run(*model.engine, list).size(), 24u);
}

}  // namespace
}  // namespace transept
