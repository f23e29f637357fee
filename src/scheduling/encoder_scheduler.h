// Decides what a step of an encode instance encodes: items in order of arrival, each whole, while the step's budgets
// and the room for outputs last. The first that does not fit ends the scan, so none is overtaken. There are no
// sequences, no blocks and no preemption here: scheduler.h has those of a decode instance.
//
// An item whose output is here, or is made in the same step for another, is not encoded. An output has its room before
// its encode begins; while outputs that wait for their grant or are being sent fill it, nothing is encoded.
//
// Owned by the engine. Not thread-safe (engine thread). The calls of a step:
//
//   scheduler.schedule(outputs);        execute(outputs)
//   scheduler.mark_encoded(id, rows);   of each encode
//   scheduler.take_ready(ready);        items that have their rows now
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/status.h"
#include "core/encoder_item.h"
#include "encoder_cache/encoded_outputs.h"
#include "scheduling/scheduler_outputs.h"

namespace transept {

class EncoderScheduler final {
 public:
  struct Options {
    int32_t max_num_encoder_tokens = 4096;  // rows of a step, and of one item
    int32_t max_num_seqs = 64;              // items of a step
    uint64_t max_output_bytes = 0;          // of outputs that are used or kept (--ec-buffer-memory)
  };

  explicit EncoderScheduler(const Options& options) : options_(options), outputs_(options.max_output_bytes) {}

  // Errors: kInvalidArgument, an item without rows, of more rows than a step has, or whose output, of `num_bytes`, is
  // larger than all the room; both numbers.
  Status check(const EncoderItem& item, uint64_t num_bytes) const;

  // Queues an item. REQUIRES: check(); the item has its digest; the id is unused. Each item has an id of its own.
  void add(GroupId id, EncoderItem item, uint64_t num_bytes);
  // The item's output is no longer wanted for it: takes it out of the queue, or ends its use. No-op if there is none.
  void remove(GroupId id);

  // Fills `encodes` and the bulk, and nothing else.
  void schedule(SchedulerOutputs& outputs);
  void mark_encoded(GroupId id, EcRows rows);
  // Replaces `ready` by the items that have got their rows since the last call, in order of arrival.
  void take_ready(std::vector<GroupId>& ready);

  // The rows of an item that was ready; null: it has none.
  EcRows rows_of(GroupId id) const;

  size_t num_waiting() const { return queue_.size(); }  // for their encode
  size_t num_items() const { return items_.size(); }
  int64_t num_hits() const { return num_hits_; }  // items that were not encoded
  const EncodedOutputs& outputs() const { return outputs_; }

 private:
  struct Item {
    EncoderItem input;  // its ids and media go when it is planned
    ContentDigest digest;
    uint64_t num_bytes = 0;
    std::list<GroupId>::iterator place{};  // in queue_
    bool is_waiting = true;
  };

  void leave_queue(Item& item);

  Options options_;
  EncodedOutputs outputs_;
  absl::flat_hash_map<GroupId, Item> items_;
  std::list<GroupId> queue_;
  std::vector<GroupId> planned_;  // of this step, in order: items that have room, encoded or joined
  int64_t num_hits_ = 0;
};

}  // namespace transept
