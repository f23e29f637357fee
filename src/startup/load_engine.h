// Builds a model that is ready to serve from a model folder and the configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "engine/llm_engine.h"
#include "prompts/prompt_processor.h"
#include "startup/engine_config.h"
#include "text/tokenizer.h"

namespace transept {

// A model folder ready to serve: its configuration, tokenizer, prompts and engine.
struct LoadedModel {
  EngineConfig config;
  ModelConfig model_config;
  GenerationConfig generation;
  std::unique_ptr<Tokenizer> tokenizer;  // null: the folder has none
  std::unique_ptr<MultiModalRegistry> media;
  std::unique_ptr<SpeechTokens> speech_tokens;  // null: not a model that transcribes by tokens
  std::unique_ptr<PromptProcessor> prompts;
  std::unique_ptr<LLMEngine> engine;
  std::vector<std::unique_ptr<LLMEngine>> more_engines;  // its replicas, where several were asked for
  ExecutorInfo info;                                     // of each engine's executor: replicas are alike

  // Moves the engine and its replicas out, for AsyncEngine. `engine` is null afterwards.
  std::vector<std::unique_ptr<LLMEngine>> take_engines();
  void give_back(std::vector<std::unique_ptr<LLMEngine>> engines);  // the same, once stopped
};

// What tokenising alone needs: no weights.
struct LoadedTokenizer {
  ModelConfig model_config;
  std::unique_ptr<Tokenizer> tokenizer;
};
StatusOr<LoadedTokenizer> load_model_tokenizer(const std::string& model_dir);

// Errors: whatever is wrong in the folder's files or the flags, by name; or what the folder is instead of a model
// (startup/recognise_model.h). Borrows the clock.
StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock);

}  // namespace transept
