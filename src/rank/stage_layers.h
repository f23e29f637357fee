// Which layers of a model each stage of a pipeline has. Stages have neighbouring layers of the decoder, and of the
// encoder where its tensors' names say which layer each is of; else the first stage has the whole encoder. The first
// stage also has what is no layer's: embeddings, which it reads, and the output layer, as tokens are chosen there.
//
// Values and pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/forward_batch.h"
#include "weights/weight_map.h"

namespace transept {

struct StageLayers {
  LayerRange encoder, decoder;  // of an encoder that is not divided: [0, 0)
};

struct NamedLayer {
  bool is_encoder = false;
  int32_t layer = 0;

  bool operator==(const NamedLayer&) const = default;
};

// The layer that a tensor or a matrix of this name belongs to: "model.decoder.layers.3.fc1.weight" is decoder layer 3.
// A prefix of the file's or of the loader's changes nothing. nullopt: no layer's.
std::optional<NamedLayer> layer_of_name(std::string_view name);

// The bytes of a checkpoint's tensors, as it stores them; of a file that was packed for one of several ranks those of
// whole matrices, so that the files of all ranks give the same numbers.
struct LayerBytes {
  std::vector<uint64_t> encoder, decoder;  // of each layer
  uint64_t others = 0;                     // of what is no layer's
  uint64_t output = 0;                     // of these: of the largest tensor, the output layer's or one as large
  // Whether the encoder is one stack whose layers the names count: "encoder.layers.N.", "encoder.block.N.". False: a
  // tower's, or several; its bytes are among `others` then, and `encoder` is empty.
  bool divides_encoder = false;
};
LayerBytes layer_bytes(const WeightMap& weights);

// What is to be as small as can be in the largest stage.
enum class CutBy {
  kBytes,  // memory
  // The time that a stage takes, as far as bytes tell it: a decoder layer's count twice, as it also attends and
  // normalises for each row; the encoder's once, for inputs about as long as answers; of what is no layer's only the
  // output layer's. So the first stage has more bytes than the others.
  kTime,
};

// What --pipeline-layers says: bytes, time, or numbers of layers by stage, "5,7", or "6,6/5,7" with the encoder's
// first.
struct LayerCut {
  CutBy by = CutBy::kBytes;               // of layers without numbers
  std::vector<int32_t> encoder, decoder;  // numbers of layers; empty: not said
};
// Errors: kInvalidArgument, by the flag's name: no such word or list; not as many numbers as stages; a stage without a
// layer of the decoder; a first stage without one of the encoder, whose inputs it reads (Model::encode() of a range
// from layer 0).
StatusOr<LayerCut> parse_pipeline_layers(std::string_view text, int32_t num_stages);

// The layers of each stage: the decoder's first, then the encoder's beside them. Errors: kInvalidArgument, naming the
// flag, the numbers and what would do: more stages than decoder layers; counts that do not add up.
StatusOr<std::vector<StageLayers>> cut_layers(const LayerBytes& bytes, int32_t num_stages, const LayerCut& cut);

// "2 stages of encoder layers 6 + 6 and decoder layers 5 + 7; up to 2 steps are in flight".
std::string stages_text(const std::vector<StageLayers>& stages);

}  // namespace transept
