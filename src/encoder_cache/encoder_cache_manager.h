// Which encoder outputs have room here, which are here, and which requests use them. A face of the one block pool by
// (request, input, size): each use is a reservation of the BlockSpaceManager, an output is the table of an item, and an
// unused output is an idle table. So there is no second allocator here, no second order of eviction, and no byte of a
// row.
//
// Slots are encoder positions, and a table has those of its blocks: ceil(positions / tokens a block) * tokens a block.
// A slot has room for a row of any width that the model's items have.
// Outputs with equal digests are one table once they are written. An unused output stays until its blocks are needed;
// the one that is unused longest goes first.
//
// Names are those of vLLM's EncoderCacheManager; the forms with _disag are for what a peer announces, whose request is
// not here. Owned by the engine. Not thread-safe (engine thread).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/content_digest.h"
#include "encoder_cache/ec_transfer.h"
#include "kv/block_space_manager.h"

namespace transept {

// One input of a request, and the size of its encoder output.
struct EcUse {
  EcInput input;
  ContentDigest digest;
  int32_t num_positions = 0;  // > 0
};

class EncoderCacheManager final {
 public:
  // Borrows `blocks`. `spec`: of the tables of rows. REQUIRES: blocks.keeps_unused(spec).
  // BlockSpaceManager::Options::max_reserved_blocks is the most that all uses may hold (--ec-buffer-memory).
  EncoderCacheManager(BlockSpaceManager& blocks, int32_t spec);

  // Begins a use of an output that is here, and returns true; true also if this input uses it already. False: its rows
  // are not here (yet), it has another length, or the pool or the cap has no room for one more used output.
  bool check_and_update_cache(const EcUse& use);
  // Whether there is room for a new output.
  AllocStatus can_allocate(int32_t num_positions) const;
  // Takes room for the output of an encode that follows; mark_written() says that its rows are there. REQUIRES:
  // can_allocate() is kOk, and the input has no use.
  ReservationId allocate(const EcUse& use);

  // What a peer announced. kOk also if the input has a use already, or if joining an output that is here has room.
  // REQUIRES: !contradicts(meta).
  AllocStatus can_allocate_disag(const EcMeta& meta) const;
  // Takes room for it before its first byte comes, or begins a use of an equal output: is_written() tells which.
  // Returns the input's use if there is one. REQUIRES: can_allocate_disag() is kOk.
  ReservationId allocate_disag(const EcMeta& meta);
  // Whether an output of this digest and of another length is here: a peer is wrong.
  bool contradicts(const EcMeta& meta) const;

  // The rows of the input's use are all there. False: meanwhile an output of this digest and of another length was
  // written, and this one cannot be found. REQUIRES: has_use().
  bool mark_written(const EcInput& input);

  // Whether inputs 0 to num_inputs - 1 of the request have uses whose rows are there.
  bool has_cached_inputs(const std::string& request_id, int32_t num_inputs) const;
  bool has_use(const EcInput& input) const;
  bool is_written(const EcInput& input) const;
  std::vector<uint32_t> inputs_of(const std::string& request_id) const;  // that have uses
  // The blocks of the input's rows, in order of positions. Valid until its use ends or mark_written(). Empty: no use.
  std::span<const BlockId> blocks_of(const EcInput& input) const;

  // Ends a use, or all uses of a request. Told again, or of an unknown input: no-op, so a use ends once however often
  // its end is told. Rows that were not written yet leave nothing. REQUIRES: no thread is writing them any more.
  void free_encoder_input(const EcInput& input);
  void free(const std::string& request_id);

  // Slots for new outputs: without giving up any unused one, and in all. Less the pool's watermark.
  int64_t num_free_slots() const;
  int64_t num_freeable_slots() const;
  int64_t num_slots_for(int32_t num_positions) const;  // of an output: whole blocks
  int64_t num_used_slots() const;                      // held by uses; an output with several uses counts once
  int64_t num_unwritten_slots() const { return num_unwritten_slots_; }  // of them: the rows are not there yet
  int64_t max_slots() const;                                            // of the cap
  int64_t num_uses() const { return num_uses_; }

 private:
  struct Use {
    uint32_t input_id = 0;
    ReservationId reservation{};
    int64_t num_unwritten_slots = 0;
  };
  using Uses = absl::InlinedVector<Use, 1>;

  BlockSpaceManager::SharedRequest request_of(const ContentDigest& digest, int32_t num_positions) const;
  const Use* find(const EcInput& input) const;
  Use* find(const EcInput& input);
  ReservationId begin_use(const EcInput& input, const ContentDigest& digest, int32_t num_positions);
  int64_t slots_of(int32_t num_blocks) const;

  BlockSpaceManager& blocks_;
  int32_t spec_;
  absl::flat_hash_map<std::string, Uses> requests_;
  int64_t num_uses_ = 0;
  int64_t num_unwritten_slots_ = 0;
};

}  // namespace transept
