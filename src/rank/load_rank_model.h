// Loads the model of a rank, or a part of it, to the rank's device: what the runners have in common. A function; the
// loading thread calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/thread_pool.h"
#include "rank/runner_options.h"
#include "tensor/device.h"

namespace transept {

struct LoadedRankModel {
  std::shared_ptr<const AttentionBackend> attention;
  std::shared_ptr<const Model> model;  // borrows attention
  std::vector<PackedLayer> packed_layers;

  // False where int8 was asked for, and the encoder is too narrow for it: then its attention is not rounded either. By
  // the encoder's layers alone (is_of_encoder()): the sides may differ in width, and a whole model must give the bits
  // of its parts.
  bool has_int8_encoder() const;
};

// Loads options.part from `weights`, which the model keeps, and appends to `report` what was found, a line each.
// Errors: any error of loading.
StatusOr<LoadedRankModel> load_rank_model(const ModelConfig& config, const std::shared_ptr<WeightMap>& weights,
                                          const ModelRunnerOptions& options, ThreadPool& threads, Device& device,
                                          std::vector<std::string>& report);

}  // namespace transept
