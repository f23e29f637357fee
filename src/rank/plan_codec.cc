#include "rank/plan_codec.h"

#include <algorithm>
#include <array>

#include "base/byte_stream.h"

namespace transept {
namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{'T'}, std::byte{'P'}, std::byte{'L'}, std::byte{'N'}};

// The least bytes of an element of each list of structs.
constexpr size_t kLeastRow = 20, kLeastGroup = 8, kLeastSequence = 9, kLeastPair = 2, kLeastCapture = 4;
constexpr size_t kLeastEncode = 17, kLeastSplice = 4, kLeastRange = 4, kLeastSlots = 4;

// One description of all fields serves both ways: an archive writes values, or replaces them.
class Saver final {
 public:
  explicit Saver(std::vector<std::byte>& out) : out_(out) {}

  void value(const char*, uint64_t v) { out_.varint(v); }
  void value(const char*, int32_t v) { out_.zigzag(v); }
  void value(const char*, uint32_t v) { out_.varint(v); }
  void value(const char*, int64_t v) { out_.zigzag(v); }
  void value(const char*, float v) { out_.float32(v); }
  void value(const char*, bool v) { out_.flag(v); }
  void value(const char*, uint8_t v) { out_.varint(v); }
  void consumers(const char*, Consumers v) { out_.varint(static_cast<uint8_t>(v)); }
  void source(const char*, RowSource v) { out_.varint(static_cast<uint8_t>(v)); }
  template <typename Tag>
  void value(const char*, StrongId<Tag, uint64_t> v) {
    out_.varint(v.value());
  }
  void value(const char*, const std::vector<int32_t>& v) { out_.ints(v); }
  void value(const char*, const std::vector<float>& v) { out_.floats(v); }

  template <typename List, typename F>
  void list(const char*, const List& values, size_t, F describe) {
    out_.varint(values.size());
    for (const auto& element : values) describe(*this, element);
  }

 private:
  ByteWriter out_;
};

class Loader final {
 public:
  explicit Loader(ByteReader& in) : in_(in) {}

  void value(const char* name, uint64_t& v) { v = in_.varint(name); }
  void value(const char* name, int32_t& v) { v = in_.integer<int32_t>(name); }
  void value(const char* name, uint32_t& v) { v = small<uint32_t>(name); }
  void value(const char* name, uint8_t& v) { v = small<uint8_t>(name); }
  void consumers(const char* name, Consumers& v) { v = static_cast<Consumers>(small<uint8_t>(name)); }
  void source(const char* name, RowSource& v) {
    const auto number = small<uint8_t>(name);
    if (number > static_cast<uint8_t>(RowSource::kResident)) in_.fail(name, "is unknown");
    v = static_cast<RowSource>(number);
  }
  void value(const char* name, int64_t& v) { v = in_.zigzag(name); }
  void value(const char* name, float& v) { v = in_.float32(name); }
  void value(const char* name, bool& v) { v = in_.flag(name); }
  template <typename Tag>
  void value(const char* name, StrongId<Tag, uint64_t>& v) {
    v = StrongId<Tag, uint64_t>(in_.varint(name));
  }
  void value(const char* name, std::vector<int32_t>& v) { in_.ints(name, v); }
  void value(const char* name, std::vector<float>& v) { in_.floats(name, v); }

  template <typename T, typename F>
  void list(const char* name, std::vector<T>& values, size_t least_bytes, F describe) {
    values.resize(in_.count(name, least_bytes));
    for (T& element : values) describe(*this, element);
  }
  template <typename T, typename F>
  void list(const char* name, Recycled<T>& values, size_t least_bytes, F describe) {
    values.clear();
    for (size_t left = in_.count(name, least_bytes); left > 0 && in_.ok(); --left) describe(*this, values.push());
  }

 private:
  template <typename T>
  T small(const char* name) {
    const uint64_t number = in_.varint(name);
    if (number != static_cast<T>(number)) in_.fail(name, "is out of range");
    return static_cast<T>(number);
  }

  ByteReader& in_;
};

template <typename A, typename Pairs>
void describe_copies(A& archive, const char* name, Pairs& pairs) {
  archive.list(name, pairs, kLeastPair, [](auto& a, auto& copy) {
    a.value("src", copy.src);
    a.value("dst", copy.dst);
  });
}

template <typename A, typename Edits>
void describe_edits(A& archive, Edits& edits) {
  archive.value("forced_token", edits.forced_token);
  archive.list("biases", edits.biases, sizeof(float) + 1, [](auto& a, auto& bias) {
    a.value("token_id", bias.token_id);
    a.value("value", bias.value);
  });
  archive.value("repetition_penalty", edits.repetition_penalty);
  archive.value("seen", edits.seen);
  archive.value("presence_penalty", edits.presence_penalty);
  archive.value("frequency_penalty", edits.frequency_penalty);
  archive.list("generated", edits.generated, kLeastPair, [](auto& a, auto& token) {
    a.value("token_id", token.token_id);
    a.value("count", token.count);
  });
  archive.value("banned", edits.banned);
  archive.list("banned_ranges", edits.banned_ranges, kLeastPair, [](auto& a, auto& range) {
    a.value("begin", range.begin);
    a.value("end", range.end);
  });
  archive.value("timestamp_begin", edits.timestamp_begin);
  archive.value("renormalize", edits.renormalize);
}

template <typename A, typename Row>
void describe_row(A& archive, Row& row) {
  archive.value("group_idx", row.group_idx);
  archive.value("seq_idx", row.seq_idx);
  archive.value("row", row.row);
  archive.value("sample_idx", row.sample_idx);
  archive.value("target_token", row.target_token);
  archive.value("target_vocab", row.target_vocab);
  archive.value("probe", row.probe);
  archive.value("temperature", row.temperature);
  archive.value("top_k", row.top_k);
  archive.value("top_p", row.top_p);
  archive.value("min_p", row.min_p);
  archive.value("seed", row.seed);
  archive.value("position", row.position);
  archive.value("wants_logprob", row.wants_logprob);
  archive.value("num_logprobs", row.num_logprobs);
  archive.value("align", row.align);
  archive.value("num_candidates", row.num_candidates);
  describe_edits(archive, row.edits);
}

template <typename A, typename Tables>
void describe_tables(A& archive, const char* name, Tables& tables) {
  archive.list(name, tables, 1, [name](auto& a, auto& table) { a.value(name, table); });
}

template <typename A, typename Encode>
void describe_encode(A& archive, Encode& encode) {
  archive.value("encode group_id", encode.group_id);
  archive.value("encode item", encode.item);
  archive.source("encode source", encode.source);
  archive.value("encode token_ids", encode.token_ids);
  archive.list("shape", encode.features.shape, 1, [](auto& a, auto& size) { a.value("shape", size); });
  archive.value("extras", encode.features.extras);
  archive.value("features begin", encode.features.begin);
  archive.value("encode num_positions", encode.num_positions);
  archive.value("encode num_rows", encode.num_rows);
  archive.value("encode row_blocks", encode.row_blocks);
  archive.consumers("encode consumers", encode.consumers);
  archive.consumers("encode writes", encode.writes);
  describe_tables(archive, "encode group_tables", encode.group_tables);
  archive.value("encode cross begin", encode.cross.begin);
  archive.value("encode cross last_begin", encode.cross.last_begin);
  archive.value("encode cross num_last", encode.cross.num_last);
  describe_tables(archive, "encode item_tables", encode.item_tables);
}

template <typename A, typename Group>
void describe_group(A& archive, Group& group) {
  archive.value("group_id", group.group_id);
  archive.value("is_prompt", group.is_prompt);
  archive.list("seq_data", group.seq_data, kLeastSequence, [](auto& a, auto& data) {
    a.value("seq_id", data.seq_id);
    a.value("index", data.index);
    a.value("context_len", data.context_len);
    a.value("token_ids", data.token_ids);
    a.value("sampled", data.sampled);
    a.value("num_drafts", data.num_drafts);
    a.value("first_logits_row", data.first_logits_row);
    a.value("positions", data.positions);
    a.value("position_delta", data.position_delta);
  });
  describe_tables(archive, "sequence_tables", group.sequence_tables);
  archive.value("num_cross_tokens", group.num_cross_tokens);
  describe_tables(archive, "group_tables", group.group_tables);
  archive.value("encoder_token_ids", group.encoder_token_ids);
  archive.list("ranges", group.ranges, kLeastRange, [](auto& a, auto& range) {
    a.value("first_token", range.first_token);
    a.value("key_begin", range.key_begin);
    a.value("key_end", range.key_end);
    a.value("kind", range.kind);
  });
  archive.list("splices", group.splices, kLeastSplice, [](auto& a, auto& splice) {
    a.value("splice first_row", splice.first_row);
    a.value("splice num_rows", splice.num_rows);
    a.value("splice first_slot", splice.first_slot);
    describe_tables(a, "splice item_tables", splice.item_tables);
  });
}

template <typename A, typename Plan>
void describe_scheduled(A& archive, Plan& scheduled) {
  archive.list("groups", scheduled.groups, kLeastGroup, [](auto& a, auto& group) { describe_group(a, group); });
  archive.list("encodes", scheduled.encodes, kLeastEncode, [](auto& a, auto& encode) { describe_encode(a, encode); });
  auto& encode = scheduled.long_encode;
  archive.value("long_encode runs", encode.runs);
  archive.value("long_encode begins", encode.begins);
  archive.value("long_encode to_the_end", encode.to_the_end);
  describe_encode(archive, encode.encode);
  auto& moves = scheduled.moves;
  describe_copies(archive, "swap_out", moves.swap_out);
  archive.value("freed_device", moves.freed_device);
  describe_copies(archive, "swap_in", moves.swap_in);
  archive.value("freed_host", moves.freed_host);
  describe_copies(archive, "copy", moves.copy);
  archive.list("truncated", moves.truncated, kLeastSlots, [](auto& a, auto& slots) {
    a.value("truncated spec", slots.spec);
    a.value("truncated block", slots.block);
    a.value("truncated begin", slots.begin);
    a.value("truncated end", slots.end);
  });
  archive.list("finished", scheduled.finished, 1, [](auto& a, auto& id) { a.value("finished", id); });
}

template <typename A, typename Plan>
void describe(A& archive, Plan& plan) {
  archive.value("step", plan.step);
  describe_scheduled(archive, plan.scheduled);
  archive.list("rows", plan.rows, kLeastRow, [](auto& a, auto& row) { describe_row(a, row); });
  archive.list("captures", plan.captures, kLeastCapture, [](auto& a, auto& capture) {
    a.value("group_idx", capture.group_idx);
    a.value("seq_idx", capture.seq_idx);
    a.value("row_begin", capture.row_begin);
    a.value("row_end", capture.row_end);
  });
  archive.list("encoder_captures", plan.encoder_captures, 1, [](auto& a, auto& id) { a.value("group_id", id); });
  archive.value("num_long_encode_tasks", plan.num_long_encode_tasks);
  archive.value("bulk", plan.scheduled.bulk);
}

}  // namespace

void encode_plan(const StepPlan& plan, std::vector<std::byte>& bytes) {
  bytes.assign(kMagic.begin(), kMagic.end());
  Saver saver(bytes);
  saver.value("version", kPlanVersion);
  describe(saver, plan);
}

Status decode_plan(std::span<const std::byte> bytes, StepPlan& plan) {
  if (bytes.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return invalid_argument("plan: these bytes are none");
  }
  ByteReader reader(bytes.subspan(kMagic.size()), "plan");
  Loader loader(reader);
  uint32_t version = 0;
  loader.value("version", version);
  RETURN_IF_ERROR(reader.status());
  if (version != kPlanVersion) {
    return invalid_argument("plan: version ", version, "; this build speaks version ", kPlanVersion);
  }
  plan.scheduled.clear();
  describe(loader, plan);
  if (reader.ok() && reader.num_left() > 0)
    reader.fail("bulk", str_cat("is followed by ", reader.num_left(), " bytes"));
  return reader.status();
}

}  // namespace transept
