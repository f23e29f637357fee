// For tests: runs any encoder/decoder model over a few short requests, without an engine. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "base/communicator.h"
#include "core/decoder_layout.h"
#include "core/picture_convs.h"
#include "models/model.h"
#include "multimodal/cogagent_pictures.h"
#include "multimodal/cogagent_rules.h"
#include "ops/cpu_device.h"
#include "ops/rows.h"

namespace transept::testing {

// Features that can be made again anywhere: values from -1 to 1 of a linear congruential generator (Numerical Recipes'
// constants).
inline std::shared_ptr<EncoderFeatures> seeded_features(std::vector<int64_t> shape, int32_t num_positions,
                                                        uint32_t seed = 1) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = std::move(shape);
  features->num_positions = num_positions;
  int64_t count = 1;
  for (const int64_t dim : features->shape) count *= dim;
  uint32_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    features->values.push_back(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
  return features;
}

// Numbers patches of [patches, 2 + pixels] by row and column, from 1, as Pix2Struct's are.
inline void number_patches(EncoderFeatures& features, int64_t columns) {
  for (int64_t i = 0; i < features.shape[0]; ++i) {
    float* const ids = features.values.data() + i * features.shape[1];
    const int64_t row = i / columns, column = i % columns;
    ids[0] = static_cast<float>(1 + row);
    ids[1] = static_cast<float>(1 + column);
  }
}

// A picture of the size that a tower's object of config.json names.
inline EncoderItem picture_content(const Json& tower) {
  const auto sides = [&](const char* key) {
    const Json& value = *tower.find(key);
    if (!value.is_array()) return std::pair(value.as_int(), value.as_int());
    return std::pair(value.as_array()[0].as_int(), value.as_array()[1].as_int());
  };
  const auto [height, width] = sides("image_size");
  const auto [patch_height, patch_width] = sides("patch_size");
  const std::string& model_type = tower.find("model_type")->as_string();
  int64_t num_positions = 0;
  if (model_type == "donut-swin") {
    int64_t rows = ceil_div(height, patch_height), columns = ceil_div(width, patch_width);
    for (size_t stage = 1; stage < tower.find("depths")->as_array().size(); ++stage) {
      rows = ceil_div(rows, 2), columns = ceil_div(columns, 2);
    }
    num_positions = rows * columns;
  } else {
    num_positions = (model_type == "deit" ? 2 : 1) + (height / patch_height) * (width / patch_width);
  }
  return {{}, seeded_features({3, height, width}, static_cast<int32_t>(num_positions))};
}

// Two cells of patches, which the first two decoder rows are.
inline EncoderItem patches_content(const Json& tower) {
  const auto number = [&](const char* key) { return tower.find(key)->as_int(); };
  const int64_t merge = number("spatial_merge_size"), patch = number("patch_size");
  auto features = seeded_features({2 * merge * merge, 3 * number("temporal_patch_size") * patch * patch}, 2);
  features->num_rows = static_cast<int32_t>(2 * merge * merge);
  features->extras = {1, static_cast<int32_t>(merge), static_cast<int32_t>(2 * merge)};
  EncoderItem item({}, std::move(features));
  item.consumers = Consumers::kSplice;
  return item;
}

// Two tiles of a picture beside each other, as Mllama's tower reads them, and the rows of those that are not there; but
// not strictly.
inline EncoderItem tiles_content(const Json& tower, bool is_strict) {
  const auto number = [&](const char* key) { return tower.find(key)->as_int(); };
  const int64_t side = number("image_size"), patches = side / number("patch_size"), max_tiles = number("max_num_tiles");
  const int64_t a_tile = patches * patches + 1;
  const int64_t num_last = is_strict ? 0 : (max_tiles - 2) * a_tile;
  auto features = seeded_features({2, 3, side, side}, static_cast<int32_t>(2 * a_tile + num_last));
  features->num_rows = static_cast<int32_t>(max_tiles * round_up(a_tile, 8));
  features->num_last_positions = static_cast<int32_t>(num_last);
  features->extras = {2};  // the second arrangement
  return {{}, std::move(features)};
}

// A picture among ids, as Florence-2's encoder reads them.
inline EncoderItem picture_among_ids(const Json& config) {
  const PictureSize size{11, 10};
  const Json& tower = *config.find("vision_config");
  const PictureSize map = maps_of(*read_picture_convs(tower, ConfigReader(tower, "vision_config")), size).back();
  const auto num_rows = static_cast<int32_t>(1 + map.height * map.width);
  const Json* token = config.find(is_original_davit(tower) ? "vocab_size" : "image_token_id");
  EncoderItem item{std::vector<int32_t>(static_cast<size_t>(num_rows), static_cast<int32_t>(token->as_int())),
                   seeded_features({3, size.height, size.width}, num_rows)};
  for (const int32_t id : {0, 7, 9, 2}) item.token_ids.push_back(id);
  return item;
}

// What any family may be run with: ids, audio of four positions, a picture, or a picture among ids.
inline EncoderItem short_content(const Json& config) {
  const Json* const model_type = config.find("model_type");  // some name their architecture alone
  const std::string family = model_type == nullptr ? "" : model_type->as_string();
  if (family == "florence2") return picture_among_ids(config);
  if (family.starts_with("qwen2")) return patches_content(*config.find("vision_config"));
  if (family == "mllama") {
    return tiles_content(*config.find("vision_config"), config.find("mllama_strict_mask") != nullptr);
  }
  if (const Json* tower = config.find("encoder")) return picture_content(*tower);
  if (const Json* tower = config.find("vision_config")) {
    const Json* const pixels = tower->find("patch_embed_hidden_size");
    if (pixels == nullptr) return picture_content(*tower);
    const auto patches = seeded_features({5, 2 + pixels->as_int()}, 5);
    number_patches(*patches, 3);
    return {{}, patches};
  }
  if (const Json* bins = config.find("num_mel_bins")) return {{}, seeded_features({bins->as_int(), 8}, 4)};
  if (config.find("encoder_num_hidden_layers") != nullptr) return {{}, seeded_features({2047}, 4)};  // Moonshine
  return std::vector<int32_t>{0, 7, 9, 2};
}

// An encoder input, and the decoder ids that are fed behind it in one piece. Rows that are spliced and do not fit among
// them are left out.
struct ModelRequest {
  EncoderItem content;
  std::vector<int32_t> decoder_ids;
  std::vector<int32_t> positions = {};  // [axes, decoder_ids]; empty: the index, on every axis
  std::vector<RowRange> ranges = {};    // DecoderLayout's
  // An item beside `content` whose rows are spliced (CogAgent's small picture).
  std::optional<EncoderItem> spliced = {};
};

// CogAgent's files may name its architecture alone.
inline bool is_cogagent(const Json& config) {
  const Json* const names = config.find("architectures");
  return names != nullptr && names->as_array().front().as_string() == "CogAgentForCausalLM";
}

// Both forms of a picture behind the first token, and more tokens behind it.
inline ModelRequest cogagent_request(const Json& config, std::vector<int32_t> behind) {
  const auto side = [&](const Json& object, const char* key) { return object.find(key)->as_int(); };
  const Json &small = *config.find("vision_config"), &large = *config.find("cross_vision_config");
  CogAgentPictures pictures;
  pictures.small_side = side(small, "image_size"), pictures.small_patch = side(small, "patch_size");
  pictures.large_side = side(config, "cross_image_size"), pictures.large_patch = side(large, "patch_size");
  const auto num_rows = static_cast<int32_t>(pictures.num_spliced());
  const auto num_keys = static_cast<int32_t>(pictures.num_crossed());
  ModelRequest request;
  request.content = EncoderItem({}, seeded_features({3, pictures.large_side, pictures.large_side}, num_keys));
  request.spliced = EncoderItem({}, seeded_features({3, pictures.small_side, pictures.small_side}, num_rows, 2));
  request.spliced->consumers = Consumers::kSplice;
  request.spliced->splice_offset = 1;
  request.decoder_ids.assign(1 + static_cast<size_t>(num_rows), 0);
  request.decoder_ids.front() = 1;
  request.decoder_ids.insert(request.decoder_ids.end(), behind.begin(), behind.end());
  const DecoderLayout layout = cogagent_layout(static_cast<int32_t>(request.decoder_ids.size()), 1, num_rows, num_keys);
  request.positions = layout.prompt_positions;
  request.ranges = layout.ranges;
  return request;
}

// What any family may be run with, and three tokens; another with one.
inline ModelRequest short_request(const Json& config) {
  if (is_cogagent(config)) return cogagent_request(config, {2, 5});
  return {short_content(config), {2, 0, 5}};
}
inline std::vector<ModelRequest> short_requests(const Json& config) {
  if (is_cogagent(config)) return {short_request(config), cogagent_request(config, {})};
  return {short_request(config), {short_content(config), {1}}};
}

// Requests side by side in one batch: what a step's views are of. Each spec has tables of its own.
class PackedRequests final {
 public:
  static constexpr int32_t kBlockSize = 16;

  PackedRequests(const std::vector<ModelRequest>& requests, const std::vector<KvSpec>& specs, int32_t num_axes = 1) {
    for (const ModelRequest& request : requests) {
      self_stride_ = std::max(self_stride_, blocks(request.decoder_ids.size()));
      cross_stride_ = std::max(cross_stride_, blocks(static_cast<size_t>(request.content.num_positions())));
    }
    for (const ModelRequest& request : requests) add(request);
    rows_.resize(decoder_ids_.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    place_axes(requests, num_axes);
    lists_.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) add_spec(specs[i].kind, static_cast<int32_t>(i), lists_[i]);
  }
  PackedRequests(const PackedRequests&) = delete;  // views of itself
  PackedRequests& operator=(const PackedRequests&) = delete;

  int32_t num_seqs() const { return static_cast<int32_t>(encoder_lens_.size()); }
  int32_t num_blocks() const { return num_blocks_; }
  // [num_seqs + 1] rows of each side.
  const std::vector<int32_t>& encoder_loc() const { return encoder_loc_; }
  const std::vector<int32_t>& decoder_loc() const { return decoder_loc_; }

  void set_kv_dtype(DType kv_dtype) {
    kv_dtype_ = kv_dtype;
    for (std::vector<AttentionMetadata>* list : {&attention_, &cross_writes_}) {
      for (AttentionMetadata& metadata : *list) metadata.kv_dtype = kv_dtype;
    }
  }

  EncodeBatch encode_batch() const {
    EncodeBatch batch{encoder_ids_, features_, encoder_positions_, {}};
    batch.attention = {num_seqs(), max_encoder_len_, max_encoder_len_, encoder_loc_, {}, encoder_lens_};
    batch.attention.kv_start_loc = encoder_loc_;
    if (kv_dtype_ == DType::kInt8) batch.attention.kv_dtype = kv_dtype_;
    return batch;
  }

  // Of the items beside others; without: of no rows.
  EncodeBatch spliced_batch() const {
    EncodeBatch batch{{}, spliced_features_, spliced_positions_, {}};
    const int32_t longest = spliced_lens_.empty() ? 0 : *std::ranges::max_element(spliced_lens_);
    batch.attention = {static_cast<int32_t>(spliced_lens_.size()), longest, longest, spliced_loc_, {}, spliced_lens_};
    batch.attention.kv_start_loc = spliced_loc_;
    if (kv_dtype_ == DType::kInt8) batch.attention.kv_dtype = kv_dtype_;
    batch.consumers = Consumers::kSplice;
    return batch;
  }
  const std::vector<int32_t>& spliced_loc() const { return spliced_loc_; }

  // Of each spec, to write cross KV.
  std::span<const AttentionMetadata> cross_writes() const { return cross_writes_; }

  // AttentionBackend::plan() fills this object's metadata.
  ForwardBatch forward_batch(const KvCaches& kv) {
    ForwardBatch batch{decoder_ids_, decoder_positions_, rows_, attention_, kv};
    if (!splice_rows_.empty()) batch.splices = {splice_rows_, splice_slots_, kBlockSize};
    if (has_ranges_) batch.row_kinds = row_kinds_;
    return batch;
  }
  // Where an encoder's rows go that are spliced.
  View<int64_t> row_slots() const { return row_slots_; }

 private:
  static int32_t blocks(size_t tokens) {
    return static_cast<int32_t>(ceil_div(static_cast<int64_t>(tokens), int64_t{kBlockSize}));
  }

  void place_axes(const std::vector<ModelRequest>& requests, int32_t num_axes) {
    const size_t num_rows = decoder_ids_.size();
    const std::vector<int32_t> plain = std::move(decoder_positions_);
    decoder_positions_.clear();
    for (size_t axis = 0; axis < static_cast<size_t>(num_axes); ++axis) {
      decoder_positions_.insert(decoder_positions_.end(), plain.begin(), plain.end());
      size_t row = axis * num_rows;
      for (const ModelRequest& request : requests) {
        const size_t count = request.decoder_ids.size();
        for (size_t i = 0; i < count && !request.positions.empty(); ++i) {
          decoder_positions_[row + i] = request.positions[axis * count + i];
        }
        row += count;
      }
    }
  }

  void add(const ModelRequest& request) {
    const EncoderItem& content = request.content;
    if (has(content.consumers, Consumers::kSplice)) splice(content, request.decoder_ids.size());
    if (request.spliced.has_value()) add_spliced(*request.spliced, request.decoder_ids.size());
    encoder_ids_.insert(encoder_ids_.end(), content.token_ids.begin(), content.token_ids.end());
    if (content.features != nullptr) features_.emplace_back(*content.features);
    decoder_ids_.insert(decoder_ids_.end(), request.decoder_ids.begin(), request.decoder_ids.end());
    add_ranges(request);
    contexts_.push_back(0);
    groups_.push_back(groups_.back() + 1);
    add_side(content.num_positions(), cross_stride_, max_encoder_len_, encoder_lens_, encoder_loc_, encoder_positions_,
             cross_tables_, cross_slots_);
    add_side(static_cast<int32_t>(request.decoder_ids.size()), self_stride_, max_decoder_len_, decoder_lens_,
             decoder_loc_, decoder_positions_, self_tables_, self_slots_);
  }

  void add_ranges(const ModelRequest& request) {
    has_ranges_ |= !request.ranges.empty();
    RowRange range{0, 0, request.content.num_positions(), 0};
    size_t next = 0;
    for (int32_t token = 0; token < static_cast<int32_t>(request.decoder_ids.size()); ++token) {
      while (next < request.ranges.size() && request.ranges[next].first_token <= token) range = request.ranges[next++];
      key_begin_.push_back(range.key_begin);
      key_end_.push_back(range.key_end);
      row_kinds_.push_back(range.kind);
    }
  }

  // The rows of an item begin at the block that is the next.
  void splice(const EncoderItem& item, size_t num_ids) {
    const auto first_row = static_cast<int32_t>(decoder_ids_.size());
    const int32_t num_rows = item.num_positions(), offset = item.splice_offset;
    for (int32_t i = 0; i < num_rows; ++i) {
      row_slots_.push_back(int64_t{num_blocks_} * kBlockSize + i);
      if (offset + i >= static_cast<int32_t>(num_ids)) continue;
      splice_rows_.push_back(first_row + offset + i);
      splice_slots_.push_back(row_slots_.back());
    }
  }

  // With blocks of its own, as another item is crossed.
  void add_spliced(const EncoderItem& item, size_t num_ids) {
    splice(item, num_ids);
    const int32_t num_rows = item.num_positions();
    num_blocks_ += blocks(static_cast<size_t>(num_rows));
    spliced_features_.emplace_back(*item.features);
    spliced_lens_.push_back(num_rows);
    spliced_loc_.push_back(spliced_loc_.back() + num_rows);
    for (int32_t i = 0; i < num_rows; ++i) spliced_positions_.push_back(i);
  }

  void add_side(int32_t length, int32_t stride, int32_t& max_len, std::vector<int32_t>& lens, std::vector<int32_t>& loc,
                std::vector<int32_t>& positions, std::vector<int32_t>& tables, std::vector<int64_t>& slots) {
    max_len = std::max(max_len, length);
    lens.push_back(length);
    loc.push_back(loc.back() + length);
    for (int32_t i = 0; i < length; ++i) {
      positions.push_back(i);
      slots.push_back(int64_t{num_blocks_} * kBlockSize + i);
    }
    for (int32_t i = 0; i < stride; ++i) {
      tables.push_back(i < blocks(static_cast<size_t>(length)) ? num_blocks_++ : -1);
    }
  }

  struct SpecLists {
    std::vector<int32_t> tables;
    std::vector<int64_t> slots;
  };

  // The same blocks as those of other specs, in another order.
  void add_spec(KvKind kind, int32_t shift, SpecLists& lists) {
    const bool is_self = kind == KvKind::kSelf;
    const auto shifted = [&](int64_t block) { return (block + shift) % num_blocks_; };
    for (const int32_t block : is_self ? self_tables_ : cross_tables_) {
      lists.tables.push_back(block < 0 ? block : static_cast<int32_t>(shifted(block)));
    }
    for (const int64_t slot : is_self ? self_slots_ : cross_slots_) {
      lists.slots.push_back(shifted(slot / kBlockSize) * kBlockSize + slot % kBlockSize);
    }
    AttentionMetadata& write = cross_writes_.emplace_back();
    AttentionMetadata& attention = attention_.emplace_back();
    if (kind == KvKind::kEncoderRows) return;
    if (is_self) {
      attention = {num_seqs(),    max_decoder_len_, max_decoder_len_, decoder_loc_, contexts_,
                   decoder_lens_, lists.tables,     self_stride_,     kBlockSize};
      attention.slot_mapping = lists.slots;
      return;
    }
    attention = {num_seqs(),    max_decoder_len_, max_encoder_len_, decoder_loc_, {},
                 encoder_lens_, lists.tables,     cross_stride_,    kBlockSize};
    attention.group_start_loc = groups_;
    if (has_ranges_) attention.key_begin = key_begin_, attention.key_end = key_end_;
    write.block_size = kBlockSize;
    write.slot_mapping = lists.slots;
  }

  std::vector<int32_t> encoder_ids_, decoder_ids_, encoder_positions_, decoder_positions_, rows_;
  std::vector<FeaturesView> features_;
  std::vector<int32_t> key_begin_, key_end_;
  std::vector<uint8_t> row_kinds_;
  bool has_ranges_ = false;
  std::vector<int32_t> encoder_lens_, decoder_lens_, contexts_, encoder_loc_ = {0}, decoder_loc_ = {0}, groups_ = {0};
  std::vector<int32_t> self_tables_, cross_tables_, splice_rows_;
  std::vector<int64_t> splice_slots_, row_slots_;
  std::vector<FeaturesView> spliced_features_;
  std::vector<int32_t> spliced_positions_, spliced_lens_, spliced_loc_ = {0};
  std::vector<int64_t> self_slots_, cross_slots_;
  std::vector<SpecLists> lists_;  // of each spec, as the two below
  std::vector<AttentionMetadata> attention_, cross_writes_;
  DType kv_dtype_ = DType::kFloat32;
  int32_t self_stride_ = 0, cross_stride_ = 0, max_encoder_len_ = 0, max_decoder_len_ = 0, num_blocks_ = 0;
};

// The KV blocks of every layer of every spec, zeros at first. Owns the memory that its views are of.
class TestKv final {
 public:
  TestKv(const std::vector<KvSpec>& specs, const AttentionBackend& attention, int32_t num_blocks,
         DType kv_dtype = DType::kFloat32) {
    for (const KvSpec& spec : specs) {
      const size_t bytes = spec.kind == KvKind::kEncoderRows
                               ? PackedRequests::kBlockSize * static_cast<size_t>(spec.head_dim) * sizeof(float)
                               : attention.block_bytes(spec, PackedRequests::kBlockSize, kv_dtype);
      std::vector<TensorView>& views = layers_.emplace_back();
      for (int32_t i = 0; i < spec.num_layers(); ++i) {
        pools_.emplace_back((bytes * static_cast<size_t>(num_blocks) + sizeof(float) - 1) / sizeof(float));
        views.emplace_back(pools_.back().data(), DType::kUInt8,
                           std::initializer_list<int64_t>{num_blocks, static_cast<int64_t>(bytes)});
      }
    }
    spans_.assign(layers_.begin(), layers_.end());
  }

  KvCaches caches() const { return {spans_}; }

 private:
  std::vector<std::vector<float>> pools_;
  std::vector<std::vector<TensorView>> layers_;
  std::vector<std::span<const TensorView>> spans_;
};

class RunModel final {
 public:
  explicit RunModel(AttentionBackend& attention, Isa isa = Isa::kGeneric, int num_threads = 1)
      : attention_(attention), isa_(isa), threads_(num_threads) {}

  ThreadPool& threads() { return threads_; }

  // What the next runs have: the type of KV, which int8 makes that of encoder attention's keys, too; the ranks that
  // hold the model together, each with a RunModel of its own (null: one has it alone).
  void set_kv_dtype(DType kv_dtype) { kv_dtype_ = kv_dtype; }
  void set_ranks(Communicator* ranks) { ranks_ = ranks; }

  using Request = ModelRequest;
  struct Output {
    std::vector<float> encoder;       // [positions, width of the rows that are crossed]
    std::vector<float> logits;        // [decoder_ids, vocab_size]; of ranks: 0 for ids of others
    std::vector<float> spliced = {};  // [positions, d_model] of the item beside, if there is one

    bool operator==(const Output&) const = default;
  };

  // Layers before which a side is cut in stages, ascending; none: one stage.
  struct Cuts {
    std::vector<int32_t> encoder, decoder;
  };

  // Encodes each input, all of them packed in one batch, and feeds each one's decoder ids in one piece.
  std::vector<Output> run(const Model& model, const std::vector<Request>& requests, OpCounters* counters = nullptr,
                          const Cuts& cuts = {}) {
    return run_parts(model, model, requests, counters, cuts);
  }

  // The same by two models: what encodes the inputs, and what decodes over their rows.
  std::vector<Output> run_parts(const Model& encoder, const Model& model, const std::vector<Request>& requests,
                                OpCounters* counters = nullptr, const Cuts& cuts = {}) {
    Arena::Scope scope(arena_);
    CpuDevice device{threads_, isa_};
    Context context{device, arena_, false, counters, ranks_};
    const ModelSpec& spec = model.spec();
    PackedRequests packed(requests, spec.kv, spec.position_axes);
    packed.set_kv_dtype(kv_dtype_);
    const TestKv kv(spec.kv, attention_, packed.num_blocks(), kv_dtype_);

    const EncodeBatch encode = packed.encode_batch();
    Activations encoded{arena_.tensor(DType::kFloat32, {encode.num_tokens(), spec.width_of(Consumers::kCross)})};
    for (const LayerRange range : stages(cuts.encoder, encoder.spec().num_encoder_layers)) {
      encoder.encode(context, encode, range, encoded);
      move(encoded);
    }
    for (const LayerRange range : stages(cuts.decoder, spec.num_decoder_layers)) {
      model.write_cross_kv(context, encoded.x, packed.cross_writes(), kv.caches(), range);
    }

    const EncodeBatch others = packed.spliced_batch();
    Activations spliced;
    if (others.num_tokens() > 0) {
      spliced.x = arena_.tensor(DType::kFloat32, {others.num_tokens(), spec.d_model});
      for (const LayerRange range : stages(cuts.encoder, encoder.spec().num_encoder_layers)) {
        encoder.encode(context, others, range, spliced);
      }
    }
    if (const int32_t rows_spec = spec.find_kv(KvKind::kEncoderRows); rows_spec >= 0) {
      const TensorView& rows = others.num_tokens() > 0 ? spliced.x : encoded.x;
      write_row_slots(context, rows, packed.row_slots(), PackedRequests::kBlockSize,
                      kv.caches().specs[static_cast<size_t>(rows_spec)][0]);
    }

    ForwardBatch forward = packed.forward_batch(kv.caches());
    const int64_t num_rows = forward.num_tokens();
    attention_.plan(context, forward);
    Activations rows{arena_.tensor(DType::kFloat32, {num_rows, spec.d_model})};
    model.embed(context, forward, rows.x);
    for (const LayerRange range : stages(cuts.decoder, spec.num_decoder_layers)) {
      model.decode(context, forward, range, rows);
      move(rows);
    }
    const TensorView hidden = arena_.tensor(DType::kFloat32, {num_rows, spec.d_model});
    model.finish(context, forward, rows, hidden);
    std::vector<float> logits(static_cast<size_t>(num_rows * spec.vocab_size));
    model.lm_head().logits(context, hidden, TensorView(logits.data(), DType::kFloat32, {num_rows, spec.vocab_size}));
    std::vector<Output> outputs = split(spec, packed, encoded.x.f32(), logits.data());
    for (size_t i = 0; others.num_tokens() > 0 && i < outputs.size(); ++i) {
      const float* const rows = spliced.x.f32();
      const int64_t begin = packed.spliced_loc()[i], end = packed.spliced_loc()[i + 1];
      outputs[i].spliced.assign(rows + begin * spec.d_model, rows + end * spec.d_model);
    }
    return outputs;
  }

  // Logits of the last decoder row after encoding `content` and feeding three tokens: [vocab_size].
  std::vector<float> logits(const Model& model, OpCounters* counters = nullptr,
                            const EncoderItem& content = std::vector<int32_t>{0, 7, 9, 2}) {
    return last_logits(model, {content, {2, 0, 5}}, counters);
  }
  // The same of any request.
  std::vector<float> last_logits(const Model& model, const Request& request, OpCounters* counters = nullptr) {
    const std::vector<float> all = run(model, {request}, counters)[0].logits;
    return {all.end() - model.spec().vocab_size, all.end()};
  }

 private:
  static std::vector<LayerRange> stages(const std::vector<int32_t>& cuts, int32_t num_layers) {
    std::vector<LayerRange> ranges = {{0, num_layers}};
    for (const int32_t cut : cuts) {
      ranges.back().end = cut;
      ranges.push_back({cut, num_layers});
    }
    return ranges;
  }

  // To other memory, as between two machines; what stays behind is spoiled.
  void move(Activations& state) {
    const TensorView there = arena_.tensor(DType::kFloat32, {state.x.dim(0), state.x.dim(1)});
    std::copy_n(state.x.f32(), state.x.num_elements(), there.f32());
    std::fill_n(state.x.f32(), state.x.num_elements(), std::numeric_limits<float>::quiet_NaN());
    state.x = there;
  }

  static std::vector<Output> split(const ModelSpec& spec, const PackedRequests& packed, const float* hidden,
                                   const float* logits) {
    std::vector<Output> outputs;
    const int64_t width = spec.width_of(Consumers::kCross);
    for (size_t i = 0; i < static_cast<size_t>(packed.num_seqs()); ++i) {
      const std::vector<int32_t>&from = packed.encoder_loc(), &to = packed.decoder_loc();
      outputs.push_back({{hidden + int64_t{from[i]} * width, hidden + int64_t{from[i + 1]} * width},
                         {logits + int64_t{to[i]} * spec.vocab_size, logits + int64_t{to[i + 1]} * spec.vocab_size}});
    }
    return outputs;
  }

  AttentionBackend& attention_;
  Isa isa_;
  ThreadPool threads_;
  DType kv_dtype_ = DType::kFloat32;
  Communicator* ranks_ = nullptr;
  Arena arena_{1 << 22};
};

}  // namespace transept::testing
