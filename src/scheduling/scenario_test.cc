// Runs src/scheduling/testdata/*.txt: what the scheduler plans, step by step, around the fake model. Invariants are
// checked after every line, and every text that ends is compared with the reference.
//
//   pool device=16 host=16 block=4 watermark=0 tokens=64 encoder_tokens=64 seqs=4 mode=auto|recompute|swap share=0
//        [in_flight=2]    plans; then begin plans one more, end collects the oldest, and step does one of each
//        [cross=8] [rows=8]       tokens of a block of a cross table, rows of one of an item's own; as block if absent
//        [self2=8] [cross2=8] [rows2=8]   a second spec of the owner, with so many
//   add g1 decoder=4 encoder=4 max=8 [n=2] [beams=2] [hash=7] [logprobs=1] [score=1] -> ok | what the error says
//                 [items=c4,s3@1~7]  instead of encoder: four rows that are crossed; three that are spliced from token
//                                    1 on, with digest 7; cs: both
//   step -> what happened, each part only if it did:
//           recompute g3; swap_out g4; swap_in g5; encode g1; begin_encode g2 | go_on_with g2 | end_encode g2;
//           feed g1=4 g2=1+1; copy 1; done g2     | nothing
//           (g2=1+1: two sequences with a row each; in brackets if none of a group's rows is sampled)
//           (of a long encode: its first step; another one; the last, which nobody waits for)
//   beside 4 pace=2               set_max_tokens_beside; positions of a long encode that a step does
//   steps 5                       the same, so many times, unseen
//   begin -> ... and then end     the two halves of a step
//   lose -> as begin              the step is planned and never executed
//   pin 7 | unpin 7               inputs with this hash
//   abort g1 -> yes | no
//   plan g1 -> self 1+1 cross 1 encoder 4 logits 0      blocks a sequence, cross blocks, encoder ids, first logits rows
//           (self 4:1+4:1 cross 2:1: of two specs each)
//   expect free_device=16 free_host=16 pinned=0 running=0 waiting=0 swapped=0 tokens=16 encoder=16 encodes=2 hits=1
//   finish -> ok                  steps until nothing is left; then no block is in use
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "base/content_digest_testing.h"
#include "base/source_dir_testing.h"
#include "kv/scenario_testing.h"
#include "scheduling/fake_engine_testing.h"

namespace transept::testing {
namespace {

using State = SequenceGroup::State;

GroupId group_of(const std::string& name) { return GroupId(static_cast<uint64_t>(std::stoi(name.substr(1)))); }
std::string name_of(GroupId id) { return str_cat("g", id.value()); }

class Runner {
 public:
  // The command's answer, "" where it has none; nothing: no such command.
  std::optional<std::string> run(ScenarioLine& line) {
    const std::string command = line.next();
    if (command == "pool") return pool(line), "";
    if (!engine_) return std::nullopt;
    if (command == "add") return add(line);
    if (command == "step") return step();
    if (command == "beside") return beside(line), "";
    if (command == "steps") return steps(std::stoi(line.next())), "";
    if (command == "begin") return begin();
    if (command == "end") return end();
    if (command == "lose") return begin();
    if (command == "pin") return engine_->scheduler().pin_input(hash_of(line.next())), "";
    if (command == "unpin") return engine_->scheduler().unpin_input(hash_of(line.next())), "";
    if (command == "abort") return abort(group_of(line.next()));
    if (command == "plan") return plan(group_of(line.next()));
    if (command == "expect") return expect(line), "";
    if (command == "finish") return finish();
    return std::nullopt;
  }

  Status check() const { return engine_ ? engine_->scheduler().check_invariants() : ok_status(); }

 private:
  void pool(ScenarioLine& line) {
    BlockSpaceManager::Options blocks;
    blocks.num_device_blocks = line.number("device", 16);
    blocks.num_host_blocks = line.number("host", 16);
    blocks.block_size = line.number("block", 4);
    blocks.specs = {{TableOwner::kSequence},
                    {TableOwner::kGroup, line.number("cross", 0)},
                    {TableOwner::kItem, line.number("rows", 0)}};
    const auto add_second = [&](TableOwner owner, const std::string& name) {
      if (const int32_t size = line.number(name, 0); size > 0) blocks.specs.push_back({owner, size});
    };
    add_second(TableOwner::kSequence, "self2");
    add_second(TableOwner::kGroup, "cross2");
    add_second(TableOwner::kItem, "rows2");
    blocks.watermark = std::stod(line.option("watermark").value_or("0"));
    blocks.share_identical_inputs = line.number("share", 0) != 0;
    blocks.track_freed_blocks = true;
    Scheduler::Options options;
    options.max_num_batched_tokens = line.number("tokens", 64);
    options.max_num_encoder_tokens = line.number("encoder_tokens", 64);
    options.max_num_seqs = line.number("seqs", 4);
    options.max_steps_in_flight = line.number("in_flight", 1);
    const std::string mode = line.option("mode").value_or("auto");
    if (mode == "recompute") options.preemption_mode = PreemptionMode::kRecompute;
    if (mode == "swap") options.preemption_mode = PreemptionMode::kSwap;
    engine_ = std::make_unique<FakeEngine>(options, blocks);
    requests_.clear();
  }

  void beside(ScenarioLine& line) {
    engine_->scheduler().set_max_tokens_beside(std::stoi(line.next()), std::nullopt);
    engine_->model().set_pace(static_cast<size_t>(line.number("pace", 3)));
  }

  std::string add(ScenarioLine& line) {
    const GroupId id = group_of(line.next());
    FakeRequest request;
    const int32_t num_encoder = line.number("encoder", 0), num_decoder = line.number("decoder", 1);
    const int32_t seed = static_cast<int32_t>(id.value());
    for (int32_t i = 0; i < num_encoder; ++i) request.encoder.push_back((i * 3 + 1) % kVocabSize);
    for (int32_t i = 0; i < num_decoder; ++i) request.decoder.push_back((i * seed + 2) % kVocabSize);
    request.params.max_tokens = line.number("max", 8);
    request.params.n = line.number("n", 1);
    request.params.num_beams = line.number("beams", 1);
    request.params.seed = static_cast<uint64_t>(seed);
    request.params.ignore_eos = true;
    if (line.number("logprobs", 0) != 0) request.params.prompt_logprobs = 1;
    request.params.score_only = line.number("score", 0) != 0;
    if (const auto hash = line.option("hash")) request.encoder_digest = hash_of(*hash);
    if (const auto items = line.option("items")) request.items = items_of(*items);
    const Status status = engine_->add(id, request);
    if (!status.ok()) return error_message(status);
    requests_[id] = request;
    return "ok";
  }

  static std::vector<EncoderItem> items_of(const std::string& text) {
    std::vector<EncoderItem> items;
    for (size_t begin = 0; begin < text.size();
         begin = text.find(',', begin) == std::string::npos ? text.size() : text.find(',', begin) + 1) {
      const std::string item = text.substr(begin, text.find(',', begin) - begin);
      const size_t size_at = item.find_first_of("0123456789");
      const std::string kind = item.substr(0, size_at);
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < std::stoi(item.substr(size_at)); ++i) ids.push_back((i * 3 + 1) % kVocabSize);
      EncoderItem& added = items.emplace_back(std::move(ids));
      added.consumers = kind == "c"   ? Consumers::kCross
                        : kind == "s" ? Consumers::kSplice
                                      : Consumers::kCross | Consumers::kSplice;
      if (const size_t at = item.find('@'); at != std::string::npos)
        added.splice_offset = std::stoi(item.substr(at + 1));
      if (const size_t at = item.find('~'); at != std::string::npos) added.digest = hash_of(item.substr(at + 1));
    }
    return items;
  }

  static ContentDigest hash_of(const std::string& name) {
    return testing::digest_of(static_cast<uint64_t>(std::stoi(name)));
  }

  std::string begin() {
    before_ = states();
    return engine_->begin_step() ? planned() : "nothing";
  }
  std::string end() { return engine_->finish_step(), done(); }
  std::string step() {
    const Scheduler& scheduler = engine_->scheduler();
    const bool is_alone = scheduler.options().max_steps_in_flight == 1;  // a lost step is no more in flight
    std::string answer = is_alone || scheduler.may_schedule() ? begin() : "";
    if (scheduler.num_steps_in_flight() == 0) return answer;
    const std::string finished = end();
    return finished.empty() ? answer : str_cat(answer, "; ", finished);
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }

  std::map<GroupId, State> states() const {
    std::map<GroupId, State> states;
    for (const auto& [id, request] : requests_) {
      if (const SequenceGroup* group = engine_->scheduler().find(id)) states[id] = group->state();
    }
    return states;
  }

  std::string planned() const {
    std::vector<std::string> parts;
    const SchedulerOutputs& plan = engine_->plan();
    std::set<GroupId> encoded;
    for (const PlannedEncode& encode : plan.encodes) encoded.insert(encode.group_id);
    const auto moved = [&](std::string_view what, auto has_moved) {
      std::string groups;
      for (const auto& [id, now] : states()) {
        if (has_moved(before_.at(id), now, encoded.contains(id))) groups += str_cat(" ", name_of(id));
      }
      if (!groups.empty()) parts.push_back(str_cat(what, groups));
    };
    // A group that left the host pool and is encoded in one step went by way of waiting.
    moved("recompute", [](State was, State now, bool is_encoded) {
      return (was != State::kWaiting && now == State::kWaiting) || (was == State::kSwapped && is_encoded);
    });
    moved("swap_out", [](State was, State now, bool) { return was == State::kRunning && now == State::kSwapped; });
    moved("swap_in", [](State was, State now, bool is_encoded) {
      return was == State::kSwapped && now == State::kRunning && !is_encoded;
    });
    std::string encodes, feeds;
    for (const PlannedEncode& encode : plan.encodes) encodes += str_cat(" ", name_of(encode.group_id));
    for (const SequenceGroupMetadata& group : plan.groups) {
      std::vector<std::string> rows;
      for (const SequenceData& seq : group.seq_data) rows.push_back(str_cat(seq.token_ids.size()));
      const std::string all = join(rows, "+");
      feeds += str_cat(" ", name_of(group.group_id), "=", group.seq_data[0].sampled ? all : str_cat("(", all, ")"));
    }
    if (!encodes.empty()) parts.push_back(str_cat("encode", encodes));
    if (const LongEncode& encode = plan.long_encode; encode.runs) {
      const char* const what = encode.to_the_end ? "end_encode " : encode.begins ? "begin_encode " : "go_on_with ";
      parts.push_back(str_cat(what, name_of(encode.encode.group_id)));
    }
    if (!feeds.empty()) parts.push_back(str_cat("feed", feeds));
    if (!plan.moves.copy.empty()) parts.push_back(str_cat("copy ", plan.moves.copy.size()));
    return join(parts, "; ");
  }

  std::string done() {
    std::string groups;
    for (auto entry = requests_.begin(); entry != requests_.end();) {
      const auto result = engine_->results().find(entry->first);
      if (result == engine_->results().end()) {
        ++entry;
        continue;
      }
      EXPECT_EQ(result->second, reference_texts(entry->second)) << name_of(entry->first);
      groups += str_cat(" ", name_of(entry->first));
      entry = requests_.erase(entry);
    }
    return groups.empty() ? "" : str_cat("done", groups);
  }

  std::string abort(GroupId id) {
    requests_.erase(id);
    return engine_->abort(id) ? "yes" : "no";
  }

  std::string plan(GroupId id) const {
    for (const SequenceGroupMetadata& group : engine_->plan().groups) {
      if (group.group_id != id) continue;
      std::vector<std::string> self, logits;
      const size_t num_specs = group.sequence_tables.size() / group.seq_data.size();
      for (size_t i = 0; i < group.seq_data.size(); ++i) {
        self.push_back(sizes({group.sequence_tables.begin() + i * num_specs, num_specs}));
        logits.push_back(str_cat(group.seq_data[i].first_logits_row));
      }
      return str_cat("self ", join(self, "+"), " cross ",
                     sizes({group.group_tables.begin(), group.group_tables.size()}), " encoder ",
                     group.num_cross_tokens, " logits ", join(logits, "+"));
    }
    return "none";
  }

  // Of one owner's tables, spec by spec.
  static std::string sizes(std::span<const BlockTable> tables) {
    std::vector<std::string> all;
    for (const BlockTable& table : tables) all.push_back(str_cat(table.size()));
    return all.empty() ? "0" : join(all, ":");
  }

  void expect(ScenarioLine& line) const {
    const Scheduler& scheduler = engine_->scheduler();
    const SchedulerOutputs& plan = engine_->plan();
    const std::map<std::string, int64_t> actual = {
        {"free_device", scheduler.blocks().get_num_free_device_blocks()},
        {"free_host", scheduler.blocks().get_num_free_host_blocks()},
        {"running", static_cast<int64_t>(scheduler.running().size())},
        {"waiting", static_cast<int64_t>(scheduler.waiting().size())},
        {"swapped", static_cast<int64_t>(scheduler.swapped().size())},
        {"tokens", plan.num_decoder_tokens},
        {"encoder", plan.num_encoder_tokens},
        {"encodes", engine_->model().num_encodes()},
        {"pinned", scheduler.blocks().device_usage().pinned},
        {"hits", plan.num_encoder_cache_hits},
        {"in_flight", scheduler.num_steps_in_flight()},
        {"busy", std::ranges::count_if(scheduler.running(), &SequenceGroup::is_busy)},
    };
    for (const auto& [name, value] : line.all_options()) {
      const auto entry = actual.find(name);
      ASSERT_TRUE(entry != actual.end()) << "no such number: " << name;
      EXPECT_EQ(str_cat(entry->second), value) << name;
    }
  }

  std::string finish() {
    for (int i = 0; engine_->scheduler().has_unfinished(); ++i) {
      if (i == 1000) return "it never ends";
      step();
      if (const Status status = check(); !status.ok()) return error_message(status);
    }
    const BlockSpaceManager& blocks = engine_->scheduler().blocks();
    const bool all_free = blocks.get_num_free_device_blocks() == blocks.num_device_blocks() &&
                          blocks.get_num_free_host_blocks() == blocks.num_host_blocks();
    return requests_.empty() && all_free ? "ok" : "something is left";
  }

  std::unique_ptr<FakeEngine> engine_;
  std::map<GroupId, FakeRequest> requests_;  // unfinished
  std::map<GroupId, State> before_;
};

TEST(SchedulerScenarios, EveryFile) {
  const auto files = read_scenarios(source_dir() + "/src/scheduling/testdata");
  ASSERT_FALSE(files.empty());
  for (const auto& lines : files) {
    Runner runner;
    for (ScenarioLine line : lines) {
      SCOPED_TRACE(line.where());
      const auto answer = runner.run(line);
      ASSERT_TRUE(answer.has_value()) << "no such command";
      ASSERT_EQ(line.rest(), "") << "not understood";
      if (line.expected()) {
        EXPECT_EQ(*answer, *line.expected());
      }
      ASSERT_TRUE(runner.check().ok()) << runner.check();
    }
  }
}

}  // namespace
}  // namespace transept::testing
