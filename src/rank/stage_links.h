// A stage of a pipeline among the others: rows go from stage to stage, from the rank of one to the rank of the next
// that has the same place among its stage's ranks. A stage's ranks are neighbours: rank = stage * ranks of a stage +
// place.
//
// Errors are the group's, which stays ended: a step ends with a barrier, which says so again. Owned by the runner and
// used by its thread. Not thread-safe.
#pragma once

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
  bool ends_encodes() const { return place_.stage + 1 == num_encoding_; }

  // Rows between two layers: from the previous stage, to the next one. x: float32, whole rows.
  Status take(const TensorView& x) const { return recv(place_.stage - 1, x); }
  Status hand_on(const TensorView& x) const { return send(place_.stage + 1, x); }
  // An encode's rows, from the stage that ends encodes to all others.
  Status share_encoded(const TensorView& rows) const;
  // The input of the output layer, from the last stage to the first one. The stages between do nothing.
  Status return_hidden(const TensorView& hidden) const;
  // Adds what all ranks have to that of the first rank, in the order of ranks. The others' stay as they are.
  Status add_to_first(std::span<float> values) const;

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
