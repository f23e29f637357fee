// The model that drafts for another one (--speculative-config method model): found fit for it, and loaded beside it.
// Functions without state; the loading thread calls them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "engine/model_drafter.h"
#include "rank/model_runner.h"
#include "startup/engine_config.h"
#include "startup/runner_choices.h"
#include "text/tokenizer.h"
#include "weights/weight_map.h"

namespace transept {

// The draft model's files, before the model that it drafts for is loaded.
struct OpenedDraftModel {
  std::string folder;  // as it was asked for; "": no model drafts
  ModelConfig model_config;
  std::shared_ptr<WeightMap> weights;
  std::string quantization;  // OpenedWeights::quantization
  uint64_t kv_memory = 0;    // bytes: the most of its pool, unless one longest request takes more
  uint64_t memory() const;   // and of its weights: what the other model leaves to it
};

// tokenizer: of the model that it drafts for; null: there is none, and vocabularies are compared by their sizes.
// Warns if the draft model has more weights. Errors, as --speculative-config's: a folder without a model or without
// weights; another family; another vocabulary, with the first id that differs; a device that is not the processor.
StatusOr<OpenedDraftModel> open_draft_model(const EngineConfig& config, const ModelConfig& model,
                                            const WeightMap& weights, const Tokenizer* tokenizer);

// Whether the draft model's encoder is that of `model`: every tensor that is not the decoder's has an equal of the same
// name, and config.json says the same of all that is not. Reads both encoders.
bool has_same_encoder(const ModelConfig& model, const WeightMap& weights, const ModelConfig& draft,
                      const WeightMap& draft_weights);

struct LoadedDraftModel {
  std::unique_ptr<EncoderDecoderModelRunner> runner;  // null: no model drafts
  bool shares_encoder = false;                        // DraftModel's
};

// `info`, `model` and `weights`: of the model that it drafts for. Its keys and values are int8 unless --kv-cache-dtype
// names a type, whatever those of the other model are: drafts change no answer. Logs what was loaded. Errors, as
// --speculative-config's: those of loading; an encoder that takes other media; a family that does not cross in every
// layer.
StatusOr<LoadedDraftModel> load_draft_model(const OpenedDraftModel& opened, const EngineConfig& config,
                                            const RunnerChoices& choices, const ExecutorInfo& info,
                                            const ModelConfig& model, const WeightMap& weights);

}  // namespace transept
