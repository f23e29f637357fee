// Truth by construction: random requests through the engine, its scheduler, block manager, input batch, KV storage and
// sampling, around a model that is a hash (fake_model_executor_testing.h), against what an obvious decoder gives for
// each request on its own (obvious_decoder_testing.h). Requests arrive and are aborted at random steps; pools are tiny,
// so that groups are recomputed and swapped; every step is followed by the invariants, and nothing may stay in the end.
//
// A failure prints its seed, the engine's options and the request. TRANSEPT_PROPERTY_SEED=n runs that one history and
// prints its requests; TRANSEPT_PROPERTY_HISTORIES=n runs so many.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/checked_math.h"
#include "base/sanitized_testing.h"
#include "engine/answer_difference_testing.h"
#include "engine/llm_engine.h"
#include "engine/obvious_decoder_testing.h"
#include "engine/random_requests_testing.h"
#include "rank/fake_model_executor_testing.h"
#include "rank/loopback_executor.h"

namespace transept::testing {
namespace {

constexpr uint64_t kNumHistories = kSanitized ? 400 : 2500;

// ---- Histories

struct Totals {
  int64_t requests = 0, finished = 0, too_close = 0, aborted = 0, refused = 0, nothing_left = 0;
  int64_t beam_searches = 0, stops = 0, lengths = 0, steps = 0, encodes = 0, long_encodes = 0, over_handles = 0,
          encoder_hits = 0;
  int64_t open_tokens = 0;
  int64_t preempted = 0, swapped_out = 0, swapped_in = 0;
  int64_t drafts = 0, draft_tokens = 0, accepted = 0, preempted_with_drafts = 0;
  uint64_t bytes_copied = 0;
  int64_t prefix_queries = 0, prefix_hits = 0, evictions = 0, expirations = 0, left_cached = 0;
};

class History final {
 public:
  History(uint64_t seed, int32_t max_in_flight, FakeModelExecutor::Fault fault, bool is_verbose, Totals& totals)
      : random_(seed), is_verbose_(is_verbose), totals_(totals), options_(random_options()) {
    options_.scheduler.max_steps_in_flight = max_in_flight;
    if (max_in_flight > 1) options_.encode_slice = {};
    auto fake = std::make_unique<FakeModelExecutor>(options_.blocks, max_in_flight);
    fake->break_by(fault);
    std::unique_ptr<Executor> executor = std::move(fake);
    if (seed % 2 == 1) executor = std::make_unique<LoopbackExecutor>(std::move(executor));
    engine_ = std::make_unique<LLMEngine>(options_, std::move(executor), nullptr, clock_);
  }

  // "" or what went wrong.
  std::string run() {
    std::string problem = live();
    handles_.clear();
    engine_->collect_dropped_inputs();
    if (problem.empty()) problem = check_end();
    count_totals();
    return problem.empty() ? "" : str_cat(options_text(), "\n", problem);
  }

 private:
  LLMEngine::Options random_options() {
    LLMEngine::Options options;
    options.blocks.block_size = random_.any_of({1, 2, 3, 4, 8, 16, 32});
    // A model whose cross-attention is in fewer layers has more of its tokens in a block.
    if (random_.one_in(3)) options.blocks.specs[1].tokens_per_block = random_.any_of({1, 3, 8, 20});
    const int32_t num_slots = random_.any_of({36, 48, 64, 80, 120, 300});
    options.blocks.num_device_blocks = std::max(num_slots / options.blocks.block_size, 4);
    // Layers of other heads have tables of their own.
    for (const TableOwner owner : {TableOwner::kSequence, TableOwner::kGroup}) {
      if (!random_.one_in(3)) continue;
      options.blocks.specs.push_back({owner, random_.any_of({0, 2, 5, 16})});
      options.blocks.num_device_blocks += options.blocks.num_device_blocks / 2;
    }
    options.blocks.num_host_blocks = random_.one_in(8) ? 0 : random_.draw(1, options.blocks.num_device_blocks);
    options.blocks.watermark = random_.any_of({0.0, 0.0, 0.1});
    options.blocks.share_identical_inputs = random_.one_in(2);
    options.blocks.cache_inputs = options.blocks.share_identical_inputs && random_.one_in(2);
    if (random_.one_in(4)) options.blocks.max_cached_blocks = random_.draw(0, options.blocks.num_device_blocks / 2);
    if (random_.one_in(4)) options.blocks.cache_ttl = std::chrono::milliseconds(random_.draw(0, 20));
    options.blocks.cache_prefixes = random_.one_in(2);
    options.blocks.track_freed_blocks = true;
    options.blocks.shuffle_seed = random_.number();
    options.scheduler.max_num_seqs = random_.draw(4, 32);
    options.scheduler.max_num_batched_tokens = options.scheduler.max_num_seqs + random_.draw(0, 20);
    options.scheduler.max_num_encoder_tokens = random_.draw(12, 40);
    options.scheduler.preemption_mode = static_cast<PreemptionMode>(random_.draw(0, 2));
    // An encode takes a second a token.
    if (random_.one_in(2)) options.encode_slice = {EncodeSliceOptions::Mode::kFixed, random_.any_of({0.5, 4.0, 10.0})};
    choose_drafts(options.speculation);
    return options;
  }

  // Of any method, length and truth; in some histories only requests that bring drafts have any.
  void choose_drafts(SpeculationOptions& speculation) {
    speculation.method = random_.any_of(
        {DraftMethod::kGiven, DraftMethod::kNgram, DraftMethod::kCopy, DraftMethod::kRandom, DraftMethod::kRandom});
    speculation.num_speculative_tokens = random_.draw(1, 9);
    speculation.prompt_lookup_min = random_.draw(1, 2);
    if (speculation.method == DraftMethod::kRandom) speculation.truth = random_.any_of({0.0, 0.5, 0.9, 1.0});
    speculation.seed = random_.number();
    speculation.has_random_length = random_.one_in(2);
    speculation.is_adaptive = random_.one_in(5);
  }

  // What the request will answer, with some tokens that are wrong, too many or missing.
  std::vector<int32_t> draft_of(RandomRequest request) {
    fill_open_token(request.inputs);
    const ObviousAnswer truth = decode_obviously(request.inputs, request.params, fake_scores);
    std::vector<int32_t> draft;
    if (truth.samples.empty()) return draft;
    const int32_t rarity = random_.any_of({2, 5, 1000});
    for (const int32_t token : truth.samples.front().token_ids) {
      const int32_t fault = random_.one_in(rarity) ? random_.draw(0, 2) : 3;
      if (fault < 2) draft.push_back(random_.draw(0, kFakeVocabSize - 1));
      if (fault > 0) draft.push_back(token);
    }
    return draft;
  }

  std::string options_text() const {
    const BlockSpaceManager::Options& blocks = options_.blocks;
    const Scheduler::Options& scheduler = options_.scheduler;
    const char* const modes[] = {"auto", "recompute", "swap"};
    std::string specs;
    for (const TableSpec& spec : blocks.specs) {
      specs += str_cat(spec.owner == TableOwner::kGroup ? ", cross " : ", self ", spec.tokens_per_block);
    }
    return str_cat(
        "block_size ", blocks.block_size, specs, ", device blocks ", blocks.num_device_blocks, ", host blocks ",
        blocks.num_host_blocks, ", watermark ", blocks.watermark, ", sharing ", blocks.share_identical_inputs,
        ", cached ", blocks.cache_inputs, " up to ", blocks.max_cached_blocks.value_or(-1), ", for ",
        blocks.cache_ttl.has_value() ? seconds(*blocks.cache_ttl) : -1, ", prefixes ", blocks.cache_prefixes,
        ", max_num_seqs ", scheduler.max_num_seqs, ", max_num_batched_tokens ", scheduler.max_num_batched_tokens,
        ", max_num_encoder_tokens ", scheduler.max_num_encoder_tokens, ", preemption ",
        modes[static_cast<size_t>(scheduler.preemption_mode)], ", seconds of encodes a step ",
        options_.encode_slice.seconds, ", drafts of method ", static_cast<int32_t>(options_.speculation.method),
        ", up to ", *options_.speculation.num_speculative_tokens);
  }

  std::string live() {
    int32_t num_to_come = random_.draw(4, 16);
    const int32_t steps_between = random_.any_of({0, 1, 1, 4});
    for (int i = 0; num_to_come > 0 || engine_->has_unfinished_requests(); ++i) {
      if (i > 20000) return "it never ends";
      std::string problem;
      if (num_to_come > 0 && random_.one_in(steps_between + 1)) {
        --num_to_come;
        problem = add();
      } else if (!requests_.empty() && random_.one_in(25)) {
        problem = abort();
      } else if (random_.one_in(100)) {
        engine_->clear_cache();
      } else {
        problem = step();
      }
      if (!problem.empty()) return problem;
      if (const Status status = engine_->scheduler().check_invariants(); !status.ok()) return error_message(status);
    }
    return "";
  }

  std::string add() {
    RandomRequest request = random_request(random_);
    const bool may_draft = request.params.num_beams == 1 && !request.params.score_only;
    if (may_draft && random_.one_in(2)) request.params.draft_token_ids = draft_of(request);
    const EncodedInput* handle = random_.one_in(3) ? any_handle(request) : nullptr;
    const std::string id = str_cat("r", next_id_++);
    ++totals_.requests;
    const Status status = handle == nullptr ? engine_->add_request(id, request.inputs, request.params)
                                            : engine_->add_request(id, *handle, request.inputs, request.params);
    if (handle != nullptr) request.inputs.items = handle->items();
    if (is_verbose_) std::fprintf(stderr, "%s%s: %s\n", id.c_str(), handle ? " (handle)" : "", request.text().c_str());
    totals_.open_tokens += request.inputs.open_token.has_value() ? 1 : 0;
    fill_open_token(request.inputs);
    if (random_.one_in(3) && !handles_.empty()) handles_.erase(handles_.begin());
    if (status.ok() != fits(request)) {
      return str_cat(id, ": ", request.text(), "\n  ", status.ok() ? "was taken" : error_message(status));
    }
    if (status.ok()) requests_.emplace(id, request);
    totals_.refused += status.ok() ? 0 : 1;
    return "";
  }

  // One that is there, or a new one of this request's input. None if there is no such input, or no room for it.
  const EncodedInput* any_handle(const RandomRequest& request) {
    if (handles_.empty() || random_.one_in(2)) {
      StatusOr<EncodedInput> handle = engine_->encode(request.inputs);
      if (!handle.ok()) return nullptr;
      handles_.push_back(*std::move(handle));
    }
    ++totals_.over_handles;
    return &handles_[static_cast<size_t>(random_.draw(0, static_cast<int32_t>(handles_.size()) - 1))];
  }

  // The rule of admission: the worst case, nothing shared.
  bool fits(const RandomRequest& request) const {
    const SamplingParams& params = request.params;
    const int64_t num_seqs = std::max({params.n, params.best_of, params.num_beams});
    const int64_t num_encoder = static_cast<int64_t>(request.inputs.encoder_token_ids().size());
    const int64_t longest = static_cast<int64_t>(request.inputs.prompt_token_ids.size()) + params.max_tokens;
    const int32_t num_blocks = options_.blocks.num_device_blocks;
    const int32_t watermark = static_cast<int32_t>(options_.blocks.watermark * num_blocks);
    int64_t worst = 0;
    for (const TableSpec& spec : options_.blocks.specs) {
      const int64_t size = spec.tokens_per_block > 0 ? spec.tokens_per_block : options_.blocks.block_size;
      worst += spec.owner == TableOwner::kGroup ? ceil_div(num_encoder, size) : num_seqs * ceil_div(longest, size);
    }
    return num_seqs <= options_.scheduler.max_num_seqs && num_encoder <= options_.scheduler.max_num_encoder_tokens &&
           worst <= num_blocks - watermark;
  }

  std::string abort() {
    const auto chosen = std::next(requests_.begin(), random_.draw(0, static_cast<int32_t>(requests_.size()) - 1));
    const StatusOr<RequestOutput> output = engine_->abort_request(chosen->first);
    if (!output.ok()) return str_cat("abort of ", chosen->first, ": ", error_message(output.status()));
    if (engine_->abort_request(chosen->first).ok()) return str_cat(chosen->first, " was aborted twice");
    ++totals_.aborted;
    const ObviousAnswer want = decode_obviously(chosen->second.inputs, chosen->second.params, fake_scores);
    if (want.margin < 1) ++totals_.too_close;
    return conclude(chosen->first, want.margin < 1 ? "" : aborted_difference(chosen->second, *output, want));
  }

  std::string step() {
    const bool had_work = engine_->has_unfinished_requests();
    const int64_t num_steps = engine_->stats().num_steps;
    std::vector<RequestOutput> finished;
    if (const Status status = engine_->step(finished); !status.ok()) return error_message(status);
    if ((engine_->stats().num_steps > num_steps) != had_work) return "a step with nothing planned, and work to do";
    clock_.advance(std::chrono::milliseconds(1));
    for (const RequestOutput& output : finished) {
      const auto request = requests_.find(output.request_id);
      if (request == requests_.end()) return str_cat(output.request_id, " was not in flight");
      if (std::string problem = check(request->second, output); !problem.empty()) return problem;
    }
    return "";
  }

  std::string check(const RandomRequest& request, const RequestOutput& output) {
    const ObviousAnswer want = decode_obviously(request.inputs, request.params, fake_scores);
    ++totals_.finished;
    totals_.beam_searches += request.params.num_beams > 1 ? 1 : 0;
    totals_.nothing_left += want.nothing_left ? 1 : 0;
    for (const ObviousOutput& truth : want.outputs) {
      totals_.stops += truth.finish_reason == FinishReason::kStop ? 1 : 0;
      totals_.lengths += truth.finish_reason == FinishReason::kLength ? 1 : 0;
    }
    if (want.margin < 1) ++totals_.too_close;
    return conclude(output.request_id, want.margin < 1 ? "" : difference(request, output, want));
  }

  // The request is over.
  std::string conclude(const std::string& id, const std::string& problem) {
    std::string told = problem.empty() ? "" : str_cat(id, ": ", requests_.at(id).text(), "\n  ", problem);
    requests_.erase(id);  // `id` may be its key
    return told;
  }

  std::string check_end() {
    const BlockSpaceManager& blocks = engine_->scheduler().blocks();
    if (!requests_.empty()) return str_cat(requests_.begin()->first, " was never answered");
    if (engine_->num_unfinished_requests() != 0) return "the engine keeps a request";
    if (blocks.num_available_device_blocks() != blocks.num_device_blocks())
      return "device blocks are neither free nor idle";
    totals_.left_cached += blocks.cache_counts().num_tables;
    engine_->clear_cache();
    if (blocks.get_num_free_device_blocks() != blocks.num_device_blocks()) return "device blocks are lost";
    if (blocks.get_num_free_host_blocks() != blocks.num_host_blocks()) return "host blocks are lost";
    return "";
  }

  void count_totals() {
    totals_.steps += engine_->stats().num_steps;
    totals_.preempted += engine_->stats().num_preemptions;
    const DraftStats& drafts = engine_->stats().drafts;
    totals_.drafts += drafts.num_drafts;
    totals_.draft_tokens += drafts.num_draft_tokens;
    totals_.accepted += drafts.num_accepted_tokens;
    if (drafts.num_drafts > 0) totals_.preempted_with_drafts += engine_->stats().num_preemptions;
    totals_.swapped_out += engine_->stats().num_swaps_out;
    totals_.swapped_in += engine_->stats().num_swaps_in;
    totals_.encodes += engine_->executor_stats().num_encoder_runs;
    totals_.long_encodes += engine_->stats().num_long_encodes;
    totals_.encoder_hits += engine_->stats().num_encoder_cache_hits;
    totals_.bytes_copied += engine_->executor_stats().bytes_copied;
    totals_.prefix_queries += engine_->stats().num_prefix_cache_queries;
    totals_.prefix_hits += engine_->stats().num_prefix_cache_hits;
    totals_.evictions += engine_->stats().num_encoder_cache_evictions;
    totals_.expirations += engine_->stats().num_encoder_cache_expirations;
  }

  Random random_;
  bool is_verbose_;
  Totals& totals_;
  LLMEngine::Options options_;
  FakeClock clock_;
  std::unique_ptr<LLMEngine> engine_;
  std::map<std::string, RandomRequest> requests_;  // in flight
  std::vector<EncodedInput> handles_;
  int32_t next_id_ = 0;
};

// A CHECK of the product ends the process: then at least the seed is known.
volatile std::sig_atomic_t g_seed = 0;
void print_seed(int) {
  std::fprintf(stderr, "TRANSEPT_PROPERTY_SEED=%ld\n", static_cast<long>(g_seed));
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

std::string run_history(uint64_t seed, int32_t max_in_flight, FakeModelExecutor::Fault fault, bool is_verbose,
                        Totals& totals) {
  g_seed = static_cast<std::sig_atomic_t>(seed);
  return History(seed, max_in_flight, fault, is_verbose, totals).run();
}

uint64_t environment_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

void expect_coverage(const Totals& totals) {
  EXPECT_LT(static_cast<double>(totals.too_close), 0.01 * static_cast<double>(totals.requests));
  EXPECT_LT(totals.refused, totals.requests / 3);
  const int64_t few = totals.requests / 50;
  EXPECT_GT(totals.beam_searches, 5 * few);
  EXPECT_GT(totals.aborted, few);
  if (totals.requests >= 5000) {  // one in a thousand
    EXPECT_GT(totals.nothing_left, 0);
  }
  EXPECT_GT(totals.stops, 5 * few);
  EXPECT_GT(totals.lengths, 5 * few);
  EXPECT_GT(totals.preempted - totals.swapped_out, few);
  EXPECT_GT(totals.swapped_in, few / 2);
  EXPECT_GT(totals.over_handles, 5 * few);
  EXPECT_GT(totals.open_tokens, 2 * few);
  EXPECT_GT(totals.encoder_hits, few);
  EXPECT_GT(totals.long_encodes, 2 * few);
  EXPECT_GT(totals.bytes_copied, 0u);
  EXPECT_GT(totals.draft_tokens, 80 * few);
  EXPECT_GT(totals.accepted, 15 * few);
  EXPECT_LT(totals.accepted, totals.draft_tokens * 3 / 4);
  EXPECT_GT(totals.preempted_with_drafts, few);
  EXPECT_GT(totals.prefix_hits, few / 2);
  EXPECT_GT(totals.evictions, few);
  EXPECT_GT(totals.expirations, few / 4);
  EXPECT_GT(totals.left_cached, few);
}

TEST(EngineProperty, EveryRequestGetsTheAnswerThatIsItsOwn) {
  const auto previous = std::signal(SIGABRT, print_seed);
  const uint64_t only = environment_number("TRANSEPT_PROPERTY_SEED", 0);
  const uint64_t first = only > 0 ? only : 1;
  const uint64_t last = only > 0 ? only : environment_number("TRANSEPT_PROPERTY_HISTORIES", kNumHistories);
  Totals totals;
  int num_failures = 0;
  for (uint64_t seed = first; seed <= last && num_failures < 5; ++seed) {
    const std::string problem = run_history(seed, 1, FakeModelExecutor::Fault::kNone, only > 0, totals);
    if (problem.empty()) continue;
    ++num_failures;
    ADD_FAILURE() << "TRANSEPT_PROPERTY_SEED=" << seed << "\n" << problem;
  }
  std::signal(SIGABRT, previous);
  std::printf(
      "%ld requests in %ld steps: %ld beam searches, %ld refused, %ld aborted, %ld without a token left, %ld "
      "skipped as too close (%.2f %%); %ld preemptions, %ld of them swaps, %ld encodes, %ld of them long, %ld found; "
      "%ld of %ld decoder tokens from the prefix cache; %ld evictions, %ld expirations; %ld runs of %ld drafts, %ld of "
      "them right\n",
      totals.requests, totals.steps, totals.beam_searches, totals.refused, totals.aborted, totals.nothing_left,
      totals.too_close, 100.0 * static_cast<double>(totals.too_close) / static_cast<double>(totals.requests),
      totals.preempted, totals.swapped_out, totals.encodes, totals.long_encodes, totals.encoder_hits,
      totals.prefix_hits, totals.prefix_queries, totals.evictions, totals.expirations, totals.drafts,
      totals.draft_tokens, totals.accepted);
  if (only == 0 && num_failures == 0) expect_coverage(totals);
}

// The same where several steps are in flight, as over a pipeline: no encode is cut then, and groups of equal inputs
// wait for the one that encodes.
TEST(EngineProperty, EveryRequestGetsTheAnswerThatIsItsOwnWithStepsInFlight) {
  const auto previous = std::signal(SIGABRT, print_seed);
  const uint64_t only = environment_number("TRANSEPT_PROPERTY_SEED", 0);
  const uint64_t first = only > 0 ? only : 1;
  const uint64_t last = only > 0 ? only : environment_number("TRANSEPT_PROPERTY_HISTORIES", kNumHistories / 4);
  for (const int32_t max_in_flight : {2, 4}) {
    Totals totals;
    int num_failures = 0;
    for (uint64_t seed = first; seed <= last && num_failures < 5; ++seed) {
      const std::string problem = run_history(seed, max_in_flight, FakeModelExecutor::Fault::kNone, only > 0, totals);
      if (problem.empty()) continue;
      ++num_failures;
      ADD_FAILURE() << max_in_flight << " in flight, TRANSEPT_PROPERTY_SEED=" << seed << "\n" << problem;
    }
    if (only > 0 || num_failures > 0) continue;
    const int64_t few = totals.requests / 50;
    EXPECT_LT(static_cast<double>(totals.too_close), 0.01 * static_cast<double>(totals.requests));
    EXPECT_GT(totals.aborted, few);
    EXPECT_GT(totals.beam_searches, 5 * few);
    EXPECT_GT(totals.preempted - totals.swapped_out, few / 2);
    EXPECT_GT(totals.swapped_in, few / 4);
    EXPECT_GT(totals.open_tokens, 2 * few);
    EXPECT_GT(totals.encoder_hits, few / 2);
    EXPECT_GT(totals.accepted, 15 * few);
    EXPECT_GT(totals.prefix_hits, few / 2);
    EXPECT_GT(totals.evictions, few / 2);
  }
  std::signal(SIGABRT, previous);
}

// ---- The test can fail

TEST(EngineProperty, NoticesWhatItIsThereFor) {
  using Fault = FakeModelExecutor::Fault;
  for (const Fault fault : {Fault::kLosesCopies, Fault::kLosesSwapIns, Fault::kSkipsEncodes, Fault::kForgetsCrossTable,
                            Fault::kReadsOneSlotLess}) {
    Totals totals;
    std::string problem;
    for (uint64_t seed = 1; seed <= 60 && problem.empty(); ++seed) problem = run_history(seed, 1, fault, false, totals);
    EXPECT_NE(problem, "") << "fault " << static_cast<int>(fault);
  }
}

TEST(EngineProperty, NoticesTheRowsOfAnotherStep) {
  Totals totals;
  std::string problem;
  for (uint64_t seed = 1; seed <= 60 && problem.empty(); ++seed) {
    problem = run_history(seed, 2, FakeModelExecutor::Fault::kGivesTheNextStep, false, totals);
  }
  EXPECT_NE(problem, "");
}

// ---- What is computed once

RequestOutput answer_of(LLMEngine& engine, const RandomRequest& request) {
  EXPECT_TRUE(engine.add_request("r", request.inputs, request.params).ok());
  std::vector<RequestOutput> finished;
  while (finished.empty()) EXPECT_TRUE(engine.step(finished).ok());
  return finished[0];
}

TEST(EngineCounters, OneEncodeForSixteenSamplesAndOneForSixteenBeams) {
  LLMEngine::Options options;
  options.blocks = {.block_size = 4, .num_device_blocks = 200, .num_host_blocks = 0, .watermark = 0};
  options.scheduler.max_num_seqs = 16;
  RandomRequest request;
  request.inputs.set_encoder_ids({3, 1, 4, 1, 5, 9, 2, 6, 5});
  request.inputs.prompt_token_ids = {2, 7};
  request.params.max_tokens = 20;
  for (const bool beams : {false, true}) {
    request.params.n = 16;
    request.params.num_beams = beams ? 16 : 1;
    request.params.temperature = beams ? 0 : 1;
    FakeClock clock;
    LLMEngine engine(options, std::make_unique<FakeModelExecutor>(options.blocks), nullptr, clock);
    const RequestOutput output = answer_of(engine, request);
    EXPECT_EQ(difference(request, output, decode_obviously(request.inputs, request.params, fake_scores)), "");
    EXPECT_EQ(output.outputs.size(), 16u);
    EXPECT_EQ(engine.executor_stats().num_encoder_runs, 1);
    EXPECT_EQ(engine.executor_stats().num_cross_kv_writes, 1);
  }
}

// 1 and 2 may come once each, and the end after neither: {5} alone is an answer, and after two steps no beam can go on.
TEST(EngineProperty, ASearchThatComesToADeadEndStillHasItsHypotheses) {
  LLMEngine::Options options;
  options.blocks = {.block_size = 4, .num_device_blocks = 50, .num_host_blocks = 0, .watermark = 0};
  RandomRequest request;
  request.inputs.set_encoder_ids({1, 2, 3});
  request.inputs.prompt_token_ids = {0};
  request.params.max_tokens = 8;
  request.params.num_beams = 3;
  request.params.eos_token_ids = {5};
  request.params.no_repeat_ngram_size = 1;
  request.params.suppress_tokens = {0, 3, 4, 6, 7, 8, 9, 10, 11, 12};
  request.params.bad_words_ids = {{1, 5}, {2, 5}};
  FakeClock clock;
  LLMEngine engine(options, std::make_unique<FakeModelExecutor>(options.blocks), nullptr, clock);
  const RequestOutput output = answer_of(engine, request);
  EXPECT_EQ(difference(request, output, decode_obviously(request.inputs, request.params, fake_scores)), "");
  EXPECT_EQ(output.outputs.at(0).token_ids, (std::vector<int32_t>{5}));  // transformers 5.23 says so too
}

}  // namespace
}  // namespace transept::testing
