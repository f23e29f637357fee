// How attention is computed. One interface for encoder self-attention, decoder self-attention and cross-attention, in
// both phases, with any number of new rows: two block tables and two metadata blocks, one mechanism.
//
// Backends: `reference` (materialises scores and mask; the oracle of the others) and `cpu` (online softmax over
// blocks). Immutable after construction, so thread-safe: what a step prepares lies in that step's memory. Several
// replicas of an engine share one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "attention/bias.h"
#include "base/status.h"
#include "core/forward_batch.h"
#include "core/kv_spec.h"
#include "tensor/context.h"

namespace transept {

enum class AttentionType : uint8_t { kEncoder, kDecoder, kEncoderDecoder };

// Where probabilities of chosen heads are written: float32 [num_heads_captured, query rows, keys] a sequence. Off:
// null.
struct AttentionCapture {
  View<int32_t> heads;
  View<int32_t> rows = {};  // [query rows] the place of each in `out`, or -1: not wanted. Empty: each at its own place
  TensorView out;           // [heads.size(), wanted rows, max_kv_len] float32; places past a sequence's keys are 0

  int64_t place(int64_t row) const { return rows.empty() ? row : rows[static_cast<size_t>(row)]; }
};

struct AttentionArgs {
  TensorView q;              // [rows, num_heads, head_dim] float32; empty: only write k, v to the cache
  TensorView k, v;           // [new kv rows, num_kv_heads, head_dim]; empty: nothing new (decode's cross-attention)
  TensorView out;            // [rows, num_heads, head_dim]
  TensorView kv_cache;       // one layer of KvCaches; empty for kEncoder
  int32_t num_kv_heads = 0;  // needed where k is empty and the cache has fewer heads than q; 0: as k, else as q
  float scale = 1;
  bool causal = false;                  // row i sees keys [0, context_len + i]; by default set from the type
  const AttentionBias* bias = nullptr;  // null: none
  AttentionCapture* capture = nullptr;
};

struct AttentionCapabilities {  // what a model wants of a backend
  int32_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  DType kv_dtype = DType::kFloat32;
  bool capture = false;
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;

  // False: *why says what is missing, for start-up errors and docs/features.md.
  virtual bool supports(const AttentionCapabilities& wanted, std::string* why) const = 0;

  // Bytes of one block of one layer. The backend owns their arrangement (scales, transposition).
  virtual size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const = 0;

  // On the host, once a step, before any run() of it: whatever depends on lengths. It hangs on batch.self and
  // batch.cross (`planned`), and lies in the context's arena: it lives until the step's scope ends.
  virtual void plan(Context& context, ForwardBatch& batch) const = 0;

  // First writes k, v to the cache at metadata.slot_mapping (kDecoder, and kEncoderDecoder when k, v are given), for
  // all sequences; then out = softmax(scale * q.k + bias) v for every row, each sequence over its own keys only. A
  // sequence without keys gives zeros. Order of reduction over keys depends on the key positions alone: never on the
  // batch, the number of rows, the block size or the threads. Allocates only from the context's arena. `metadata` of
  // self and cross is that of a batch that plan() has seen (unless it only writes to the cache).
  virtual void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                   const AttentionArgs& args) const = 0;
};

}  // namespace transept
