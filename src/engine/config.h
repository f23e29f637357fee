// From a model folder and the configuration to a model that is ready to serve.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "engine/engine_config.h"
#include "engine/llm_engine.h"
#include "engine/local_executor.h"
#include "engine/prompt_processor.h"
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
  EncoderDecoderModelRunner* runner = nullptr;           // owned by the engine's executor
  bool has_alignment_heads = false;                      // its cross-attention says when a token was spoken

  // The engine and its replicas: for AsyncEngine. `engine` is null then.
  std::vector<std::unique_ptr<LLMEngine>> take_engines();
  void give_back(std::vector<std::unique_ptr<LLMEngine>> engines);  // those, when they have stopped
};

// What tokenising alone needs: no weights.
struct LoadedTokenizer {
  ModelConfig model_config;
  std::unique_ptr<Tokenizer> tokenizer;
};
StatusOr<LoadedTokenizer> load_model_tokenizer(const std::string& model_dir);

// config.json of a model's folder; errors say what the folder may be instead.
StatusOr<ModelConfig> read_model_config(const std::string& model_dir);

// Errors: whatever the folder's files or the flags have wrong, by name. Borrows the clock.
StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock);

}  // namespace transept
