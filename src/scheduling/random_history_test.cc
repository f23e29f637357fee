// Seeded random histories: random requests, budgets, pools, arrivals and aborts against the texts that each request
// must give on its own, with the scheduler's invariants checked after every operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/content_digest_testing.h"
#include "base/sanitized_testing.h"
#include "scheduling/fake_engine_testing.h"

namespace transept::testing {
namespace {

struct Totals {
  int64_t steps = 0, finished = 0, aborted = 0, refused = 0, swapped_out = 0, swapped_in = 0, preempted = 0;
  int64_t chunks = 0, copies = 0, hits = 0, idle_hits = 0, reclaimed = 0, lost = 0, lost_encodes = 0;
  int64_t several = 0, in_several_steps = 0, encodes_without_rows = 0, spliced = 0;
  int64_t of_several_specs = 0, written_in_part = 0;
  int64_t overlapped = 0, aborted_in_flight = 0;
  int64_t long_begun = 0, long_went_on = 0, long_ended = 0, long_dropped = 0, long_to_the_end = 0;
};

class History {
 public:
  History(uint64_t seed, Totals& totals, int32_t max_steps_in_flight = 1)
      : random_(seed),
        totals_(totals),
        max_in_flight_(max_steps_in_flight),
        block_options_(random_blocks()),
        engine_(random_options(), block_options_) {}

  Status run(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      const int32_t choice = draw(0, 9);
      if (choice < 3) {
        add();
      } else if (choice == 3 && draw(0, 2) == 0) {
        abort_one();
      } else if (choice == 4 && draw(0, 2) == 0) {
        pin();
      } else {
        RETURN_IF_ERROR(max_in_flight_ > 1 ? overlapping_step() : step());
      }
      RETURN_IF_ERROR(engine_.scheduler().check_invariants());
    }
    for (int i = 0; engine_.scheduler().has_unfinished(); ++i) {
      if (i > 20000) return absl::InternalError("it never ends");
      RETURN_IF_ERROR(max_in_flight_ > 1 ? overlapping_step() : step());
      RETURN_IF_ERROR(engine_.scheduler().check_invariants());
    }
    if (!requests_.empty()) return absl::InternalError("a request was lost");
    const BlockSpaceManager& blocks = engine_.scheduler().blocks();
    if (blocks.num_available_device_blocks() != block_options_.num_device_blocks) {
      return absl::InternalError("blocks are neither free nor idle");
    }
    for (const auto& input : pinned_) engine_.scheduler().unpin_input(testing::digest_of(input.first, input.second));
    RETURN_IF_ERROR(engine_.scheduler().check_invariants());
    if (blocks.get_num_free_device_blocks() != block_options_.num_device_blocks ||
        blocks.get_num_free_host_blocks() != block_options_.num_host_blocks) {
      return absl::InternalError("blocks are lost");
    }
    totals_.copies += engine_.model().num_copied_blocks();
    totals_.spliced += engine_.model().num_spliced_rows();
    totals_.long_dropped += engine_.model().num_dropped_encodes();
    return ok_status();
  }

 private:
  int32_t draw(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  BlockSpaceManager::Options random_blocks() {
    BlockSpaceManager::Options options;
    options.block_size = draw(1, 6);
    options.specs = {{TableOwner::kSequence}, {TableOwner::kGroup, draw(0, 6)}, {TableOwner::kItem, draw(0, 9)}};
    options.num_device_blocks = draw(6, 60);
    // A quarter of the layers have other heads: four times as many tokens fit into a block of theirs.
    for (const TableOwner owner : {TableOwner::kSequence, TableOwner::kGroup, TableOwner::kItem}) {
      if (draw(0, 1) == 0) continue;
      const auto place = options.specs.begin() + draw(0, static_cast<int32_t>(options.specs.size()));
      options.specs.insert(place, TableSpec{owner, draw(0, 2) == 0 ? draw(1, 9) : 4 * options.block_size});
      options.num_device_blocks += options.num_device_blocks / 3;
    }
    options.num_host_blocks = draw(0, 2) == 0 ? 0 : draw(1, 60);
    options.watermark = draw(0, 2) * 0.1;
    options.share_identical_inputs = draw(0, 1) == 1;
    options.track_freed_blocks = true;
    options.shuffle_seed = random_();
    return options;
  }

  Scheduler::Options random_options() {
    Scheduler::Options options;
    options.max_num_seqs = draw(1, 12);
    options.max_num_batched_tokens = options.max_num_seqs + draw(0, 20);
    options.max_num_encoder_tokens = draw(8, 40);
    options.preemption_mode = static_cast<PreemptionMode>(draw(0, 2));
    options.max_steps_in_flight = max_in_flight_;
    return options;
  }

  void add() {
    FakeRequest request;
    const int32_t num_decoder = draw(1, 8);
    for (int32_t i = 0; i < num_decoder; ++i) request.decoder.push_back(draw(0, kVocabSize - 1));
    add_items(request);
    request.params.max_tokens = draw(1, 16);
    request.params.seed = random_();
    request.params.ignore_eos = draw(0, 1) == 1;
    if (draw(0, 3) == 0) request.params.prompt_logprobs = 0;
    const int32_t kind = draw(0, 3);
    if (kind == 0) request.params.n = draw(2, 4);
    if (kind == 1) request.params.num_beams = draw(2, 4);
    const GroupId id(next_id_++);
    if (engine_.add(id, request).ok()) {
      requests_[id] = request;
    } else {
      ++totals_.refused;
    }
  }

  // Nothing, one item that is crossed, or several of any kind. Few inputs, so that some are identical.
  void add_items(FakeRequest& request) {
    const int32_t num_items = draw(0, 2) == 0 ? draw(2, 4) : draw(0, 4) == 0 ? 0 : 1;
    int32_t place = 0;  // the first token of the prompt that the next item may take
    for (int32_t i = 0; i < num_items; ++i) {
      Consumers consumers = num_items == 1 ? Consumers::kCross : static_cast<Consumers>(draw(1, 3));
      const int32_t room = static_cast<int32_t>(request.decoder.size()) - place;
      if (room == 0) consumers = Consumers::kCross;
      const bool is_spliced = has(consumers, Consumers::kSplice);
      const int32_t size = is_spliced ? draw(1, room) : 3 * draw(1, 4), input = draw(0, 1);
      EncoderItem& item = request.items.emplace_back();
      for (int32_t j = 0; j < size; ++j) item.token_ids.push_back(input + j);
      item.digest = testing::digest_of(static_cast<uint64_t>(size), static_cast<uint64_t>(input));
      item.consumers = consumers;
      if (!is_spliced) continue;
      item.splice_offset = place + draw(0, room - size);
      place = item.splice_offset + size;
    }
    totals_.several += num_items > 1;
  }

  void abort_one() {
    if (requests_.empty()) return;
    const auto entry = std::next(requests_.begin(), draw(0, static_cast<int32_t>(requests_.size()) - 1));
    EXPECT_TRUE(engine_.abort(entry->first));
    EXPECT_FALSE(engine_.abort(entry->first));
    requests_.erase(entry);
    ++totals_.aborted;
  }

  void pin() {
    const std::pair<uint64_t, uint64_t> input(static_cast<uint64_t>(3 * draw(1, 4)), static_cast<uint64_t>(draw(0, 1)));
    const ContentDigest hash = testing::digest_of(input.first, input.second);
    if (pinned_.insert(input).second) return engine_.scheduler().pin_input(hash);
    pinned_.erase(input);
    engine_.scheduler().unpin_input(hash);
  }

  Status step() {
    const bool had_work = engine_.scheduler().has_unfinished();
    const size_t num_results = engine_.results().size();
    const int32_t num_pinned = engine_.scheduler().blocks().device_usage().pinned;
    limit_encodes();
    if (engine_.begin_step() != had_work) return absl::InternalError("a step with nothing planned, and work to do");
    const SchedulerOutputs& plan = engine_.plan();
    RETURN_IF_ERROR(check_plan(plan));
    RETURN_IF_ERROR(engine_.scheduler().check_invariants());
    totals_.hits += plan.num_encoder_cache_hits;
    const bool moves_blocks =
        !plan.moves.copy.empty() || !plan.moves.swap_in.empty() || !plan.moves.swap_out.empty() || !had_work;
    if (!moves_blocks && draw(0, 9) == 0) {  // the executor fails, and the step is planned again
      ++totals_.lost;
      totals_.lost_encodes += static_cast<int64_t>(plan.encodes.size());
      return ok_status();
    }
    if (had_work) engine_.finish_step();
    const int32_t fewer_pinned = num_pinned - engine_.scheduler().blocks().device_usage().pinned;
    totals_.reclaimed += fewer_pinned > 0 && plan.num_encoder_cache_hits == 0;
    totals_.idle_hits += fewer_pinned > 0 && plan.num_encoder_cache_hits > 0;
    count_long_encode(plan);
    ++totals_.steps;
    count_moves(plan);
    return engine_.results().size() == num_results ? ok_status() : check_results();
  }

  void count_moves(const SchedulerOutputs& plan) {
    totals_.preempted += plan.num_preempted;
    totals_.swapped_out += plan.num_swapped_out;
    totals_.swapped_in += plan.num_swapped_in;
  }

  // Plans until there are as many as may be, now and then fewer; collects the oldest. Aborts come at every point.
  Status overlapping_step() {
    Scheduler& scheduler = engine_.scheduler();
    const bool had_work = scheduler.has_unfinished();
    bool has_plan = true;
    while (has_plan && scheduler.may_schedule() && (scheduler.num_steps_in_flight() == 0 || draw(0, 5) > 0)) {
      has_plan = engine_.begin_step();
      RETURN_IF_ERROR(check_plan(engine_.plan()));
      if (has_plan) count_moves(engine_.plan());
      totals_.hits += engine_.plan().num_encoder_cache_hits;
      if (draw(0, 9) == 0) abort_one();
      RETURN_IF_ERROR(scheduler.check_invariants());
      RETURN_IF_ERROR(check_in_flight());
    }
    if (scheduler.num_steps_in_flight() == 0) {
      return had_work && scheduler.has_unfinished() ? absl::InternalError("nothing in flight, and work to do")
                                                    : ok_status();
    }
    totals_.overlapped += scheduler.num_steps_in_flight() > 1;
    if (!moves_blocks_in_flight() && draw(0, 19) == 0) {  // the executor fails, and all is planned again
      engine_.lose_steps();
      ++totals_.lost;
      return ok_status();
    }
    engine_.finish_step();
    ++totals_.steps;
    return check_results();
  }

  bool moves_blocks_in_flight() {
    for (int32_t i = 0; i < engine_.scheduler().num_steps_in_flight(); ++i) {
      const BlockMoves& moves = engine_.plan_in_flight(i).moves;
      if (!moves.copy.empty() || !moves.swap_in.empty() || !moves.swap_out.empty()) return true;
    }
    return false;
  }

  // Each group is in one plan in flight, runs, and has the blocks that the plan says.
  Status check_in_flight() {
    const Scheduler& scheduler = engine_.scheduler();
    std::set<GroupId> busy;
    for (int32_t i = 0; i < scheduler.num_steps_in_flight(); ++i) {
      const SchedulerOutputs& plan = engine_.plan_in_flight(i);
      std::set<GroupId> own;
      for (const SequenceGroupMetadata& group : plan.groups) own.insert(group.group_id);
      const std::set<GroupId> feeding = own;
      for (const PlannedEncode& encode : plan.encodes) {
        if (feeding.contains(encode.group_id)) return absl::InternalError("rows in the plan that encodes for them");
        own.insert(encode.group_id);
      }
      for (const GroupId id : own) {
        if (!busy.insert(id).second) return absl::InternalError("a group is in two plans in flight");
        const SequenceGroup* group = scheduler.find(id);
        if (group == nullptr || group->state() != SequenceGroup::State::kRunning || !group->is_busy()) {
          return absl::InternalError("a group of a plan in flight does not run");
        }
        totals_.aborted_in_flight += group->is_finished();
      }
      for (const SequenceGroupMetadata& group : plan.groups) RETURN_IF_ERROR(check_blocks(group));
    }
    return ok_status();
  }

  Status check_blocks(const SequenceGroupMetadata& group) {
    const BlockSpaceManager& blocks = engine_.scheduler().blocks();
    const auto is_same = [](const BlockTable& planned, std::span<const BlockId> table) {
      return std::ranges::equal(planned, table);
    };
    for (size_t seq = 0; seq < group.seq_data.size(); ++seq) {
      for (size_t spec = 0; spec < blocks.specs_of(TableOwner::kSequence).size(); ++spec) {
        if (!is_same(group.sequence_table(seq, spec), blocks.get_block_table(group.seq_data[seq].seq_id, spec))) {
          return absl::InternalError("a sequence of a plan in flight has lost its blocks");
        }
      }
    }
    for (size_t i = 0; i < group.group_tables.size(); ++i) {
      if (!is_same(group.group_tables[i], blocks.get_shared_table(group.group_id, i))) {
        return absl::InternalError("a group of a plan in flight has lost its cross table");
      }
    }
    return ok_status();
  }

  Status check_results() {
    for (auto entry = requests_.begin(); entry != requests_.end();) {
      const auto result = engine_.results().find(entry->first);
      if (result == engine_.results().end()) {
        ++entry;
        continue;
      }
      RETURN_IF_ERROR(check_result(entry->first, entry->second, result->second));
      entry = requests_.erase(entry);
      ++totals_.finished;
    }
    return ok_status();
  }

  // Half of the histories have long encodes, with limits that come, change and go.
  void limit_encodes() {
    if (!has_long_encodes_ || draw(0, 3) > 0) return;
    const std::optional<int32_t> limit = draw(0, 4) == 0 ? std::nullopt : std::optional<int32_t>(draw(0, 20));
    engine_.scheduler().set_max_tokens_beside(limit, std::nullopt);
    engine_.model().set_pace(static_cast<size_t>(draw(1, 4)));
  }

  void count_long_encode(const SchedulerOutputs& plan) {
    const LongEncode& encode = plan.long_encode;
    totals_.long_begun += encode.runs && encode.begins;
    totals_.long_went_on += encode.runs && !encode.begins;
    totals_.long_to_the_end += encode.runs && encode.to_the_end;
    totals_.long_ended += encode.runs && engine_.model().long_encode_ended();
  }

  Status check_result(GroupId id, const FakeRequest& request, const Texts& texts) const {
    if (texts != reference_texts(request)) return absl::InternalError(str_cat("group ", id.value(), ": wrong text"));
    if (!request.params.prompt_logprobs) return ok_status();
    // Every row of the prompt exactly once, whatever happened in between.
    const auto rows = engine_.prompt_rows().find(id);
    const size_t num_rows = rows == engine_.prompt_rows().end() ? 0 : rows->second.size();
    bool in_order = num_rows == request.decoder.size() - 1;
    for (size_t i = 0; in_order && i < num_rows; ++i) in_order = rows->second[i] == static_cast<int32_t>(i) + 1;
    return in_order ? ok_status() : absl::InternalError(str_cat("group ", id.value(), ": wrong prompt_logprobs rows"));
  }

  Status check_plan(const SchedulerOutputs& plan) {
    const Scheduler::Options& options = engine_.scheduler().options();
    int32_t num_tokens = 0, num_encoder_tokens = 0, num_seqs = 0;
    std::set<GroupId> seen;
    for (const SequenceGroupMetadata& group : plan.groups) {
      if (!seen.insert(group.group_id).second) return absl::InternalError("a group is planned twice");
      const BlockSpaceManager& blocks = engine_.scheduler().blocks();
      const size_t num_specs = blocks.specs_of(TableOwner::kSequence).size();
      if (group.seq_data.size() * num_specs != group.sequence_tables.size()) {
        return absl::InternalError("tables are missing");
      }
      totals_.of_several_specs += num_specs > 1;
      for (const SequenceData& seq : group.seq_data) {
        if (seq.token_ids.empty()) return absl::InternalError("a sequence without rows");
        if (seq.sampled != group.seq_data[0].sampled) return absl::InternalError("a group is sampled in parts");
        num_tokens += static_cast<int32_t>(seq.token_ids.size());
        totals_.chunks += !seq.sampled;
        ++num_seqs;
      }
      const size_t num_cross = group.num_cross_tokens > 0 ? blocks.specs_of(TableOwner::kGroup).size() : 0;
      if (group.group_tables.size() != num_cross) return absl::InternalError("a cross table is missing");
      const SequenceGroup& owner = *engine_.scheduler().find(group.group_id);
      std::set<int32_t> items;
      for (const PlannedEncode& encode : plan.encodes) {
        if (encode.group_id == group.group_id && !items.insert(encode.item).second) {
          return absl::InternalError("an item is encoded twice");
        }
      }
      totals_.in_several_steps += owner.awaits_items() && items.size() < owner.items().size();
    }
    for (const PlannedEncode& encode : plan.encodes) {
      for (const BlockTable& table : encode.group_tables) totals_.written_in_part += table.empty();
      num_encoder_tokens += encode.num_rows;
      totals_.encodes_without_rows += !seen.contains(encode.group_id);
    }
    if (plan.long_encode.runs && !seen.insert(plan.long_encode.encode.group_id).second) {
      return absl::InternalError("a group decodes before it is encoded");
    }
    // A long one is no part of the step's: it has memory of its own.
    const int32_t num_long = plan.long_encode.begins ? plan.long_encode.encode.num_rows : 0;
    if (num_tokens != plan.num_decoder_tokens || num_tokens > options.max_num_batched_tokens ||
        num_encoder_tokens + num_long != plan.num_encoder_tokens ||
        num_encoder_tokens > options.max_num_encoder_tokens || num_seqs != plan.num_seqs ||
        num_seqs > options.max_num_seqs) {
      return absl::InternalError("a budget is exceeded or miscounted");
    }
    return ok_status();
  }

  std::mt19937_64 random_;
  Totals& totals_;
  int32_t max_in_flight_;
  BlockSpaceManager::Options block_options_;
  FakeEngine engine_;
  bool has_long_encodes_ = draw(0, 1) == 1;
  std::map<GroupId, FakeRequest> requests_;  // unfinished
  std::set<std::pair<uint64_t, uint64_t>> pinned_;
  uint64_t next_id_ = 1;
};

TEST(Scheduler, RandomHistoriesGiveEveryTextItsOwn) {
  Totals totals;
  for (uint64_t seed = 1; seed <= (kSanitized ? 150 : 600); ++seed) {
    const Status status = History(seed, totals).run(150);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
  }
  if (kSanitized) return;  // fewer histories than these counts are for
  // The histories go where they are meant to go.
  EXPECT_GT(totals.finished, 1000);
  EXPECT_GT(totals.aborted, 100);
  EXPECT_GT(totals.refused, 100);
  EXPECT_GT(totals.preempted - totals.swapped_out, 100);
  EXPECT_GT(totals.swapped_out, 100);
  EXPECT_GT(totals.swapped_in, 100);
  EXPECT_GT(totals.chunks, 100);
  EXPECT_GT(totals.copies, 100);
  EXPECT_GT(totals.hits, 1000);
  EXPECT_GT(totals.idle_hits, 100);
  EXPECT_GT(totals.reclaimed, 100);
  EXPECT_GT(totals.lost, 100);
  EXPECT_GT(totals.lost_encodes, 100);
  EXPECT_GT(totals.long_begun, 500);
  EXPECT_GT(totals.long_went_on, 1000);
  EXPECT_GT(totals.long_ended, 500);
  EXPECT_GT(totals.long_dropped, 20);
  EXPECT_GT(totals.long_to_the_end, 100);
  EXPECT_GT(totals.several, 1000);
  EXPECT_GT(totals.in_several_steps, 100);
  EXPECT_GT(totals.encodes_without_rows, 100);
  EXPECT_GT(totals.spliced, 5000);
  EXPECT_GT(totals.of_several_specs, 1000);
  EXPECT_GT(totals.written_in_part, 10) << "one table was evicted, another was not";
}

TEST(Scheduler, RandomHistoriesWithPlansInFlightGiveEveryTextItsOwn) {
  for (const int32_t max_in_flight : {2, 4}) {
    Totals totals;
    for (uint64_t seed = 1; seed <= (kSanitized ? 100 : 400); ++seed) {
      const Status status = History(seed, totals, max_in_flight).run(150);
      ASSERT_TRUE(status.ok()) << max_in_flight << " in flight, seed " << seed << ": " << status;
    }
    if (kSanitized) continue;
    EXPECT_GT(totals.finished, 500);
    EXPECT_GT(totals.aborted, 500);
    EXPECT_GT(totals.aborted_in_flight, 100);
    EXPECT_GT(totals.overlapped, 1000);
    EXPECT_GT(totals.preempted - totals.swapped_out, 50);
    EXPECT_GT(totals.swapped_out, 20);
    EXPECT_GT(totals.swapped_in, 15);
    EXPECT_GT(totals.copies, 100);
    EXPECT_GT(totals.hits, 300);
    EXPECT_GT(totals.lost, 50);
    EXPECT_GT(totals.spliced, 2000);
  }
}

// ---- The same requests under every pool, block size, budget, mode and order of arrival: always the same texts.

struct Circumstances {
  int32_t block_size;
  int32_t num_slots;
  PreemptionMode mode;
  int32_t max_num_batched_tokens;
  bool reversed;
};

std::vector<Circumstances> all_circumstances() {
  std::vector<Circumstances> all;
  for (const int32_t block_size : {1, 4, 16, 32}) {
    for (const int32_t num_slots : {112, 160, 4096}) {
      for (const PreemptionMode mode : {PreemptionMode::kAuto, PreemptionMode::kRecompute, PreemptionMode::kSwap}) {
        for (const int32_t num_tokens : {4, 256}) {
          for (const bool reversed : {false, true}) all.push_back({block_size, num_slots, mode, num_tokens, reversed});
        }
      }
    }
  }
  return all;
}

FakeEngine make_engine(const Circumstances& c) {
  BlockSpaceManager::Options blocks;
  blocks.block_size = c.block_size;
  // The largest request wants three sequences of one block and a cross block of 32; one more makes it move.
  blocks.num_device_blocks = std::max(c.num_slots / c.block_size, 5);
  blocks.num_host_blocks = blocks.num_device_blocks / 2;
  blocks.watermark = 0;
  blocks.track_freed_blocks = true;
  blocks.shuffle_seed = 3;
  Scheduler::Options options;
  options.max_num_batched_tokens = c.max_num_batched_tokens;
  options.max_num_encoder_tokens = 16;
  options.max_num_seqs = std::min(c.max_num_batched_tokens, 16);
  options.preemption_mode = c.mode;
  return {options, blocks};
}

std::vector<FakeRequest> mixed_requests() {
  std::mt19937_64 random(5);
  std::vector<FakeRequest> requests(12);
  for (size_t i = 0; i < requests.size(); ++i) {
    FakeRequest& request = requests[i];
    for (size_t j = 0; j < 3 + i; ++j) request.encoder.push_back(static_cast<int32_t>(random() % kVocabSize));
    for (size_t j = 0; j < 1 + i % 5; ++j) request.decoder.push_back(static_cast<int32_t>(random() % kVocabSize));
    request.params.max_tokens = 4 + static_cast<int32_t>(i);
    request.params.seed = random();
    if (i % 3 == 1) request.params.n = 3;
    if (i % 3 == 2) request.params.num_beams = 3;
  }
  return requests;
}

TEST(Scheduler, TextsDoNotDependOnHowTheyAreScheduled) {
  const std::vector<FakeRequest> requests = mixed_requests();
  int64_t num_preempted = 0;
  for (const Circumstances& circumstances : all_circumstances()) {
    FakeEngine engine = make_engine(circumstances);
    for (size_t i = 0; i < requests.size(); ++i) {
      const size_t r = circumstances.reversed ? requests.size() - 1 - i : i;
      ASSERT_TRUE(engine.add(GroupId(r + 1), requests[r]).ok());
    }
    while (engine.step()) num_preempted += engine.plan().num_preempted;
    for (size_t r = 0; r < requests.size(); ++r) {
      ASSERT_EQ(engine.results().at(GroupId(r + 1)), reference_texts(requests[r]))
          << "block size " << circumstances.block_size << ", slots " << circumstances.num_slots << ", request " << r;
    }
  }
  EXPECT_GT(num_preempted, 100);
}

}  // namespace
}  // namespace transept::testing
