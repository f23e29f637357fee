// The interface of attention: one for encoder self-attention, decoder self-attention and cross-attention, in both
// phases, with any number of new rows: a block table and a metadata block for each spec, one mechanism.
//
// Backends: `reference` (materialises scores and mask; the oracle of the others) and `cpu` (online softmax over
// blocks). Immutable after construction, so thread-safe: a step's state lies in that step's memory. Several replicas of
// an engine share one backend.
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

// Request to write the probabilities of chosen heads and rows of a run(). All spans belong to the caller.
struct AttentionCapture {
  View<int32_t> heads;      // -1: none, of which nothing is written
  View<int32_t> rows = {};  // [rows of q] place of each in `out`, or -1: not wanted. Empty: each row at its own index
  TensorView out;           // [heads.size(), wanted rows, max_kv_len] float32; run() writes 0 past a sequence's keys

  int64_t place(int64_t row) const { return rows.empty() ? row : rows[static_cast<size_t>(row)]; }
};

struct AttentionArgs {
  TensorView q;              // [rows, num_heads, head_dim] float32; empty: only writes k, v to the cache
  TensorView k, v;           // [new kv rows, num_kv_heads, head_dim]; empty: nothing new (decode's cross-attention)
  TensorView out;            // [rows, num_heads, head_dim]
  TensorView kv_cache;       // one layer of KvCaches; empty for kEncoder
  int32_t num_kv_heads = 0;  // needed if k is empty and the cache has fewer heads than q; 0: as k, else as q
  float scale = 1;
  bool causal = false;                  // row i sees keys [0, context_len + i]; the caller sets it for kDecoder
  const AttentionBias* bias = nullptr;  // null: no bias
  AttentionCapture* capture = nullptr;
};

struct AttentionCapabilities {  // required by a model
  int32_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  DType kv_dtype = DType::kFloat32;
  bool capture = false;
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;

  // Returns whether the backend can run `wanted`. False: *why gives the reason, for start-up errors and
  // docs/features.md.
  virtual bool supports(const AttentionCapabilities& wanted, std::string* why) const = 0;

  // Returns the bytes of one block of one layer. The backend owns their layout (scales, transposition). REQUIRES: a
  // supported kv_dtype.
  virtual size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const = 0;

  // Prepares everything that depends on lengths: on the host, once a step, before any run() of it. The results are
  // batch.attention[s].planned of each spec with sequences, in the context's arena until the step's scope ends.
  virtual void plan(Context& context, ForwardBatch& batch) const = 0;

  // First writes k, v to the cache at metadata.slot_mapping (kDecoder, and kEncoderDecoder if k, v are given), for all
  // sequences. Then computes out = softmax(scale * q.k + bias) v for every row, each sequence over its own keys only,
  // and each row over those of its range where metadata has ranges (kEncoderDecoder). A row without keys gives zeros.
  // The order of reduction over keys depends on key positions and the instruction level: never on the batch, the number
  // of rows, the block size or the threads. Allocates only from the context's arena. A decoder's `metadata`
  // belongs to a batch that plan() has seen (unless run() only writes to the cache). Wrong shapes fail a CHECK.
  virtual void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
                   const AttentionArgs& args) const = 0;
};

}  // namespace transept
