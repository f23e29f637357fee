// The executor of fake_model_executor_testing.h.
#include "rank/fake_model_executor_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/cpu_device.h"
#include "sampling/select_row.h"

namespace transept::testing {
namespace {

uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return state ^ (state >> 29);
}

// What the encoder leaves at a position: it depends on the whole input.
uint64_t encoded(std::span<const int32_t> input, size_t position) {
  uint64_t hash = 7;
  for (const int32_t token : input) hash = mix(hash, static_cast<uint64_t>(token));
  return mix(hash, position);
}

uint64_t self_word(int32_t token, int64_t position) {
  return static_cast<uint64_t>(token) << 32 | static_cast<uint64_t>(position);
}

std::vector<float> scores_of(uint64_t state) {
  std::vector<float> scores;
  for (uint64_t token = 0; token < kFakeVocabSize; ++token) {
    scores.push_back(static_cast<float>(mix(mix(state, token), token) >> 40) * 0x1p-21f - 4);
  }
  return scores;
}

uint64_t state_of(std::span<const int32_t> encoder, std::span<const int32_t> decoder) {
  uint64_t state = 1;
  for (size_t i = 0; i < encoder.size(); ++i) state = mix(state, encoded(encoder, i));
  for (size_t i = 0; i < decoder.size(); ++i) state = mix(state, self_word(decoder[i], static_cast<int64_t>(i)));
  return state;
}

// The specs of a pool, each with its tokens a block.
InputBatch::Limits limits_of(const BlockSpaceManager::Options& blocks) {
  InputBatch::Limits limits;
  limits.tables = blocks.specs;
  for (size_t i = 0; i < limits.tables.size(); ++i) {
    TableSpec& spec = limits.tables[i];
    if (spec.tokens_per_block == 0) spec.tokens_per_block = blocks.block_size;
    if (spec.owner == TableOwner::kItem) limits.rows_spec = static_cast<int32_t>(i);
  }
  return limits;
}

}  // namespace

std::vector<float> fake_scores(std::span<const int32_t> encoder, std::span<const int32_t> decoder) {
  return scores_of(state_of(encoder, decoder));
}

int32_t fake_source_index(std::span<const int32_t> encoder, std::span<const int32_t> decoder) {
  return static_cast<int32_t>(state_of(encoder, decoder) % encoder.size());
}

std::vector<float> fake_cross_attention(int32_t head, int32_t source_index, int32_t num_positions) {
  std::vector<float> row(static_cast<size_t>(num_positions));
  row[static_cast<size_t>((source_index + head) % num_positions)] += 0.75f;
  row[static_cast<size_t>(source_index)] += 0.25f;
  return row;
}

std::vector<std::byte> fake_rows(std::span<const int32_t> encoder) {
  std::vector<std::byte> rows(encoder.size() * kFakeRowBytes);
  for (size_t i = 0; i < encoder.size(); ++i) {
    const uint64_t word = encoded(encoder, i);
    std::memcpy(rows.data() + i * kFakeRowBytes, &word, kFakeRowBytes);
  }
  return rows;
}

FakeModelExecutor::FakeModelExecutor(const BlockSpaceManager::Options& blocks, int32_t max_steps_in_flight)
    : long_encode_(limits_of(blocks).encodes()) {
  info_.max_steps_in_flight = max_steps_in_flight;
  for (int32_t i = 0; i < max_steps_in_flight; ++i) steps_.push_back(std::make_unique<InFlight>(limits_of(blocks)));
  info_.num_device_blocks = blocks.num_device_blocks;
  info_.num_host_blocks = blocks.num_host_blocks;
  info_.spec.alignment_heads.resize(kFakeAlignmentHeads);
  info_.spec.vocab_size = kFakeVocabSize;
  info_.tables = limits_of(blocks).tables;
  info_.block_size = blocks.block_size;
  info_.rows_spec = limits_of(blocks).rows_spec;
  info_.max_reserved_blocks = blocks.max_reserved_blocks;
  info_.spec.d_model = kFakeWidth;
  if (info_.rows_spec >= 0) {
    info_.spec.part = ModelPart::kDecoder;
    info_.max_num_injected_tokens = ModelSpec::kNoLimit;
    CHECK(info_.rows_spec + 1 == std::ssize(info_.tables), "rows have the last table");
  }
  for (const TableSpec& spec : info_.tables) {
    if (spec.owner == TableOwner::kItem) continue;
    info_.spec.kv.push_back(
        {.kind = spec.owner == TableOwner::kGroup ? KvKind::kCross : KvKind::kSelf, .owner = spec.owner});
  }
  for (int32_t* limit : {&info_.max_encoder_len, &info_.max_decoder_len, &info_.max_num_seqs,
                         &info_.max_num_batched_tokens, &info_.max_num_encoder_tokens}) {
    *limit = ModelSpec::kNoLimit;
  }
  KvStorage::Layout layout;
  layout.num_device_blocks = blocks.num_device_blocks;
  layout.num_host_blocks = blocks.num_host_blocks;
  for (const TableSpec& spec : info_.tables) {
    layout.specs.push_back({1, static_cast<size_t>(spec.tokens_per_block) * sizeof(uint64_t)});
  }
  kv_ = std::move(KvStorage::create(layout).value());
}

uint64_t& FakeModelExecutor::slot(size_t spec, int64_t index) const {
  const TensorView& layer = kv_->layers(spec)[0];
  const int32_t block_size = info_.tables[spec].tokens_per_block;
  const int64_t block = index / block_size;
  CHECK(index >= 0 && block < info_.num_device_blocks, "slot ", index, " lies outside the pool");
  std::byte* begin = static_cast<std::byte*>(layer.raw) + block * layer.stride[0];
  return reinterpret_cast<uint64_t*>(begin)[index % block_size];
}

Status FakeModelExecutor::submit(const StepPlan& plan) {
  CHECK(num_in_flight_ < steps_.size(), "a step more than may be in flight");
  InFlight& step = *steps_[(oldest_ + num_in_flight_) % steps_.size()];
  ++num_in_flight_;
  step.plan = &plan;
  if (!has_several_steps()) return ok_status();
  CHECK(!plan.scheduled.long_encode.runs, "a long encode beside other steps");
  begin(step);
  compute_rows(step.output);
  return ok_status();
}

Status FakeModelExecutor::collect(uint64_t step, StepOutput& output) {
  InFlight& oldest = *steps_[oldest_];
  CHECK(num_in_flight_ > 0 && oldest.plan->step == step);
  if (has_several_steps()) {
    submitted_ = oldest.plan;
    batch_ = &oldest.batch;
    std::swap(output, oldest.output);
    if (fault_ == Fault::kGivesTheNextStep && num_in_flight_ > 1) {
      const size_t num_rows = output.samples.rows.size();
      output.samples = steps_[(oldest_ + 1) % steps_.size()]->output.samples;
      output.samples.rows.resize(num_rows);
    }
  } else {
    begin(oldest);
  }
  output.step = step;
  encode_long(output);
  encode();
  if (!has_several_steps()) compute_rows(output);
  oldest_ = (oldest_ + 1) % steps_.size();
  --num_in_flight_;
  return ok_status();
}

void FakeModelExecutor::begin(InFlight& step) {
  submitted_ = step.plan;
  batch_ = &step.batch;
  apply_moves();
  batch_->build(*submitted_, {kv_->layers()});
}

void FakeModelExecutor::compute_rows(StepOutput& output) {
  write_rows();
  select_rows(output.samples);
  capture_rows(output.captured);
}

void FakeModelExecutor::apply_moves() {
  BlockMoves moves = submitted_->scheduled.moves;
  if (fault_ == Fault::kLosesCopies) moves.copy.clear();
  if (fault_ == Fault::kLosesSwapIns) moves.swap_in.clear();
  kv_->apply(moves);
  for (const SlotRange& slots : moves.truncated) {
    const auto spec = static_cast<size_t>(slots.spec);
    const int64_t first = int64_t{slots.block} * info_.tables[spec].tokens_per_block;
    for (int32_t i = slots.begin; i < slots.end; ++i) slot(spec, first + i) = ~uint64_t{0};
  }
}

void FakeModelExecutor::encode() {
  for (const EncodeInputs& inputs : batch_->encodes()) {
    if (inputs.source() == RowSource::kResident) {
      const auto rows_spec = static_cast<size_t>(info_.rows_spec);
      const View<int64_t> slots = inputs.row_slots();
      for (size_t row = 0; row < slots.size() && fault_ != Fault::kTakesNoRows; ++row) {
        write_encoded(inputs, row, slot(rows_spec, slots[row]));
      }
      continue;
    }
    CHECK(has_encoder(info_.spec.part), "a decode instance encodes");
    num_encoder_runs_ += inputs.batch().attention.num_seqs;
    if (fault_ != Fault::kSkipsEncodes) encode(inputs);
  }
}

void FakeModelExecutor::encode(const EncodeInputs& inputs) {
  const EncodeBatch& batch = inputs.batch();
  for (size_t s = 0; s < static_cast<size_t>(batch.attention.num_seqs); ++s) {
    const size_t begin = static_cast<size_t>(batch.attention.query_start_loc[s]);
    const size_t end = static_cast<size_t>(batch.attention.query_start_loc[s + 1]);
    const std::span<const int32_t> input = batch.input_ids.subspan(begin, end - begin);
    for (size_t row = begin; row < end; ++row) write_encoded(inputs, row, encoded(input, row - begin));
  }
}

// To the tables that are not written yet.
void FakeModelExecutor::write_encoded(const EncodeInputs& inputs, size_t row, uint64_t word) {
  for (size_t spec = 0; spec < info_.tables.size(); ++spec) {
    const View<int64_t> slots = inputs.table_writes()[spec].slot_mapping;
    if (!slots.empty()) slot(spec, slots[row]) = word;
  }
}

// Three positions a step. Every encode takes a second a token, for the engine's pacer.
void FakeModelExecutor::encode_long(StepOutput& output) {
  const LongEncode& plan = submitted_->scheduled.long_encode;
  output.long_encode_ended = false;
  output.encode_seconds = 0;
  for (const EncodeInputs& inputs : batch_->encodes()) {
    output.encode_seconds += static_cast<double>(inputs.batch().num_tokens());
  }
  if (!plan.runs || plan.begins) long_encode_.clear();
  if (!plan.runs) return;
  if (plan.begins) {
    long_encode_.add(plan.encode, {});
    long_encode_.finish();
    num_long_encoded_ = 0;
  }
  const EncodeBatch& batch = long_encode_.batch();
  CHECK(!long_encode_.empty(), "no encode is under way");
  CHECK(plan.to_the_end || batch_->encodes().empty(), "other items would overwrite the rows of the long encode");
  const bool takes = long_encode_.source() == RowSource::kResident;
  CHECK(takes || has_encoder(info_.spec.part), "a decode instance encodes");
  const int64_t end = plan.to_the_end ? batch.num_tokens() : std::min(num_long_encoded_ + 3, batch.num_tokens());
  output.encode_seconds += static_cast<double>(end - num_long_encoded_);
  for (; num_long_encoded_ < end; ++num_long_encoded_) {
    const auto row = static_cast<size_t>(num_long_encoded_);
    if (takes && fault_ == Fault::kTakesNoRows) continue;
    const uint64_t word = takes ? slot(static_cast<size_t>(info_.rows_spec), long_encode_.row_slots()[row])
                                : encoded(batch.input_ids, row);
    write_encoded(long_encode_, row, word);
  }
  if (end < batch.num_tokens()) return;
  output.long_encode_ended = true;
  num_encoder_runs_ += takes ? 0 : 1;
  long_encode_.clear();
}

// All rows of a step are written before any is read, as attention does it.
void FakeModelExecutor::write_rows() {
  const ForwardBatch& batch = batch_->forward();
  for (size_t row = 0; row < batch.input_ids.size(); ++row) {
    for (size_t spec = 0; spec < info_.tables.size(); ++spec) {
      if (info_.tables[spec].owner != TableOwner::kSequence) continue;
      slot(spec, batch.attention[spec].slot_mapping[row]) = self_word(batch.input_ids[row], batch.positions[row]);
    }
  }
}

// Of the first spec of the owner; what tables do not determine is the same of all.
const AttentionMetadata& FakeModelExecutor::attention_of(TableOwner owner) const {
  const auto spec = std::find_if(info_.tables.begin(), info_.tables.end(),
                                 [&](const TableSpec& table) { return table.owner == owner; });
  return batch_->forward().attention[static_cast<size_t>(spec - info_.tables.begin())];
}

// What the owner's tables hold for a position: the word of all specs, or none of theirs if they differ.
uint64_t FakeModelExecutor::read_word(TableOwner owner, int32_t seq, int32_t position) const {
  std::optional<uint64_t> word;
  for (size_t spec = 0; spec < info_.tables.size(); ++spec) {
    if (info_.tables[spec].owner != owner) continue;
    const AttentionMetadata& metadata = batch_->forward().attention[spec];
    CHECK(metadata.block_size == info_.tables[spec].tokens_per_block);
    const int32_t place = seq * metadata.max_blocks_per_seq + position / metadata.block_size;
    const int64_t block = metadata.block_tables[static_cast<size_t>(place)];
    const uint64_t found = slot(spec, block * metadata.block_size + position % metadata.block_size);
    if (word.has_value() && *word != found) return mix(*word, found);
    word = found;
  }
  return *word;
}

// What a sequence's row sees of the encoder's input and of its own first num_tokens tokens.
uint64_t FakeModelExecutor::read(int32_t seq, int32_t num_tokens) const {
  uint64_t state = 1;
  const bool forgets_cross = fault_ == Fault::kForgetsCrossTable;
  const int32_t num_cross = forgets_cross ? 0 : attention_of(TableOwner::kGroup).seq_lens[static_cast<size_t>(seq)];
  for (int32_t i = 0; i < num_cross; ++i) state = mix(state, read_word(TableOwner::kGroup, seq, i));
  if (fault_ == Fault::kReadsOneSlotLess) --num_tokens;
  for (int32_t i = 0; i < num_tokens; ++i) state = mix(state, read_word(TableOwner::kSequence, seq, i));
  return state;
}

void FakeModelExecutor::select_rows(SampleOutput& output) {
  const ForwardBatch& batch = batch_->forward();
  const AttentionMetadata& self = attention_of(TableOwner::kSequence);
  const std::span<const RowRequest> requests = batch_->row_requests();
  CpuDevice device{threads_};
  const Context context{device, arena_};
  output.rows.assign(requests.size(), RowSample{});
  output.top.clear();
  int32_t seq = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const int32_t row = batch.logits_rows[static_cast<size_t>(requests[i].hidden_row)];
    while (self.query_start_loc[static_cast<size_t>(seq) + 1] <= row) ++seq;
    const int32_t first_row = self.query_start_loc[static_cast<size_t>(seq)];
    const int32_t context_len = self.context_lens[static_cast<size_t>(seq)];
    const uint64_t state = read(seq, context_len + row - first_row + 1);
    std::vector<float> scores = scores_of(state);
    RowSample& sample = output.rows[i];
    sample.top_begin = static_cast<int64_t>(output.top.size());
    output.top.resize(output.top.size() + static_cast<size_t>(num_top_entries(requests[i], kFakeVocabSize)));
    select_row(context, requests[i], scores, scratch_, sample,
               std::span(output.top).subspan(static_cast<size_t>(sample.top_begin)));
    const int32_t num_cross = attention_of(TableOwner::kGroup).seq_lens[static_cast<size_t>(seq)];
    if (batch_->captured_row(i) < 0 || num_cross == 0) continue;
    const int32_t captured = batch_->capture_rows()[static_cast<size_t>(row)];
    CHECK(captured == batch_->captured_row(i) && captured < batch_->num_captured_rows());
    sample.source_index = static_cast<int32_t>(state % static_cast<uint64_t>(num_cross));
  }
}

void FakeModelExecutor::capture_rows(std::vector<CapturedRows>& captured) {
  captured.clear();
  for (const CapturePlan& plan : submitted_->captures) {
    CapturedRows& rows = captured.emplace_back();
    rows.num_heads = kFakeAlignmentHeads;
    for (int32_t head = 0; head < kFakeAlignmentHeads; ++head) {
      for (int32_t row = plan.row_begin; row < plan.row_end; ++row) capture_row(plan, head, row, rows);
    }
  }
}

// Of a decoder-only request: nothing.
void FakeModelExecutor::capture_row(const CapturePlan& plan, int32_t head, int32_t row, CapturedRows& rows) {
  const AttentionMetadata& self = attention_of(TableOwner::kSequence);
  const int32_t first_row = batch_->first_row(plan.group_idx, plan.seq_idx), packed_row = first_row + row;
  const auto seq =
      std::find(self.query_start_loc.begin(), self.query_start_loc.end(), first_row) - self.query_start_loc.begin();
  const int32_t num_positions = attention_of(TableOwner::kGroup).seq_lens[static_cast<size_t>(seq)];
  if (num_positions == 0) return;
  CHECK(batch_->capture_rows()[static_cast<size_t>(packed_row)] >= 0, "the row is not captured");
  const int32_t context_len = self.context_lens[static_cast<size_t>(seq)];
  const uint64_t state = read(static_cast<int32_t>(seq), context_len + row + 1);
  const auto source = static_cast<int32_t>(state % static_cast<uint64_t>(num_positions));
  const std::vector<float> seen = fake_cross_attention(head, source, num_positions);
  rows.values.insert(rows.values.end(), seen.begin(), seen.end());
}

StatusOr<std::vector<std::span<std::byte>>> FakeModelExecutor::row_places(std::span<const BlockId> blocks,
                                                                          int32_t num_positions, int32_t width) {
  CHECK(num_positions == 0 || width == kFakeWidth, "rows of another width: ", width);
  const auto rows_spec = static_cast<size_t>(info_.rows_spec);
  return kv_->row_places(rows_spec, blocks, num_positions, info_.tables[rows_spec].tokens_per_block, kFakeRowBytes);
}

ExecutorStats FakeModelExecutor::stats() const {
  ExecutorStats stats;
  stats.num_encoder_runs = num_encoder_runs_;
  stats.num_cross_kv_writes = num_encoder_runs_;
  stats.bytes_copied = kv_->bytes_copied();
  stats.bytes_swapped_out = kv_->bytes_swapped_out();
  stats.bytes_swapped_in = kv_->bytes_swapped_in();
  return stats;
}

}  // namespace transept::testing
