// A stage of a pipeline among the others: rows go from stage to stage, from the rank of one to the rank of the next
// that has the same place among its stage's ranks. A stage's ranks are neighbours: rank = stage * ranks of a stage +
// place.
//
// Rows go from a stage to the next one, and from the last to the first; so the first may wait for any but the last, if
// it takes what that one sends before that is more than a sender can be ahead (EncoderDecoderModelRunner::make_way).
// Captured attention goes from all to the first, in a step that ends before another begins.
//
// Errors are the group's, which stays ended: status() says so again. Owned by the runner and used by its thread. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/communicator.h"
#include "base/status.h"
#include "comm/sub_communicator.h"
#include "layers/split.h"
#include "tensor/tensor.h"

namespace transept {

// Which stage a rank is of.
struct StagePlace {
  int32_t stage = 0;
  int32_t num_stages = 1;
  Ranks ranks;  // its place among the stage's ranks, which divide the stage's layers

  // REQUIRES: num_stages divides the group.
  static StagePlace of(const Communicator& all, int32_t num_stages);

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == num_stages; }
};

class StageLinks final {
 public:
  // Encodes run through stages [0, num_encoding). Borrows the group. REQUIRES: num_encoding >= 1.
  StageLinks(Communicator& all, const StagePlace& place, int32_t num_encoding);

  const StagePlace& place() const { return place_; }
  // The ranks of this stage; null: there is one.
  Communicator* ranks() const { return ranks_.get(); }
  bool encodes() const { return place_.stage < num_encoding_; }
  // Whether an encode's rows are whole behind this stage's layers of it: not on stages before the last one that
  // encodes.
  bool has_encoded() const { return place_.stage + 1 >= num_encoding_; }
  // Whether some stage gets them at a step's end: by way of the first one, which has them from the last.
  bool returns_encoded() const { return num_encoding_ > 1; }
  // Whether the next stage gets them from this one then.
  bool passes_encoded() const { return place_.stage + 2 < num_encoding_; }
  // The ranks before this number have something to do at a step's end: those of the first stage choose, and stages get
  // encodes' rows.
  int num_ranks_told_of_ends() const { return std::max(num_encoding_ - 1, 1) * place_.ranks.count; }

  // Rows between two layers, or an encode's: from the previous stage, to the next one. x: float32, whole rows.
  Status take(const TensorView& x) const { return recv(place_.stage - 1, x); }
  Status hand_on(const TensorView& x) const { return send(place_.stage + 1, x); }
  // From the last stage to the first one: the input of the output layer, and the rows of encodes.
  Status give_back(const TensorView& x) const { return send(0, x); }
  Status take_back(const TensorView& x) const { return recv(place_.num_stages - 1, x); }
  // Bytes that a sender can be ahead of a receiver.
  size_t bytes_ahead() const { return all_.mailbox_bytes(); }
  // Adds what all ranks have to that of the first rank, in the order of ranks. The others' stay as they are.
  Status add_to_first(std::span<float> values) const;
  // The group's error; ok: it has not ended.
  Status status() const { return all_.failure().value_or(ok_status()); }

 private:
  Status send(int32_t stage, const TensorView& x) const;
  Status recv(int32_t stage, const TensorView& x) const;
  int rank_of(int32_t stage) const { return stage * place_.ranks.count + place_.ranks.rank; }

  Communicator& all_;
  const StagePlace place_;
  const int32_t num_encoding_;
  std::unique_ptr<SubCommunicator> ranks_;
};

}  // namespace transept
