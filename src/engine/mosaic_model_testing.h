// For tests: a model that is no published family and uses what none does yet. Items of two kinds, each with an encoder
// of its own: rows that are spliced into the decoder's prompt, and rows (of another width) that layers cross. A decoder
// of grouped heads with norms of heads, rotary positions on three axes and gates; of its six layers the third crosses
// instead of attending to itself and the last crosses beside it; rows of kind 1 skip the feed-forward of the third. The
// fourth layer's self-attention and the last one's cross-attention have KV heads of other numbers: five specs of KV.
//
// logits() is the same in double precision from the request alone: no batch, cache, block or step.
//
// Compiled into the tests of this folder only (mosaic_model_testlib.cc). Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/folder_testing.h"
#include "core/prompt.h"
#include "models/model.h"
#include "models/stack_formulas_testing.h"

namespace transept::testing {

class Mosaic final {
 public:
  static constexpr int32_t kVocab = 37, kDim = 24, kNumAxes = 3;
  static constexpr int32_t kRowsAPosition = 2, kValuesARow = 3;  // of an item's features
  static constexpr int32_t kGrid = 5;                            // ids below it, one a position, are its extras
  static constexpr int32_t kMaxCross = 48, kMaxDecoder = 80;

  // cross_width: of the rows that are crossed. With kDim an item may be spliced and crossed.
  explicit Mosaic(int32_t cross_width);

  const std::string& folder() const { return dir_.path(); }
  StatusOr<std::unique_ptr<Model>> make(const std::shared_ptr<WeightMap>& weights,
                                        const ModelLoadOptions& options) const;

  // Features of so many positions, random by seed.
  static std::shared_ptr<const EncoderFeatures> features(int32_t num_positions, uint32_t seed);

  // [tokens][kVocab]: scores of the token behind each of `tokens`, which begin with the request's prompt.
  std::vector<std::vector<double>> logits(const EncoderDecoderInputs& inputs, std::span<const int32_t> tokens) const;

 private:
  struct Side {  // an encoder
    StackCase stack_case;
    Checkpoint checkpoint;
    std::string prefix;
  };

  Rows encode(const EncoderItem& item) const;
  const Side& side_of(Consumers consumers) const { return has(consumers, Consumers::kSplice) ? splice_ : cross_; }
  Rows linear(const Rows& x, const std::string& name) const;

  int32_t cross_width_;
  StackCase decoder_case_;
  Checkpoint decoder_;
  Side splice_, cross_;
  std::map<std::string, std::vector<float>> tables_;  // the rest: embedding, output layer, inputs of the encoders
  TestFolder dir_;
};

}  // namespace transept::testing
