// Loads the model of a rank, or a part of it, to the rank's device: what the runners have in common. A function; the
// loading thread calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/thread_pool.h"
#include "rank/runner_options.h"
#include "rank/stage_layers.h"
#include "rank/stage_links.h"
#include "tensor/device.h"

namespace transept {

struct LoadedRankModel {
  std::shared_ptr<const AttentionBackend> attention;
  std::shared_ptr<const Model> model;  // borrows attention
  std::vector<PackedLayer> packed_layers;
  // Of a stage of a pipeline: which it is, what all stages have, and the layers that others hold. Else one stage, which
  // has all.
  StagePlace place;
  StageLayers own;
  std::vector<StageLayers> stages;  // empty: no pipeline
  std::vector<PackedLayer> layers_elsewhere;

  // How many stages, from the first, encodes run through.
  int32_t num_encoding_stages() const;

  // What the encoder's attention rounds keys and values to (AttentionMetadata::kv_dtype): int8 where layers of its have
  // int8 weights, bfloat16 where they round their inputs to it, else float32, also where int8 was asked for and the
  // encoder is too narrow. By the encoder's layers alone (is_of_encoder()): the sides may differ in width, and a whole
  // model must give the bits of its parts.
  DType encoder_kv_dtype() const;
};

// Loads options.part from `weights`, which the model keeps, and appends to `report` what was found, a line each. A
// stage of a pipeline reads and packs its own layers. Errors: any error of loading; those of cut_layers();
// kUnimplemented: the names of the checkpoint's tensors do not count the layers of its decoder.
StatusOr<LoadedRankModel> load_rank_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                          const ModelRunnerOptions& options, ThreadPool& threads, Device& device,
                                          std::vector<std::string>& report);

}  // namespace transept
