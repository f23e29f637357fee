#include "rank/check_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/checked_math.h"
#include "base/strings.h"
#include "rank/check_part.h"

namespace transept {
namespace {

class PlanChecker final {
 public:
  PlanChecker(const StepPlan& plan, const ExecutorInfo& info) : plan_(plan), scheduled_(plan.scheduled), info_(info) {}

  Status run() {
    RETURN_IF_ERROR(check_moves());
    for (size_t i = 0; i < scheduled_.groups.size(); ++i) RETURN_IF_ERROR(check_group(scheduled_.groups[i]));
    RETURN_IF_ERROR(check("groups", num_seqs_, "sequences", 0, info_.max_num_seqs));
    RETURN_IF_ERROR(check("groups", num_rows_, "rows", 0, info_.max_num_batched_tokens));
    RETURN_IF_ERROR(check_encodes());
    for (const RowPlan& row : plan_.rows) RETURN_IF_ERROR(check_row(row));
    for (const CapturePlan& capture : plan_.captures) RETURN_IF_ERROR(check_capture(capture));
    return ok_status();
  }

 private:
  static Status refuse(std::string_view field, std::string_view why) {
    return invalid_argument("plan: ", field, ": ", why);
  }
  static Status check(std::string_view field, int64_t value, std::string_view what, int64_t least, int64_t most) {
    if (value >= least && value <= most) return ok_status();
    return refuse(field, str_cat(value, " ", what, ": expected ", least, " to ", most));
  }

  Status check_blocks(std::string_view field, std::span<const BlockId> blocks, int32_t num_blocks) const {
    for (const BlockId block : blocks) RETURN_IF_ERROR(check(field, block, "is a block", 0, int64_t{num_blocks} - 1));
    return ok_status();
  }
  Status check_copies(std::string_view field, std::span<const BlockCopy> copies, int32_t num_src,
                      int32_t num_dst) const {
    for (const BlockCopy& copy : copies) {
      RETURN_IF_ERROR(check(field, copy.src, "is a source block", 0, int64_t{num_src} - 1));
      RETURN_IF_ERROR(check(field, copy.dst, "is a block", 0, int64_t{num_dst} - 1));
    }
    return ok_status();
  }
  Status check_moves() const {
    const BlockMoves& moves = scheduled_.moves;
    const int32_t device = info_.num_device_blocks, host = info_.num_host_blocks;
    RETURN_IF_ERROR(check_copies("swap_out", moves.swap_out, device, host));
    RETURN_IF_ERROR(check_copies("swap_in", moves.swap_in, host, device));
    RETURN_IF_ERROR(check_copies("copy", moves.copy, device, device));
    RETURN_IF_ERROR(check_blocks("freed_device", moves.freed_device, device));
    for (const SlotRange& slots : moves.truncated) RETURN_IF_ERROR(check_slots(slots));
    return check_blocks("freed_host", moves.freed_host, host);
  }

  Status check_slots(const SlotRange& slots) const {
    RETURN_IF_ERROR(check("truncated spec", slots.spec, "is a spec", 0, std::ssize(info_.tables) - 1));
    const TableSpec& spec = info_.tables[static_cast<size_t>(slots.spec)];
    if (spec.owner != TableOwner::kSequence) return refuse("truncated spec", "not one of sequences");
    RETURN_IF_ERROR(check("truncated block", slots.block, "is a block", 0, int64_t{info_.num_device_blocks} - 1));
    RETURN_IF_ERROR(check("truncated end", slots.end, "is the end of slots", 1, spec.tokens_per_block));
    return check("truncated begin", slots.begin, "is a slot", 0, int64_t{slots.end} - 1);
  }

  int64_t num_specs(TableOwner owner) const {
    return std::count_if(info_.tables.begin(), info_.tables.end(),
                         [&](const TableSpec& spec) { return spec.owner == owner; });
  }
  // One table of each spec of the owner, in blocks of the pool; each holds `num_tokens`. may_lack: some of them, but
  // not all, may be empty.
  Status check_tables(std::string_view field, std::span<const BlockTable> tables, TableOwner owner, int64_t num_tokens,
                      bool may_lack = false) const {
    const int64_t wanted = num_specs(owner);
    RETURN_IF_ERROR(check(field, std::ssize(tables), "tables", wanted, wanted));
    size_t next = 0, num_empty = 0;
    for (const TableSpec& spec : info_.tables) {
      if (spec.owner != owner) continue;
      const BlockTable& table = tables[next++];
      num_empty += table.empty() ? 1 : 0;
      if (may_lack && table.empty()) continue;
      RETURN_IF_ERROR(check_blocks(field, table, info_.num_device_blocks));
      const int64_t least = ceil_div(num_tokens, int64_t{spec.tokens_per_block});
      RETURN_IF_ERROR(check(field, std::ssize(table), "blocks", least, std::numeric_limits<int32_t>::max()));
    }
    return may_lack && num_empty == tables.size() ? refuse(field, "no table is written") : ok_status();
  }
  static Status check_none(std::string_view field, std::span<const BlockTable> tables) {
    return check(field, std::ssize(tables), "tables", 0, 0);
  }
  static std::span<const BlockTable> all_of(const Recycled<BlockTable>& tables) {
    return {tables.begin(), tables.size()};
  }
  Status check_ids(std::string_view field, std::span<const int32_t> ids, int32_t vocab_size) const {
    for (const int32_t id : ids) RETURN_IF_ERROR(check(field, id, "is an id", 0, int64_t{vocab_size} - 1));
    return ok_status();
  }

  Status check_group(const SequenceGroupMetadata& group) {
    RETURN_IF_ERROR(check("num_cross_tokens", group.num_cross_tokens, "positions", 0,
                          has_spec(KvKind::kCross) ? info_.max_encoder_len : 0));
    RETURN_IF_ERROR(check_ids("encoder_token_ids", group.encoder_token_ids, info_.spec.encoder_vocab()));
    const std::span<const BlockTable> group_tables = all_of(group.group_tables);
    RETURN_IF_ERROR(group.num_cross_tokens > 0
                        ? check_tables("group_tables", group_tables, TableOwner::kGroup, group.num_cross_tokens)
                        : check_none("group_tables", group_tables));
    if (group.seq_data.empty()) return refuse("seq_data", "a group without rows");
    const auto num_tables = static_cast<size_t>(num_specs(TableOwner::kSequence));
    if (group.sequence_tables.size() != group.seq_data.size() * num_tables) {
      return refuse("sequence_tables", "not one a sequence and spec");
    }
    for (size_t i = 0; i < group.seq_data.size(); ++i) {
      RETURN_IF_ERROR(check_sequence(group.seq_data[i]));
      const int64_t num_tokens = group.seq_data[i].context_len + std::ssize(group.seq_data[i].token_ids);
      RETURN_IF_ERROR(check_tables("sequence_tables", all_of(group.sequence_tables).subspan(i * num_tables, num_tables),
                                   TableOwner::kSequence, num_tokens));
    }
    RETURN_IF_ERROR(check_ranges(group));
    return check_splices(group);
  }
  Status check_sequence(const SequenceData& data) {
    const int64_t num_rows = std::ssize(data.token_ids), axes = info_.spec.position_axes;
    RETURN_IF_ERROR(check("context_len", data.context_len, "tokens", 0, info_.max_decoder_len));
    RETURN_IF_ERROR(check("token_ids", num_rows, "rows", 1, int64_t{info_.max_decoder_len} - data.context_len));
    RETURN_IF_ERROR(check("num_drafts", data.num_drafts, "rows", 0, data.sampled ? num_rows - 1 : 0));
    RETURN_IF_ERROR(check("first_logits_row", data.first_logits_row, "is a row", 0, num_rows));
    RETURN_IF_ERROR(check_ids("token_ids", data.token_ids, info_.spec.prompt_vocab()));
    const int64_t num_positions = std::ssize(data.positions);
    if (num_positions % axes != 0) return refuse("positions", "not as many on each axis");
    RETURN_IF_ERROR(check("positions", num_positions / axes, "rows", 0, num_rows));
    for (const int32_t position : data.positions) RETURN_IF_ERROR(check_position("positions", position));
    const int64_t first = data.context_len + num_positions / axes, last = data.context_len + num_rows - 1;
    if (data.position_delta != 0 && first <= last) {
      RETURN_IF_ERROR(check_position("position_delta", first + data.position_delta));
      RETURN_IF_ERROR(check_position("position_delta", last + data.position_delta));
    }
    num_rows_ += num_rows;
    ++num_seqs_;
    return ok_status();
  }
  Status check_position(std::string_view field, int64_t position) const {
    return check(field, position, "is a position", 0, int64_t{info_.max_decoder_len} - 1);
  }
  Status check_ranges(const SequenceGroupMetadata& group) const {
    int64_t last = -1;
    for (const RowRange& range : group.ranges) {
      RETURN_IF_ERROR(check("ranges", range.first_token, "is a token", last + 1, std::numeric_limits<int32_t>::max()));
      RETURN_IF_ERROR(check("ranges", range.key_end, "is the end of keys", 0, group.num_cross_tokens));
      RETURN_IF_ERROR(check("ranges", range.key_begin, "is a key", 0, range.key_end));
      last = range.first_token;
    }
    return ok_status();
  }
  Status check_splices(const SequenceGroupMetadata& group) const {
    if (!group.splices.empty() && !has_spec(KvKind::kEncoderRows)) return refuse("splices", "the model splices none");
    int64_t end = 0;
    const int64_t num_rows = std::ssize(group.seq_data[0].token_ids);
    for (const PlannedSplice& splice : group.splices) {
      RETURN_IF_ERROR(check("splices", splice.first_row, "is a row", end, num_rows - 1));
      RETURN_IF_ERROR(check("splices", splice.num_rows, "rows", 1, num_rows - splice.first_row));
      RETURN_IF_ERROR(check("splices", splice.first_slot, "is a slot", 0, info_.max_num_encoder_tokens - 1));
      RETURN_IF_ERROR(check_tables("splice item_tables", all_of(splice.item_tables), TableOwner::kItem,
                                   int64_t{splice.first_slot} + splice.num_rows));
      end = int64_t{splice.first_row} + splice.num_rows;
    }
    return ok_status();
  }

  bool has_spec(KvKind kind) const { return info_.spec.find_kv(kind) >= 0; }

  // An id for each position, or media, or both; and tables for all rows.
  Status check_encode(const PlannedEncode& encode) const {
    RETURN_IF_ERROR(check("encode num_positions", encode.num_positions, "positions", 1, info_.max_num_encoder_tokens));
    RETURN_IF_ERROR(
        check("encode num_rows", encode.num_rows, "rows", encode.num_positions, info_.max_num_encoder_tokens));
    // Where no table says it: an encoder has positions for so many.
    if (!has_decoder(info_.spec.part) && has(encode.consumers, Consumers::kCross)) {
      RETURN_IF_ERROR(check("encode num_positions", encode.num_positions, "positions", 1, info_.max_encoder_len));
    }
    RETURN_IF_ERROR(check_ids("encode token_ids", encode.token_ids, info_.spec.encoder_vocab()));
    const Consumers known = info_.spec.consumers();
    const bool is_of_two_widths =
        encode.consumers == (Consumers::kCross | Consumers::kSplice) && !info_.spec.has_one_width();
    if (encode.consumers == Consumers::kNone || (encode.consumers & known) != encode.consumers || is_of_two_widths) {
      return refuse("encode consumers", "not those of the model");
    }
    const bool writes_nothing = encode.writes == Consumers::kNone && has_decoder(info_.spec.part);
    if (writes_nothing || (encode.writes & encode.consumers) != encode.writes) {
      return refuse("encode writes", "not some of the consumers");
    }
    RETURN_IF_ERROR(check_writes(encode));
    return check_input(encode);
  }
  // Returns the end of its positions in the cross table.
  StatusOr<int64_t> check_cross_place(const PlannedEncode& encode) const {
    const int64_t most = info_.max_encoder_len, num_last = encode.cross.num_last;
    RETURN_IF_ERROR(check("encode cross num_last", num_last, "positions", 0, encode.num_positions));
    const int64_t num_first = encode.num_positions - num_last, end = encode.cross.begin + num_first;
    RETURN_IF_ERROR(check("encode cross begin", encode.cross.begin, "is a position", 0, most - num_first));
    if (num_last == 0) return end;
    RETURN_IF_ERROR(check("encode cross last_begin", encode.cross.last_begin, "is a position", end, most - num_last));
    return encode.cross.last_begin + num_last;
  }
  // What is written already has no table here.
  Status check_writes(const PlannedEncode& encode) const {
    const std::span<const BlockTable> of_group = all_of(encode.group_tables), of_item = all_of(encode.item_tables);
    if (has(encode.writes, Consumers::kCross)) {
      ASSIGN_OR_RETURN(const int64_t end, check_cross_place(encode));
      RETURN_IF_ERROR(check_tables("encode group_tables", of_group, TableOwner::kGroup, end, true));
    } else {
      RETURN_IF_ERROR(check_none("encode group_tables", of_group));
    }
    return has(encode.writes, Consumers::kSplice)
               ? check_tables("encode item_tables", of_item, TableOwner::kItem, encode.num_positions, true)
               : check_none("encode item_tables", of_item);
  }
  Status check_input(const PlannedEncode& encode) const {
    if (encode.source == RowSource::kResident) return check_resident(encode);
    if (!encode.row_blocks.empty()) return refuse("encode row_blocks", "of rows that are not resident");
    if (encode.source == RowSource::kInjected) RETURN_IF_ERROR(check_injected(encode));
    if (encode.features.empty()) {
      return check("encode token_ids", std::ssize(encode.token_ids), "ids", encode.num_positions, encode.num_positions);
    }
    const int64_t bulk = std::ssize(scheduled_.bulk);
    int64_t size = 1;
    for (const int64_t axis : encode.features.shape) {
      RETURN_IF_ERROR(check("shape", axis, "is an axis", 1, bulk));
      if (size > bulk / axis) return refuse("shape", "media larger than the plan's bulk");
      size *= axis;
    }
    RETURN_IF_ERROR(check("features begin", encode.features.begin, "is a value", 0, bulk - size));
    return encode.source == RowSource::kEncode ? check_media_rows(encode) : ok_status();
  }
  // Of media that stand among ids: a place for each of the tower's rows.
  Status check_media_rows(const PlannedEncode& encode) const {
    const ModelSpec& spec = info_.spec;
    if (!spec.encoder_takes_media_among_ids()) return ok_status();
    const int64_t rows = spec.media_rows(encode.features.shape);
    if (rows == 0) return refuse("shape", "the tower takes no such media");
    if (encode.token_ids.empty()) {
      return check("encode num_positions", encode.num_positions, "positions of media alone", rows, rows);
    }
    const int64_t num_ids = std::ssize(encode.token_ids);
    RETURN_IF_ERROR(check("encode token_ids", num_ids, "ids", encode.num_positions, encode.num_positions));
    const int64_t places = std::ranges::count(encode.token_ids, spec.media_token_id);
    return check("encode token_ids", places, "places for the rows of media", rows, rows);
  }
  // Blocks, and nothing else.
  Status check_resident(const PlannedEncode& encode) const {
    if (info_.rows_spec < 0) return refuse("encode source", "there is no table of rows");
    const int32_t per_block = info_.tables[static_cast<size_t>(info_.rows_spec)].tokens_per_block;
    const int64_t wanted = ceil_div(int64_t{encode.num_positions}, int64_t{per_block});
    RETURN_IF_ERROR(check_blocks("encode row_blocks", encode.row_blocks, info_.num_device_blocks));
    RETURN_IF_ERROR(check("encode row_blocks", std::ssize(encode.row_blocks), "blocks", wanted, wanted));
    RETURN_IF_ERROR(check("encode token_ids", std::ssize(encode.token_ids), "ids of resident rows", 0, 0));
    RETURN_IF_ERROR(check("extras", std::ssize(encode.features.extras), "of resident rows", 0, 0));
    if (!encode.features.empty()) return refuse("shape", "values of resident rows");
    return check("encode num_rows", encode.num_rows, "resident rows", encode.num_positions, encode.num_positions);
  }
  // Rows, and nothing else: what check_input() finds of their place is enough then.
  Status check_injected(const PlannedEncode& encode) const {
    const int64_t width = info_.spec.width_of(encode.consumers);
    RETURN_IF_ERROR(check("encode token_ids", std::ssize(encode.token_ids), "ids of injected rows", 0, 0));
    RETURN_IF_ERROR(check("extras", std::ssize(encode.features.extras), "of injected rows", 0, 0));
    RETURN_IF_ERROR(
        check("encode num_rows", encode.num_rows, "injected rows", encode.num_positions, encode.num_positions));
    if (encode.features.shape == std::vector<int64_t>{encode.num_positions, width}) return ok_status();
    return refuse("shape", str_cat("injected rows are [", encode.num_positions, ", ", width, "]"));
  }
  Status check_encodes() const {
    int64_t num_rows = 0, num_resident = 0;
    if (!has_decoder(info_.spec.part)) {
      RETURN_IF_ERROR(check("encodes", std::ssize(scheduled_.encodes), "items", 0, info_.max_num_seqs));
    }
    for (const PlannedEncode& encode : scheduled_.encodes) {
      RETURN_IF_ERROR(check_encode(encode));
      (encode.source == RowSource::kResident ? num_resident : num_rows) += encode.num_rows;
    }
    RETURN_IF_ERROR(check("encodes", num_resident, "resident rows", 0, info_.max_num_injected_tokens));
    RETURN_IF_ERROR(check("encodes", num_rows, "rows", 0, info_.max_num_encoder_tokens));
    RETURN_IF_ERROR(
        check("num_long_encode_tasks", plan_.num_long_encode_tasks, "tasks", 1, std::numeric_limits<int64_t>::max()));
    const LongEncode& encode = scheduled_.long_encode;
    // Both would be in the rank's one room for rows.
    if (encode.runs && !encode.to_the_end) {
      RETURN_IF_ERROR(check("encodes", std::ssize(scheduled_.encodes), "items beside a long encode", 0, 0));
    }
    if (!encode.runs || !encode.begins) return ok_status();
    return check_encode(encode.encode);
  }

  Status check_index(std::string_view field, int32_t group_idx) const {
    return check(field, group_idx, "is a group", 0, std::ssize(scheduled_.groups) - 1);
  }
  // Null, with `status` set: there is none.
  const SequenceData* find(std::string_view field, int32_t group_idx, int32_t seq_idx, Status& status) const {
    status = check_index(field, group_idx);
    if (!status.ok()) return nullptr;
    const SequenceGroupMetadata& group = scheduled_.groups[static_cast<size_t>(group_idx)];
    status = check(field, seq_idx, "is a sequence", 0, std::ssize(group.seq_data) - 1);
    return status.ok() ? &group.seq_data[static_cast<size_t>(seq_idx)] : nullptr;
  }
  Status check_row(const RowPlan& row) {
    Status found;
    const SequenceData* data = find("rows", row.group_idx, row.seq_idx, found);
    RETURN_IF_ERROR(found);
    RETURN_IF_ERROR(check("row", row.row, "is a row", 0, std::ssize(data->token_ids) - 1));
    const auto place = std::make_tuple(row.group_idx, row.seq_idx, row.row);
    if (place < last_row_) return refuse("rows", "not ascending");
    last_row_ = place;
    const int64_t vocab = info_.spec.vocab_size;
    RETURN_IF_ERROR(check("target_token", row.target_token, "is an id", -1, vocab - 1));
    RETURN_IF_ERROR(check("target_vocab", row.target_vocab, "ids", 0, vocab));
    RETURN_IF_ERROR(check("num_logprobs", row.num_logprobs, "ids", -1, vocab));
    RETURN_IF_ERROR(check("num_candidates", row.num_candidates, "ids", 0, vocab));
    RETURN_IF_ERROR(check("top_k", row.top_k, "ids", 0, std::numeric_limits<int32_t>::max()));
    if (!(row.temperature >= 0) || std::isinf(row.temperature)) return refuse("temperature", "no number from 0 on");
    if (row.align && info_.spec.alignment_heads.empty()) return refuse("align", "the model has no alignment heads");
    return check_edits(row.edits);
  }
  Status check_edits(const RowEdits& edits) const {
    const int32_t vocab = info_.spec.vocab_size;
    RETURN_IF_ERROR(check("forced_token", edits.forced_token, "is an id", -1, int64_t{vocab} - 1));
    for (const RowEdits::Bias& bias : edits.biases) RETURN_IF_ERROR(check_ids("biases", {&bias.token_id, 1}, vocab));
    for (const RowEdits::Count& token : edits.generated) {
      RETURN_IF_ERROR(check_ids("generated", {&token.token_id, 1}, vocab));
    }
    RETURN_IF_ERROR(check_ids("seen", edits.seen, vocab));
    RETURN_IF_ERROR(check_ids("banned", edits.banned, vocab));
    for (const RowEdits::Range& range : edits.banned_ranges) {
      if (range.begin < 0 || range.end < range.begin) return refuse("banned_ranges", "no range of ids");
    }
    return check("timestamp_begin", edits.timestamp_begin, "is an id", -1, std::numeric_limits<int32_t>::max());
  }
  Status check_capture(const CapturePlan& capture) const {
    Status found;
    const SequenceData* data = find("captures", capture.group_idx, capture.seq_idx, found);
    RETURN_IF_ERROR(found);
    if (info_.spec.alignment_heads.empty()) return refuse("captures", "the model has no alignment heads");
    const int64_t num_rows = std::ssize(data->token_ids);
    RETURN_IF_ERROR(check("captures", capture.row_begin, "is a row", 0, num_rows - 1));
    return check("captures", capture.row_end, "is the end of rows", int64_t{capture.row_begin} + 1, num_rows);
  }

  const StepPlan& plan_;
  const SchedulerOutputs& scheduled_;
  const ExecutorInfo& info_;
  int64_t num_seqs_ = 0, num_rows_ = 0;
  std::tuple<int32_t, int32_t, int32_t> last_row_{0, 0, 0};
};

}  // namespace

Status check_plan(const StepPlan& plan, const ExecutorInfo& info) {
  RETURN_IF_ERROR(check_part(plan, info.spec.part));
  return PlanChecker(plan, info).run();
}

}  // namespace transept
