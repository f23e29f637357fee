#include "attention/cpu.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "attention/checks.h"
#include "attention/cpu_kernels.h"
#include "attention/encoder_bfloat16.h"
#include "attention/encoder_int8.h"
#include "base/checked_math.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

// Rows of q an item: enough to make the reading of keys cheap, few enough that threads end together.
constexpr int64_t kItemRows = 96;
// Below this many multiply-adds, or copied values, waking the threads costs more than it saves.
constexpr int64_t kSerialWork = 16384;
constexpr int64_t kLineBytes = 64;
// Multiply-adds that a thread fetches at once, at least: a few microseconds.
constexpr int64_t kRunWork = 32768;

using AttendFunction = void (*)(const AttentionTask& task);

const KvKernels& select_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512) return avx512::kKvKernels;
  if (isa >= Isa::kAvx2) return avx2::kKvKernels;
#endif
  (void)isa;
  return generic::kKvKernels;
}

AttendFunction select_attend(Isa isa, KvType type) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512Vnni && type == KvType::kInt8) return &avx512_vnni::attend_int8;
#endif
  return select_kernels(isa).attend[static_cast<int>(type)];
}

// How an encoder attends over keys and values that it rounds.
struct RoundedKernels {
  void (*write)(const KvWrite& write);  // to one tile
  AttendFunction attend;
  int64_t (*tile_bytes)(int64_t head_dim);
  int64_t (*room)(int64_t rows, int64_t head_dim);  // of AttentionTask::words
  int64_t item_rows;
};

int64_t two_byte_words_bytes(int64_t rows, int64_t head_dim) { return rows * round_up(head_dim, 16) * 2; }

// `plain`: every row sees all keys, and nobody asks for probabilities. Null: keys and values are not rounded.
std::optional<RoundedKernels> select_rounded(Isa isa, DType dtype, bool plain) {
  if (dtype == DType::kBFloat16) {
#if defined(__x86_64__)
    if (isa == Isa::kAvx512Bf16 && plain) {
      return RoundedKernels{&avx512_bf16::write_pair_tile, &avx512_bf16::attend_pairs,
                            [](int64_t head_dim) { return pair_part(head_dim).bytes; }, &two_byte_words_bytes,
                            kPairItemRows};
    }
#endif
    return std::nullopt;
  }
  if (dtype != DType::kInt8) return std::nullopt;
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512Vnni && plain) {
    RoundedKernels kernels = {
        &avx512_vnni::write_encoder_tile, &avx512_vnni::attend_encoder,
        [](int64_t head_dim) { return encoder_tile(head_dim).bytes; },
        [](int64_t rows, int64_t head_dim) { return encoder_room(rows, head_dim, kEncoderVectorRows); },
        kEncoderItemRows};
    if (isa < Isa::kAmx) return kernels;
    kernels.attend = &amx::attend_encoder;
    kernels.room = [](int64_t rows, int64_t head_dim) { return encoder_room(rows, head_dim, kEncoderTileRows); };
    return kernels;
  }
#endif
  (void)plain;
  return RoundedKernels{select_kernels(isa).write[static_cast<int>(KvType::kInt8)], select_attend(isa, KvType::kInt8),
                        [](int64_t head_dim) { return kv_part_bytes(KvType::kInt8, kTileKeys, head_dim); },
                        &two_byte_words_bytes, kItemRows};
}

// In step memory. A dry run takes the same room, and writes nothing.
std::span<const AttentionItem> items_of(Context& context, const AttentionMetadata& metadata, int64_t num_rows,
                                        int64_t item_rows) {
  const auto room = context.arena.allocate_span<AttentionItem>(max_items(metadata, num_rows, item_rows));
  return context.dry_run ? room.first(0) : make_items(metadata, item_rows, room);
}

// Of a batch that plan() has seen; none in a dry run.
std::span<const AttentionItem> planned_items(const AttentionMetadata& metadata) {
  if (metadata.planned == nullptr) return {};
  return static_cast<const PlannedItems*>(metadata.planned)->items;
}

// New rows [begin, end) of one KV head to their slots. Rows of one block in a row are written side by side.
void write_head(Isa isa, const AttentionMetadata& metadata, const AttentionArgs& args, int64_t begin, int64_t end,
                int64_t head) {
  const int64_t size = metadata.block_size, dim = args.k.dim(2);
  const KvType type = kv_type(metadata.kv_dtype);
  const auto slots = metadata.slot_mapping;
  for (int64_t i = begin; i < end;) {
    const int64_t slot = slots[static_cast<size_t>(i)];
    const int64_t offset = slot % size;
    int64_t run = 1;
    while (i + run < end && offset + run < size && slots[static_cast<size_t>(i + run)] == slot + run) ++run;
    KvWrite write{};
    write.k = args.k.row(i) + head * args.k.stride[1];
    write.v = args.v.row(i) + head * args.v.stride[1];
    write.k_stride = args.k.stride[0];
    write.v_stride = args.v.stride[0];
    write.num_rows = run;
    write.head_dim = dim;
    write.part = block_of_slot(args.kv_cache, slot, size) + head * kv_part_bytes(type, size, dim);
    write.block_size = size;
    write.offset = offset;
    select_kernels(isa).write[static_cast<int>(type)](write);
    i += run;
  }
}

void write_cache(Context& context, const AttentionMetadata& metadata, const AttentionArgs& args) {
  const int64_t heads = args.k.dim(1), rows = args.k.dim(0);
  const auto write = [&](int64_t head, int) { write_head(cpu_of(context).isa(), metadata, args, 0, rows, head); };
  if (args.k.num_elements() < kSerialWork) {
    for (int64_t head = 0; head < heads; ++head) write(head, 0);
  } else {  // by head: threads never write into the same line
    cpu_of(context).threads().parallel_for(heads, write);
  }
}

// What one thread works with, for items of up to `rows` rows of q.
struct Scratch {
  std::span<AttentionRow> rows;
  std::span<float> sums;
  std::span<std::byte> keys, words;
  int64_t sums_stride = 0;

  Scratch(Arena& arena, int64_t num_rows, int64_t dim, int64_t words_bytes)
      : rows(arena.allocate_span<AttentionRow>(num_rows)),
        sums(arena.allocate_span<float>(num_rows * round_up(dim, 16))),
        keys(arena.allocate_span<std::byte>(tile_bytes(dim))),
        words(arena.allocate_span<std::byte>(words_bytes)),
        sums_stride(round_up(dim, 16)) {}
};

// One for each thread.
std::span<Scratch> make_scratch(Context& context, int64_t num_rows, int64_t dim, int64_t words_bytes) {
  const int num_threads = cpu_of(context).threads().num_threads();
  const std::span<Scratch> all = context.arena.allocate_span<Scratch>(num_threads);
  for (int i = 0; i < num_threads; ++i) {
    const Scratch mine(context.arena, num_rows, dim, words_bytes);
    if (!context.dry_run) all[static_cast<size_t>(i)] = mine;
  }
  return all;
}

// An encoder's keys and values, rounded, in step memory: blocks of one tile, each holding all heads, as a cache would.
class RoundedKeys final {
 public:
  RoundedKeys(Context& context, const RoundedKernels& kernels, const AttentionMetadata& metadata,
              const AttentionArgs& args)
      : kernels_(kernels) {
    const int64_t heads = args.k.dim(1), dim = args.k.dim(2);
    // No step has more: whatever its sequences, each begins a block. Sequences may share keys (Mllama's tower).
    const auto& lengths = metadata.seq_lens;
    const int64_t num_keys = std::max(args.k.dim(0), std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
    const int64_t most_blocks = num_keys / kTileKeys + metadata.num_seqs;
    part_bytes_ = kernels.tile_bytes(dim);
    block_bytes_ = round_up(part_bytes_ * heads, kBlockAlignment);
    bytes_ = context.arena.allocate_span<unsigned char>(most_blocks * block_bytes_);
    ids_ = context.arena.allocate_span<int32_t>(most_blocks);
    first_ = context.arena.allocate_span<int32_t>(metadata.num_seqs);
    if (context.dry_run) return;
    int32_t num_blocks = 0;
    for (int32_t s = 0; s < metadata.num_seqs; ++s) {
      first_[static_cast<size_t>(s)] = num_blocks;
      num_blocks += static_cast<int32_t>(ceil_div(metadata.seq_lens[static_cast<size_t>(s)], kTileKeys));
    }
    std::iota(ids_.begin(), ids_.end(), 0);
    cpu_of(context).threads().parallel_for(metadata.num_seqs * heads, [&](int64_t task, int) {
      write(metadata, args, static_cast<int32_t>(task / heads), task % heads);
    });
  }

  // Where a sequence's keys of one head lie.
  void locate(int32_t seq, int64_t kv_head, AttentionTask& task) const {
    task.blocks = ids_.data() + first_[static_cast<size_t>(seq)];
    task.block_size = kTileKeys;
    task.cache = bytes_.data() + kv_head * part_bytes_;
    task.block_stride = block_bytes_;
  }

 private:
  void write(const AttentionMetadata& metadata, const AttentionArgs& args, int32_t seq, int64_t head) const {
    const int64_t row = metadata.kv_start_loc[static_cast<size_t>(seq)];
    const int64_t length = metadata.seq_lens[static_cast<size_t>(seq)];
    unsigned char* block = bytes_.data() + first_[static_cast<size_t>(seq)] * block_bytes_ + head * part_bytes_;
    for (int64_t begin = 0; begin < length; begin += kTileKeys, block += block_bytes_) {
      KvWrite write{};
      write.k = args.k.row(row + begin) + head * args.k.stride[1];
      write.v = args.v.row(row + begin) + head * args.v.stride[1];
      write.k_stride = args.k.stride[0];
      write.v_stride = args.v.stride[0];
      write.num_rows = std::min<int64_t>(kTileKeys, length - begin);
      write.head_dim = args.k.dim(2);
      write.part = block;
      write.block_size = kTileKeys;
      kernels_.write(write);
    }
  }

  RoundedKernels kernels_;
  int64_t part_bytes_ = 0, block_bytes_ = 0;
  std::span<unsigned char> bytes_;
  std::span<int32_t> ids_;    // every block's own number
  std::span<int32_t> first_;  // of each sequence
};

// One run() over its items.
class Run final {
 public:
  // `rounded`: the keys of an encoder that were rounded; null: as they are given.
  Run(AttentionType type, const AttentionMetadata& metadata, const AttentionArgs& args, const RoundedKeys* rounded,
      AttendFunction kernel)
      : rounded_(rounded),
        metadata_(metadata),
        args_(args),
        kernel_(kernel),
        is_dense_(type == AttentionType::kEncoder),
        kv_heads_(num_kv_heads(args)),
        heads_a_kv_(args.q.dim(1) / kv_heads_),
        bias_(args.bias != nullptr ? *args.bias : AttentionBias::none()) {}

  int64_t heads_a_kv() const { return heads_a_kv_; }
  int64_t kv_heads() const { return kv_heads_; }

  void attend(const AttentionItem& item, int64_t kv_head, const Scratch& scratch) const {
    const int64_t dim = args_.q.dim(2);
    AttentionTask task{};
    task.rows = scratch.rows.data();
    task.head_dim = static_cast<int>(dim);
    task.scale = args_.scale;
    task.sums = scratch.sums.data();
    task.sums_stride = scratch.sums_stride;
    task.keys = scratch.keys.data();
    task.words = scratch.words.data();
    fill_rows(item, kv_head, task);
    if (task.num_keys > 0) locate_keys(item, kv_head, task);
    kernel_(task);
  }

  // Begins to fetch the first tile's keys and values of one head: sequences lie all over the cache, and short ones are
  // over before the processor has seen where they go. The kernel fetches later tiles.
  void fetch_keys(const AttentionItem& item, int64_t kv_head) const {
    if (rounded_ != nullptr || is_dense_ || item.cost == 0) return;
    AttentionTask task{};
    task.head_dim = static_cast<int>(args_.q.dim(2));
    locate_keys(item, kv_head, task);
    const int64_t first = tile_of(item.first_key);
    const int64_t end = std::min<int64_t>(first + kTileKeys, metadata_.seq_lens[static_cast<size_t>(item.first_seq)]);
    const int64_t bytes = kv_part_bytes(kv_type(metadata_.kv_dtype), task.block_size, task.head_dim);
    for (int64_t block = first / task.block_size; block * task.block_size < end; ++block) {
      const unsigned char* part = task.cache + task.blocks[block] * task.block_stride;
      for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(part + i);
    }
  }

 private:
  void locate_keys(const AttentionItem& item, int64_t kv_head, AttentionTask& task) const {
    if (rounded_ != nullptr) {
      rounded_->locate(item.first_seq, kv_head, task);
    } else if (is_dense_) {
      const int64_t row = metadata_.kv_start_loc[static_cast<size_t>(item.first_seq)];
      task.k = args_.k.row(row) + kv_head * args_.k.stride[1];
      task.v = args_.v.row(row) + kv_head * args_.v.stride[1];
      task.k_stride = args_.k.stride[0];
      task.v_stride = args_.v.stride[0];
    } else {
      task.blocks = metadata_.block_tables.data() + int64_t{item.first_seq} * metadata_.max_blocks_per_seq;
      task.block_size = metadata_.block_size;
      task.cache = static_cast<const unsigned char*>(args_.kv_cache.raw) +
                   kv_head * kv_part_bytes(kv_type(metadata_.kv_dtype), task.block_size, task.head_dim);
      task.block_stride = args_.kv_cache.stride[0];
    }
  }

  void fill_rows(const AttentionItem& item, int64_t kv_head, AttentionTask& task) const {
    int64_t seq = item.first_seq;
    task.first_key = metadata_.seq_lens[static_cast<size_t>(seq)];
    for (int64_t r = item.row_begin; r < item.row_end; ++r) {
      while (r >= metadata_.query_start_loc[static_cast<size_t>(seq) + 1]) ++seq;
      const int64_t row_idx = r - metadata_.query_start_loc[static_cast<size_t>(seq)];
      const int64_t position = row_position(metadata_, seq, row_idx);
      const KeyRange visible = visible_keys(metadata_, args_.causal, seq, row_idx);
      task.num_keys = std::max(task.num_keys, visible.end);
      if (!visible.empty()) task.first_key = std::min(task.first_key, visible.begin);
      for (int64_t h = kv_head * heads_a_kv_; h < (kv_head + 1) * heads_a_kv_; ++h) {
        AttentionRow& row = task.rows[task.num_rows++];
        row.q = args_.q.row(r) + h * args_.q.stride[1];
        row.out = args_.out.row(r) + h * args_.out.stride[1];
        row.first = visible.begin;
        row.visible = visible.end;
        row.bias = bias_.of_row(seq, h, row_idx, position);
        row.probabilities = probabilities(h, r);
      }
    }
    task.num_probabilities = args_.capture == nullptr ? 0 : args_.capture->out.dim(2);
  }

  float* probabilities(int64_t head, int64_t row) const {
    if (args_.capture == nullptr) return nullptr;
    const View<int32_t> heads = args_.capture->heads;
    const auto found = std::find(heads.begin(), heads.end(), head);
    if (found == heads.end()) return nullptr;
    const int64_t place = args_.capture->place(row);
    if (place < 0) return nullptr;
    const TensorView& out = args_.capture->out;
    return out.row(found - heads.begin()) + place * out.stride[1];
  }

  const RoundedKeys* rounded_;
  const AttentionMetadata& metadata_;
  const AttentionArgs& args_;
  AttendFunction kernel_;
  bool is_dense_;
  int64_t kv_heads_;
  int64_t heads_a_kv_;
  AttentionBias bias_;
};

}  // namespace

bool CpuBackend::supports(const AttentionCapabilities& wanted, std::string* why) const {
  return supports_attention(wanted, why);
}

size_t CpuBackend::block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const {
  const int64_t part = kv_part_bytes(kv_type(kv_dtype), block_size, spec.head_dim);
  return static_cast<size_t>(round_up(part * spec.num_kv_heads, kBlockAlignment));
}

void CpuBackend::plan(Context& context, ForwardBatch& batch) const {
  for (AttentionMetadata& metadata : batch.attention) {
    if (metadata.num_seqs == 0) continue;
    const auto room = context.arena.allocate_span<PlannedItems>(1);
    const std::span<const AttentionItem> items = items_of(context, metadata, batch.num_tokens(), kItemRows);
    if (context.dry_run) continue;
    room[0].items = items;
    metadata.planned = room.data();
  }
}

void CpuBackend::run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                     const AttentionArgs& args) const {
  check_attention_args(context, type, metadata, args, *this);
  const bool writes = writes_cache(type, args) && !context.dry_run;
  // Decoding: each sequence's one new key goes to a slot that no other sequence reads, so that whoever attends over the
  // sequence writes it first.
  const bool writes_by_task = writes && type == AttentionType::kDecoder && !args.q.empty() &&
                              args.q.dim(0) == metadata.num_seqs &&
                              planned_items(metadata).size() == static_cast<size_t>(metadata.num_seqs);
  if (writes && !writes_by_task) write_cache(context, metadata, args);
  if (args.q.empty()) return;

  std::optional<RoundedKernels> kernels;
  if (type == AttentionType::kEncoder) {
    kernels = select_rounded(cpu_of(context).isa(), metadata.kv_dtype, !args.causal && args.capture == nullptr);
  }
  const bool rounds = kernels.has_value();
  const KvType kv = type == AttentionType::kEncoder && !rounds ? KvType::kFloat32 : kv_type(metadata.kv_dtype);
  const Arena::Scope scope(context.arena);
  std::optional<RoundedKeys> rounded;
  if (rounds) rounded.emplace(context, *kernels, metadata, args);
  const Run job(type, metadata, args, rounds ? &*rounded : nullptr,
                rounds ? kernels->attend : select_attend(cpu_of(context).isa(), kv));
  const int64_t num_rows = args.q.dim(0), dim = args.q.dim(2);
  const int64_t item_rows = rounds ? kernels->item_rows : kItemRows;
  // The encoder's metadata is seen here first: its items are found now, once a layer.
  const std::span<const AttentionItem> items =
      type == AttentionType::kEncoder ? items_of(context, metadata, num_rows, item_rows) : planned_items(metadata);
  const int64_t most_rows = std::min(num_rows, item_rows) * job.heads_a_kv();
  const int64_t words_bytes = rounds                ? kernels->room(most_rows, dim)
                              : kv == KvType::kInt8 ? two_byte_words_bytes(most_rows, dim)
                                                    : 0;
  const std::span<Scratch> scratch = make_scratch(context, most_rows, dim, words_bytes);
  if (context.dry_run) return;

  CHECK(type == AttentionType::kEncoder || metadata.planned != nullptr, "run() of a batch that plan() has not seen");
  int64_t cost = 0, planned_rows = 0;
  for (const AttentionItem& item : items) {
    cost += item.cost;
    planned_rows += item.row_end - item.row_begin;
  }
  CHECK(planned_rows == num_rows, "plan() saw ", planned_rows, " rows, run() ", num_rows);
  const int64_t work_a_cost = dim * job.heads_a_kv() * 2;
  const AttentionRuns runs(items, job.kv_heads(), kRunWork / work_a_cost);
  const auto attend = [&](int64_t run, int thread) {
    const int64_t end = runs.begin(run + 1);
    for (int64_t task = runs.begin(run); task < end; ++task) {
      const AttentionItem& item = items[static_cast<size_t>(task / job.kv_heads())];
      const int64_t head = task % job.kv_heads();
      if (task + 1 < end)
        job.fetch_keys(items[static_cast<size_t>((task + 1) / job.kv_heads())], (task + 1) % job.kv_heads());
      if (writes_by_task) write_head(cpu_of(context).isa(), metadata, args, item.row_begin, item.row_end, head);
      job.attend(item, head, scratch[static_cast<size_t>(thread)]);
    }
  };
  if (cost * job.kv_heads() * work_a_cost < kSerialWork) {
    for (int64_t run = 0; run < runs.size(); ++run) attend(run, 0);
  } else {
    cpu_of(context).threads().parallel_for(runs.size(), attend);
  }
}

}  // namespace transept
