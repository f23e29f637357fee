// Both sides of a separated encoder: the engine over a fake model that encodes nothing
// (rank/fake_model_executor_testing.h), and encode instances behind a network with faults
// (remote_encoders_testing.h). Requests come before or after their rows, are aborted, and are given up. Pools are tiny,
// so that groups are recomputed and swapped. Every answer is what an obvious decoder gives for the request on its own,
// or one error; in the end nothing is held, and nobody waits. In a third of the histories the engine asks for some of
// the encodes itself, also over handles. In half of these it may encode them itself, too, and some asks fail: then
// those requests have no error.
//
// A failure prints its seed. TRANSEPT_PROPERTY_SEED=n runs that one history; TRANSEPT_PROPERTY_HISTORIES=n runs so
// many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/checked_math.h"
#include "base/sanitized_testing.h"
#include "engine/answer_difference_testing.h"
#include "engine/fake_asker_testing.h"
#include "engine/llm_engine.h"
#include "engine/remote_encoders_testing.h"
#include "rank/fake_model_executor_testing.h"
#include "rank/loopback_executor.h"

namespace transept::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kNumHistories = kSanitized ? 100 : 1200;
constexpr int32_t kLongestInput = 16;

struct Totals {
  int64_t requests = 0, answered = 0, too_close = 0, aborted = 0, errors = 0, late = 0, lost = 0, tried_again = 0;
  int64_t awaited = 0, beam_searches = 0, open_tokens = 0, preempted = 0, swapped_in = 0, injected = 0, hits = 0;
  int64_t asked = 0, over_handles = 0, asks = 0, local_encodes = 0, long_encodes = 0, deaths = 0, refused_chunks = 0,
          steps = 0, mismatches = 0;
};

class History final {
 public:
  History(uint64_t seed, FakeModelExecutor::Fault fault, Totals& totals)
      : random_(seed), totals_(totals), has_faults_(random_.one_in(2)), options_(random_options()) {
    times_.lease = seconds(random_.draw(2, 30));
    times_.unclaimed = seconds(random_.draw(2, 60));
    encoders_ = std::make_unique<RemoteEncoders>(clock_, random_.number(), random_faults(), times_);
    auto fake = std::make_unique<FakeModelExecutor>(options_.blocks);
    fake->break_by(fault);
    const bool asks = random_.one_in(3);
    options_.remote.falls_back = asks && random_.one_in(2);
    options_.scheduler.may_encode = options_.remote.falls_back;
    if (options_.remote.falls_back) fake->encode_too();
    if (random_.one_in(2)) options_.encode_slice = {EncodeSliceOptions::Mode::kFixed, random_.any_of({0.5, 4.0})};
    std::unique_ptr<Executor> executor = std::move(fake);
    if (seed % 2 == 1) executor = std::make_unique<LoopbackExecutor>(std::move(executor));
    options_.remote.connector = encoders_.get();
    asker_ = std::make_unique<FakeAsker>(*encoders_);
    asker_->model = digest_of(77);
    if (asks) options_.remote.asker = asker_.get();
    if (options_.remote.falls_back) {
      const int32_t one_in = random_.any_of({1, 2, 5});
      asker_->fails = [this, one_in] { return random_.one_in(one_in); };
      asker_->encodes_what_fails = random_.one_in(2);
    }
    options_.remote.model = digest_of(77);
    options_.remote.times = times_;
    options_.remote.max_wait = seconds(random_.draw(20, 90));
    options_.remote.draw = [this] { return random_.number(); };
    if (random_.one_in(4)) options_.remote.max_waiting = static_cast<size_t>(random_.draw(1, 4));
    const Status fits = RemoteInputs::check(options_.remote, *executor);
    CHECK(fits.ok(), error_message(fits));
    engine_ = std::make_unique<LLMEngine>(options_, std::move(executor), nullptr, clock_);
  }

  // "" or what went wrong.
  std::string run() {
    std::string problem = live();
    if (problem.empty()) problem = settle();
    if (problem.empty()) problem = check_end();
    count_totals();
    return problem;
  }

 private:
  struct Flying {
    RandomRequest request;  // with ids, as the truth reads it
    bool is_added = false;
    int tries = 0;
    bool is_wrong = false;  // it asks for rows of another input than was announced
    bool is_asked = false;  // nobody announces its rows: the engine asks for them
  };

  static ContentDigest digest_of(uint64_t number) {
    ContentDigest digest;
    std::memcpy(digest.bytes.data(), &number, sizeof number);
    return digest;
  }

  RemoteEncoders::Faults random_faults() {
    RemoteEncoders::Faults faults;
    faults.max_delay_ms = random_.any_of({1, 5, 50});
    if (!has_faults_) return faults;
    faults.loss = random_.draw(0, 3) * 0.1;
    faults.doubled = random_.draw(0, 3) * 0.1;
    faults.send_failure = random_.one_in(3) ? 0.1 : 0;
    faults.send_stall = random_.one_in(4) ? 0.05 : 0;
    faults.max_delay_ms = random_.any_of({1, 20, 500, 3000});
    return faults;
  }

  LLMEngine::Options random_options() {
    LLMEngine::Options options;
    options.blocks.block_size = random_.any_of({1, 1, 2, 4, 16, 16});
    const int32_t per_block = random_.any_of({1, 3, 4, 16});
    options.blocks.specs.push_back({TableOwner::kItem, per_block});
    const int32_t num_slots = random_.any_of({32, 36, 40, 48, 120});
    const int32_t longest = static_cast<int32_t>(ceil_div(kLongestInput, per_block));
    options.blocks.max_reserved_blocks = longest * random_.any_of({1, 1, 2, 6});
    options.blocks.watermark = random_.any_of({0.0, 0.0, 0.1});
    const int32_t least = std::max(num_slots / options.blocks.block_size, 5) + options.blocks.max_reserved_blocks;
    options.blocks.num_device_blocks = static_cast<int32_t>(least * (1 + options.blocks.watermark));
    options.blocks.num_host_blocks = random_.one_in(4) ? 0 : random_.draw(1, options.blocks.num_device_blocks);
    options.blocks.share_identical_inputs = random_.one_in(2);
    options.blocks.keep_unused_items = true;
    options.blocks.track_freed_blocks = true;
    options.blocks.shuffle_seed = random_.number();
    options.scheduler.max_num_seqs = random_.draw(8, 32);
    options.scheduler.max_num_batched_tokens = options.scheduler.max_num_seqs + random_.draw(0, 20);
    options.scheduler.max_num_encoder_tokens = random_.draw(kLongestInput, 40);
    options.scheduler.max_num_injected_tokens = random_.any_of({0, kLongestInput, 2 * kLongestInput});
    options.scheduler.preemption_mode = static_cast<PreemptionMode>(random_.draw(0, 2));
    return options;
  }

  std::string live() {
    int32_t num_to_come = random_.draw(4, 24);
    const int32_t steps_between = random_.any_of({0, 0, 1, 12});
    for (int i = 0; num_to_come > 0 || !flying_.empty(); ++i) {
      if (i > 100000) return str_cat("it never ends: ", flying_.begin()->first);
      std::string problem;
      if (num_to_come > 0 && random_.one_in(steps_between + 1)) {
        --num_to_come;
        begin();
      } else if (!flying_.empty() && random_.one_in(400)) {
        problem = abort();
      } else if (has_faults_ && random_.one_in(200)) {
        encoders_->kill();
      }
      if (problem.empty()) problem = add_some();
      if (problem.empty()) problem = step();
      if (!problem.empty()) return problem;
    }
    return "";
  }

  // Its rows are announced now; the request itself comes now or later.
  void begin(RandomRequest request, int tries) {
    const std::string id = str_cat("r", next_id_++);
    const bool is_asked = !request.inputs.items.empty() && options_.remote.asker != nullptr && random_.one_in(2);
    totals_.asked += is_asked ? 1 : 0;
    if (!request.inputs.items.empty() && !is_asked) {
      EcMeta meta;
      meta.key = {id, 0, 0};
      meta.digest = item_digest(request.inputs.items[0]);
      meta.model = options_.remote.model;
      meta.num_positions = request.inputs.num_encoder_tokens();
      meta.width = kFakeWidth;
      meta.place = {0, meta.num_positions, {}};
      meta.time_left = has_faults_ ? milliseconds(random_.draw(1000, 90000)) : milliseconds(300000);
      encoders_->encode(meta, fake_rows(request.inputs.encoder_token_ids()));
    }
    flying_.emplace(id, Flying{.request = std::move(request), .tries = tries, .is_asked = is_asked});
  }
  void begin() {
    RandomRequest request = random_request(random_);
    while (!fits(request)) request = random_request(random_);
    ++totals_.requests;
    totals_.open_tokens += request.inputs.open_token.has_value() ? 1 : 0;
    begin(std::move(request), 0);
  }

  // The proxy may hold a request until its rows were injected, or not.
  std::string add_some() {
    for (auto& [id, flying] : flying_) {
      if (flying.is_added || !random_.one_in(8)) continue;
      flying.is_added = true;
      EncoderDecoderInputs inputs = flying.request.inputs;
      const bool is_wrong = !inputs.items.empty() && !flying.is_asked && random_.one_in(40);
      if (!inputs.items.empty() && !flying.is_asked) {
        EncoderItem& item = inputs.items[0];
        item.remote = RemoteInput{item_digest(item), item.num_positions(), 0};
        if (flying.request.params.encoder_no_repeat_ngram_size == 0 && random_.one_in(2)) item.token_ids.clear();
        if (is_wrong) item.remote->digest.bytes[5] ^= std::byte{1};
      }
      flying.is_wrong = is_wrong;
      const Status added = flying.is_asked && random_.one_in(2)
                               ? add_over_handle(id, flying.request)
                               : engine_->add_request(id, inputs, flying.request.params);
      totals_.awaited += engine_->remote_inputs()->awaits(id) ? 1 : 0;
      fill_open_token(flying.request.inputs);
      if (added.ok()) continue;
      ++totals_.mismatches;
      const bool is_known = is_wrong || error_param(added) == "encoded_inputs";
      if (!is_known) return str_cat(id, ": ", error_message(added));
      return end_with_error(id, error_message(added), is_wrong);
    }
    return "";
  }

  // The handle is dropped at once; its request keeps what it holds.
  Status add_over_handle(const std::string& id, const RandomRequest& request) {
    ++totals_.over_handles;
    ASSIGN_OR_RETURN(const EncodedInput handle, engine_->encode(request.inputs));
    EncoderDecoderInputs inputs = request.inputs;
    inputs.items.clear();
    return engine_->add_request(id, handle, inputs, request.params);
  }

  bool fits(const RandomRequest& request) const {
    const SamplingParams& params = request.params;
    const int64_t num_seqs = std::max({params.n, params.best_of, params.num_beams});
    const int64_t longest = std::ssize(request.inputs.prompt_token_ids) + params.max_tokens;
    const BlockSpaceManager::Options& blocks = options_.blocks;
    const int64_t worst = ceil_div(int64_t{request.inputs.num_encoder_tokens()}, int64_t{blocks.block_size}) +
                          num_seqs * ceil_div(longest, int64_t{blocks.block_size});
    const auto watermark = static_cast<int32_t>(blocks.watermark * blocks.num_device_blocks);
    return num_seqs <= options_.scheduler.max_num_seqs &&
           worst <= blocks.num_device_blocks - watermark - blocks.max_reserved_blocks;
  }

  std::string abort() {
    const auto chosen = std::next(flying_.begin(), random_.draw(0, static_cast<int32_t>(flying_.size()) - 1));
    const std::string id = chosen->first;
    ++totals_.aborted;
    encoders_->abort(id);
    std::string problem;
    if (chosen->second.is_added) {
      const StatusOr<RequestOutput> output = engine_->abort_request(id);
      if (!output.ok()) return str_cat("abort of ", id, ": ", error_message(output.status()));
      if (engine_->abort_request(id).ok()) return str_cat(id, " was aborted twice");
      const ObviousAnswer want =
          decode_obviously(chosen->second.request.inputs, chosen->second.request.params, fake_scores);
      if (want.margin >= 1) problem = aborted_difference(chosen->second.request, *output, want);
    }
    return conclude(id, problem);
  }

  std::string step() {
    encoders_->run();
    std::vector<RequestOutput> finished;
    if (const Status status = engine_->step(finished); !status.ok()) return error_message(status);
    // Time stands still for nobody: the next thing happens, or a step has taken a millisecond.
    const TimePoint next = std::min(encoders_->next_time(), engine_->next_step_time());
    const bool waits = next != TimePoint::min() && next != TimePoint::max() && next > clock_.now();
    const bool all_added = std::ranges::all_of(flying_, [](const auto& entry) { return entry.second.is_added; });
    clock_.advance(waits && all_added ? next - clock_.now() : milliseconds(1));
    for (const RequestOutput& output : finished) {
      const auto found = flying_.find(output.request_id);
      if (found == flying_.end()) return str_cat(output.request_id, " was not in flight");
      if (std::string problem = check(found->second, output); !problem.empty()) return problem;
    }
    if (const Status status = engine_->scheduler().check_invariants(); !status.ok()) return error_message(status);
    return error_message(engine_->remote_inputs()->receivers().check_invariants());
  }

  std::string check(const Flying& flying, const RequestOutput& output) {
    // The obvious decoder says whether no token was left to choose.
    const bool is_of_rows = !output.error.empty() && output.error_param != "suppress_tokens";
    if (flying.is_asked && options_.remote.falls_back && is_of_rows) {
      return str_cat(output.request_id, " was not encoded here: ", output.error);
    }
    const bool has_no_rows = output.error_param == "encoded_inputs" || (flying.is_asked && is_of_rows);
    if (has_no_rows) return end_with_error(output.request_id, output.error, flying.is_wrong);
    const RandomRequest& request = flying.request;
    const ObviousAnswer want = decode_obviously(request.inputs, request.params, fake_scores);
    ++totals_.answered;
    totals_.beam_searches += request.params.num_beams > 1 ? 1 : 0;
    totals_.too_close += want.margin < 1 ? 1 : 0;
    if (flying.is_wrong) return conclude(output.request_id, "it got rows of another input");
    return conclude(output.request_id, want.margin < 1 ? "" : difference(request, output, want));
  }

  // Its rows did not come, or are gone. Whoever asked tries again.
  std::string end_with_error(const std::string& id, const std::string& error, bool is_wrong) {
    ++totals_.errors;
    const Flying flying = flying_.at(id);
    const bool is_late = error.find("in time") != std::string::npos;
    ++(is_late ? totals_.late : totals_.lost);
    const Status* answer = encoders_->answer({id, 0});
    const bool came = answer != nullptr && answer->ok();
    encoders_->abort(id);
    std::string problem;
    if (is_late && came && !is_wrong && !has_faults_) problem = "it waited for rows that had come";
    if (flying.tries > 12 && !has_faults_ && !is_wrong) problem = str_cat("tried in vain: ", error);
    problem = conclude(id, problem);
    if (!is_wrong && flying.tries <= 12) {
      ++totals_.tried_again;
      begin(flying.request, flying.tries + 1);
    }
    return problem;
  }

  std::string conclude(const std::string& id, const std::string& problem) {
    std::string told = problem.empty() ? "" : str_cat(id, ": ", flying_.at(id).request.text(), "\n  ", problem);
    flying_.erase(id);  // `id` may be its key
    return told;
  }

  // Until everybody has forgotten everything.
  std::string settle() {
    for (int i = 0; i < 100000; ++i) {
      const TimePoint next = std::min(encoders_->next_time(), engine_->next_step_time());
      if (next == TimePoint::max()) return "";
      if (next > clock_.now()) clock_.advance(next - clock_.now());
      encoders_->run();
      std::vector<RequestOutput> finished;
      if (const Status status = engine_->step(finished); !status.ok()) return error_message(status);
      if (!finished.empty()) return "a request ended twice";
    }
    return "it never settles";
  }

  std::string check_end() {
    const BlockSpaceManager& blocks = engine_->scheduler().blocks();
    const RemoteInputs& remote = *engine_->remote_inputs();
    if (engine_->num_unfinished_requests() != 0) return "the engine keeps a request";
    if (remote.cache().num_uses() != 0 || blocks.num_reserved_blocks() != 0) return "room is still held";
    if (remote.receivers().num_transfers() != 0 || remote.receivers().num_tombstones() != 0) return "a transfer stays";
    if (encoders_->num_open_sinks() != 0) return "a sink stays open";
    if (blocks.num_available_device_blocks() != blocks.num_device_blocks()) return "device blocks are lost";
    if (blocks.get_num_free_host_blocks() != blocks.num_host_blocks()) return "host blocks are lost";
    const int64_t num_local = engine_->stats().num_local_encodes;
    // A long encode counts when it begins, and at the executor when it has ended: it may be aborted between.
    const bool is_exact = options_.encode_slice.mode == EncodeSliceOptions::Mode::kNone || !options_.remote.falls_back;
    if (is_exact && engine_->executor_stats().num_encoder_runs != num_local) return "local encodes are miscounted";
    if (num_local != 0 && !options_.remote.falls_back) return "the decode instance encoded";
    return "";
  }

  void count_totals() {
    totals_.steps += engine_->stats().num_steps;
    totals_.preempted += engine_->stats().num_preemptions;
    totals_.swapped_in += engine_->stats().num_swaps_in;
    totals_.injected += engine_->stats().num_injected_tokens;
    totals_.long_encodes += engine_->stats().num_long_encodes;
    totals_.asks += std::ssize(asker_->asks);
    totals_.local_encodes += engine_->stats().num_local_encodes;
    totals_.hits += encoders_->stats().num_hits;
    totals_.deaths += encoders_->stats().num_deaths;
    totals_.refused_chunks += encoders_->stats().num_refused;
  }

  Random random_;
  Totals& totals_;
  bool has_faults_;
  LLMEngine::Options options_;
  EcTimes times_;
  FakeClock clock_;
  std::unique_ptr<RemoteEncoders> encoders_;
  std::unique_ptr<FakeAsker> asker_;
  std::unique_ptr<LLMEngine> engine_;
  std::map<std::string, Flying> flying_;
  int32_t next_id_ = 0;
};

uint64_t environment_number(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(RemoteInputsProperty, EveryAnswerIsTheObviousOneAndNobodyHangs) {
  const uint64_t only = environment_number("TRANSEPT_PROPERTY_SEED", 0);
  const uint64_t first = only > 0 ? only : 1;
  const uint64_t last = only > 0 ? only : environment_number("TRANSEPT_PROPERTY_HISTORIES", kNumHistories);
  Totals totals;
  int num_failures = 0;
  for (uint64_t seed = first; seed <= last && num_failures < 5; ++seed) {
    const std::string problem = History(seed, FakeModelExecutor::Fault::kNone, totals).run();
    if (problem.empty()) continue;
    ++num_failures;
    ADD_FAILURE() << "TRANSEPT_PROPERTY_SEED=" << seed << "\n" << problem;
  }
  std::printf(
      "%ld requests in %ld steps: %ld answered (%ld beam searches, %ld open tokens, %ld too close), %ld aborted, %ld "
      "waited for rows; %ld errors (%ld late, %ld lost), %ld refused when added, %ld tried again; %ld preemptions, %ld "
      "swapped in, %ld rows taken, %ld hits, %ld deaths, %ld chunks refused; %ld to be asked for, %ld over handles, "
      "%ld asks, %ld local encodes, %ld items in slices\n",
      totals.requests, totals.steps, totals.answered, totals.beam_searches, totals.open_tokens, totals.too_close,
      totals.aborted, totals.awaited, totals.errors, totals.late, totals.lost, totals.mismatches, totals.tried_again,
      totals.preempted, totals.swapped_in, totals.injected, totals.hits, totals.deaths, totals.refused_chunks,
      totals.asked, totals.over_handles, totals.asks, totals.local_encodes, totals.long_encodes);
  if (only != 0 || num_failures > 0) return;
  const int64_t few = totals.requests / 50;
  EXPECT_GT(totals.answered, totals.requests * 3 / 4);
  EXPECT_GT(totals.beam_searches, 5 * few);
  EXPECT_GT(totals.open_tokens, few);
  EXPECT_GT(totals.aborted, few / 2);
  EXPECT_GT(totals.awaited, 5 * few);
  EXPECT_GT(totals.preempted, few / 2);
  EXPECT_GT(totals.swapped_in, few / 16);
  EXPECT_GT(totals.hits, few);
  EXPECT_GT(totals.deaths, few / 4);
  EXPECT_GT(totals.late, 0);
  EXPECT_GT(totals.lost, 0);
  EXPECT_GT(totals.mismatches, 0);
  EXPECT_GT(totals.asked, 5 * few);
  EXPECT_GT(totals.over_handles, few);
  EXPECT_GT(totals.asks, 5 * few);
  EXPECT_GT(totals.local_encodes, few);
  EXPECT_GT(totals.long_encodes, few);
}

TEST(RemoteInputsProperty, NoticesRowsThatAreNotTaken) {
  Totals totals;
  std::string problem;
  for (uint64_t seed = 1; seed <= 60 && problem.empty(); ++seed) {
    problem = History(seed, FakeModelExecutor::Fault::kTakesNoRows, totals).run();
  }
  EXPECT_NE(problem, "");
}

}  // namespace
}  // namespace transept::testing
