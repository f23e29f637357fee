// Runs src/kv/testdata/*.txt: the block manager's rules and numbers as scenarios. check_invariants() after every line.
//
//   pool device=4 host=4 block=4 watermark=0 [share=1]   a new manager
//   can_allocate g1 decoder=4 encoder=4 [hash=7] [ahead=1] -> ok | later | never
//   allocate g1 decoder=4 encoder=4 [hash=7] [write=0]   -> ok, and the tables are taken | later | never
//                                                        (write=0: a new cross table is not written yet)
//   write g1 | begin_write g1, then finish_writes | abandon_writes
//   awaits g1 decoder=4 encoder=4 hash=7 -> yes | no
//   pin 7 | unpin 7                                      the hash
//   append g1.0 3                                        -> the number of blocks copied | no room
//   fork g1.0 g1.1 | truncate g1.0 5 | free g1.0 | free g1 (all its sequences) | free_cross g1 | reset
//   can_swap_out g1 -> yes | no       swap_out g1 -> moves as src>dst, in order
//   can_swap_in g1  -> ok | later | never             swap_in g1 -> moves
//   table g1.0 [1] -> block ids (of the second sequence spec)           cross g1 -> block ids
//   expect free_device=2 available=3 free_host=4 self=1 cross=1 items=1 pinned=1 watermark=0
//   pool ... specs=seq:4,group:16,item:2                 owners, and the tokens of a block
//   allocate g1 decoder=4 tables=1:16:7,2:3              shared tables: spec, tokens, hash
//   shared g1 1 -> block ids          free_shared g1 1   of the second of them
//   pool ... keep=1 reserved=5                           unused items stay; what reservations may hold
//   reserve r1 tokens=8 hash=7 [spec=1] -> new | joined | later | never
//   finish r1 -> yes | no             free r1            reserved r1 -> block ids
//   written 7 [spec=1] -> tokens
//   pool ... cache=1 cap=5 ttl=10 prefixes=1             inputs are cached: blocks, seconds; full blocks are remembered
//   remember g1.0 0 71                                   the sequence's block 0, by this hash
//   allocate g2 decoder=9 prefix=71,72                   it begins with what these hashes name
//   known 71,72 -> how many of the first are             time 12: seconds since the pool was made
//   clear -> blocks that are free by it
//   expect tables=1 cached=3 evictions=1 expirations=0 prefixes=2
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/content_digest_testing.h"
#include "base/source_dir_testing.h"
#include "kv/block_space_manager.h"
#include "kv/scenario_testing.h"

namespace transept {
namespace {

std::string name_of(AllocStatus status) {
  switch (status) {
    case AllocStatus::kOk: return "ok";
    case AllocStatus::kLater: return "later";
    case AllocStatus::kNever: return "never";
  }
  return "";
}

std::string listed(std::span<const BlockId> blocks) {
  std::vector<std::string> parts;
  for (const BlockId block : blocks) parts.push_back(str_cat(block));
  return join(parts, " ");
}

std::string listed(std::span<const BlockCopy> copies) {
  std::vector<std::string> parts;
  for (const BlockCopy& copy : copies) parts.push_back(str_cat(copy.src, ">", copy.dst));
  return join(parts, " ");
}

GroupId group_of(const std::string& name) {
  return GroupId(static_cast<uint64_t>(std::stoi(name.substr(1))));  // "g7", "g7.2"
}

SeqId seq_of(const std::string& name) {
  const size_t dot = name.find('.');
  const int index = dot == std::string::npos ? 0 : std::stoi(name.substr(dot + 1));
  return SeqId(group_of(name).value() * 1000 + static_cast<uint64_t>(index));
}

class Runner {
 public:
  // The command's answer, "" where it has none; nothing: no such command.
  std::optional<std::string> run(ScenarioLine& line) {
    const std::string command = line.next();
    if (command == "pool") {
      manager_ = std::make_unique<BlockSpaceManager>(options(line));
      return "";
    }
    if (!manager_) return std::nullopt;
    if (command == "can_allocate") return name_of(manager_->can_allocate(request(line)));
    if (command == "allocate") return allocate(line);
    if (command == "append") return append(line);
    if (command == "expect") return expect(line);
    if (command == "table") return table(line);
    if (command == "cross") return listed(manager_->get_shared_table(group_of(line.next())));
    if (command == "shared") return shared(line);
    if (command == "reset") return manager_->reset(), "";
    if (command == "remember") return remember(line);
    if (command == "known") return str_cat(manager_->find_prefix(hashes_of(line.next())));
    if (command == "time") return manager_->advance_to(TimePoint{} + std::chrono::seconds(std::stoi(line.next()))), "";
    if (command == "clear") return str_cat(manager_->clear_cache());
    if (command == "fork") return fork(line);
    if (command == "truncate") return truncate(line);
    if (command == "free") return free(line.next());
    if (command == "free_cross") return manager_->free_shared(group_of(line.next())), "";
    if (command == "free_shared") return free_shared(line);
    if (command == "pin") return manager_->pin(hash_of(line.next())), "";
    if (command == "unpin") return manager_->unpin(hash_of(line.next())), "";
    if (command == "awaits") return manager_->awaits_shared(request(line)) ? "yes" : "no";
    if (command == "reserve" || command == "finish" || command == "reserved") return reservation(command, line);
    if (command == "written") {
      const ContentDigest hash = hash_of(line.next());
      return str_cat(manager_->find_written(hash, line.number("spec", 1)));
    }
    if (command.find("write") != std::string::npos) return write(command, line);
    return swap(command, line);
  }

  Status check() const { return manager_ ? manager_->check_invariants() : ok_status(); }

 private:
  static BlockSpaceManager::Options options(ScenarioLine& line) {
    BlockSpaceManager::Options options;
    options.num_device_blocks = line.number("device", 0);
    options.num_host_blocks = line.number("host", 0);
    options.block_size = line.number("block", 16);
    options.watermark = std::stod(line.option("watermark").value_or("0"));
    options.share_identical_inputs = line.number("share", 0) != 0;
    options.max_reserved_blocks = line.number("reserved", 0);
    options.keep_unused_items = line.number("keep", 0) != 0;
    options.cache_inputs = line.number("cache", 0) != 0;
    options.share_identical_inputs |= options.cache_inputs;
    options.cache_prefixes = line.number("prefixes", 0) != 0;
    if (const auto cap = line.option("cap")) options.max_cached_blocks = std::stoi(*cap);
    if (const auto ttl = line.option("ttl")) options.cache_ttl = std::chrono::seconds(std::stoi(*ttl));
    if (const auto specs = line.option("specs")) {
      options.specs.clear();
      for (const std::string_view part : split(*specs, ',')) options.specs.push_back(spec_of(std::string(part)));
    }
    return options;
  }

  // "seq:4", "group:16", "item"
  static TableSpec spec_of(const std::string& text) {
    const std::vector<std::string_view> parts = split(text, ':');
    const std::string_view owner = parts.at(0);
    CHECK(owner == "seq" || owner == "group" || owner == "item", "no such owner: ", owner);
    TableSpec spec;
    spec.owner = owner == "seq" ? TableOwner::kSequence : owner == "group" ? TableOwner::kGroup : TableOwner::kItem;
    if (parts.size() > 1) spec.tokens_per_block = std::stoi(std::string(parts[1]));
    return spec;
  }

  // The request's prefix is a view of prefix_.
  BlockSpaceManager::Request request(ScenarioLine& line) {
    BlockSpaceManager::Request request;
    prefix_ = hashes_of(line.option("prefix").value_or(""));
    request.prefix = prefix_;
    const std::string name = line.next();
    request.group_id = group_of(name);
    request.seq_id = seq_of(name);
    request.num_tokens = line.number("decoder", 0);
    request.num_blocks_ahead = line.number("ahead", 0);
    const int32_t num_encoder_tokens = line.number("encoder", 0);
    const auto hash = line.option("hash");
    if (num_encoder_tokens > 0) {
      request.shared.push_back({.num_tokens = num_encoder_tokens});
      if (hash) request.shared.back().digest = hash_of(*hash);
    }
    // "2:5:7,1:4": spec, tokens, hash
    const std::string tables = line.option("tables").value_or("");
    for (const std::string_view part : split(tables, ',')) {
      if (part.empty()) continue;
      const std::vector<std::string_view> numbers = split(part, ':');
      request.shared.push_back(
          {.spec = std::stoi(std::string(numbers.at(0))), .num_tokens = std::stoi(std::string(numbers.at(1)))});
      if (numbers.size() > 2) request.shared.back().digest = hash_of(std::string(numbers[2]));
    }
    return request;
  }

  static ContentDigest hash_of(const std::string& name) {
    return testing::digest_of(static_cast<uint64_t>(std::stoi(name)));
  }

  static std::vector<ContentDigest> hashes_of(const std::string& names) {
    std::vector<ContentDigest> hashes;
    for (const std::string_view name : split(names, ',')) {
      if (!name.empty()) hashes.push_back(hash_of(std::string(name)));
    }
    return hashes;
  }

  std::string remember(ScenarioLine& line) {
    const SeqId seq = seq_of(line.next());
    const int32_t index = std::stoi(line.next());
    manager_->remember_block(seq, index, hash_of(line.next()));
    return "";
  }

  std::string allocate(ScenarioLine& line) {
    const bool writes = line.number("write", 1) != 0;
    const BlockSpaceManager::Request wanted = request(line);
    const AllocStatus status = manager_->can_allocate(wanted);
    if (status == AllocStatus::kOk) {
      const bool is_new = manager_->allocate(wanted);
      EXPECT_EQ(manager_->needs_write(wanted.group_id), is_new);
      if (is_new && writes) write(wanted.group_id);
      seqs_[wanted.group_id].insert(wanted.seq_id);
    }
    return name_of(status);
  }

  void begin_writes(GroupId group) {
    for (size_t i = 0; manager_->needs_write(group); ++i) {
      if (manager_->needs_write(group, i)) manager_->begin_write(group, i);
    }
  }

  void write(GroupId group) {
    begin_writes(group);
    manager_->finish_writes();
  }

  std::optional<std::string> write(const std::string& command, ScenarioLine& line) {
    if (command == "write") return write(group_of(line.next())), "";
    if (command == "begin_write") return begin_writes(group_of(line.next())), "";
    if (command == "finish_writes") return manager_->finish_writes(), "";
    if (command == "abandon_writes") return manager_->abandon_writes(), "";
    return std::nullopt;
  }

  std::string table(ScenarioLine& line) {
    const SeqId seq = seq_of(line.next());
    const std::string spec = line.next();
    return listed(manager_->get_block_table(seq, spec.empty() ? 0 : std::stoul(spec)));
  }

  std::string shared(ScenarioLine& line) {
    const GroupId group = group_of(line.next());
    return listed(manager_->get_shared_table(group, std::stoul(line.next())));
  }

  std::string free_shared(ScenarioLine& line) {
    const GroupId group = group_of(line.next());
    manager_->free_shared(group, std::stoul(line.next()));
    return "";
  }

  std::string append(ScenarioLine& line) {
    const SeqId seq = seq_of(line.next());
    const BlockSpaceManager::SlotRequest wanted{seq, std::stoi(line.next())};
    if (!manager_->can_append_slots({&wanted, 1})) return "no room";
    std::vector<BlockCopy> copies;
    manager_->append_slots(wanted.seq_id, wanted.num_tokens, copies);
    return str_cat(copies.size());
  }

  std::string fork(ScenarioLine& line) {
    const SeqId parent = seq_of(line.next());
    const std::string child = line.next();
    manager_->fork(parent, seq_of(child));
    seqs_[group_of(child)].insert(seq_of(child));
    return "";
  }

  std::string truncate(ScenarioLine& line) {
    const SeqId seq = seq_of(line.next());
    manager_->truncate(seq, std::stoi(line.next()));
    return "";
  }

  std::string reservation(const std::string& command, ScenarioLine& line) {
    const std::string name = line.next();
    if (command == "reserved") return listed(manager_->get_reserved_table(reservations_[name]));
    if (command == "finish") return manager_->finish_reservation(reservations_[name]) ? "yes" : "no";
    const BlockSpaceManager::SharedRequest wanted{line.number("spec", 1), line.number("tokens", 0),
                                                  hash_of(*line.option("hash"))};
    const AllocStatus status = manager_->can_reserve(wanted);
    if (status != AllocStatus::kOk) return name_of(status);
    reservations_[name] = manager_->reserve(wanted);
    return manager_->is_written(reservations_[name]) ? "joined" : "new";
  }

  std::string free(const std::string& name) {
    if (name.starts_with('r')) return manager_->free(reservations_[name]), "";
    if (name.find('.') != std::string::npos) {
      manager_->free(seq_of(name));
    } else {
      for (const SeqId seq : seqs_[group_of(name)]) manager_->free(seq);
    }
    return "";
  }

  std::optional<std::string> swap(const std::string& command, ScenarioLine& line) {
    if (command.find("swap") == std::string::npos) return std::nullopt;
    std::vector<BlockCopy> moves;
    const GroupId group = group_of(line.next());
    if (command == "can_swap_out") return manager_->can_swap_out(group) ? "yes" : "no";
    if (command == "can_swap_in") return name_of(manager_->can_swap_in(group));
    if (command == "swap_out") return manager_->swap_out(group, moves), listed(moves);
    if (command == "swap_in") return manager_->swap_in(group, moves), listed(moves);
    return std::nullopt;
  }

  std::string expect(ScenarioLine& line) {
    const std::map<std::string, int64_t> actual = {{"free_device", manager_->get_num_free_device_blocks()},
                                                   {"available", manager_->num_available_device_blocks()},
                                                   {"pinned", manager_->device_usage().pinned},
                                                   {"free_host", manager_->get_num_free_host_blocks()},
                                                   {"self", manager_->device_usage().self},
                                                   {"cross", manager_->device_usage().cross},
                                                   {"items", manager_->device_usage().items},
                                                   {"reserved", manager_->num_reserved_blocks()},
                                                   {"tables", manager_->cache_counts().num_tables},
                                                   {"cached", manager_->cache_counts().num_blocks},
                                                   {"evictions", manager_->cache_counts().evictions},
                                                   {"expirations", manager_->cache_counts().expirations},
                                                   {"prefixes", manager_->num_idle_prefix_blocks()},
                                                   {"watermark", manager_->watermark_blocks()}};
    for (const auto& [name, value] : line.all_options()) {
      const auto entry = actual.find(name);
      EXPECT_TRUE(entry != actual.end()) << "no such number: " << name;
      if (entry != actual.end()) {
        EXPECT_EQ(str_cat(entry->second), value) << name;
      }
    }
    return "";
  }

  std::unique_ptr<BlockSpaceManager> manager_;
  std::vector<ContentDigest> prefix_;
  std::map<GroupId, std::set<SeqId>> seqs_;
  std::map<std::string, ReservationId> reservations_;
};

TEST(BlockSpaceManagerScenarios, EveryFile) {
  const auto files = read_scenarios(source_dir() + "/src/kv/testdata");
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
}  // namespace transept
