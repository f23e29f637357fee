// A model folder that is ready to serve. Owned by who serves it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/generation_config.h"
#include "core/model_config.h"
#include "core/speech_tokens.h"
#include "encoder_cache/ec_types.h"
#include "engine/encoder_engine.h"
#include "engine/llm_engine.h"
#include "multimodal/registry.h"
#include "prompts/prompt_processor.h"
#include "rank/devices.h"
#include "rank/executor.h"
#include "startup/chat_prompts.h"
#include "startup/engine_config.h"
#include "startup/rank_report.h"
#include "text/tokenizer.h"

namespace transept {

// A model folder ready to serve: its configuration, tokenizer, prompts and engine.
struct LoadedModel {
  EngineConfig config;
  std::shared_ptr<const DeviceKind> device;  // null: the processor
  ModelConfig model_config;
  GenerationConfig generation;
  std::unique_ptr<Tokenizer> tokenizer;  // null: the folder has none
  std::unique_ptr<MultiModalRegistry> media;
  std::unique_ptr<SpeechTokens> speech_tokens;  // null: not a model that transcribes by tokens
  std::unique_ptr<PromptProcessor> prompts;
  std::unique_ptr<const ChatPrompts> chat_prompts;       // null: the folder has no chat template
  std::unique_ptr<LLMEngine> engine;                     // null: an encode instance's model
  std::vector<std::unique_ptr<LLMEngine>> more_engines;  // its replicas, where several were asked for
  std::unique_ptr<EncoderEngine> encoder_engine;         // of an encode instance, in place of `engine`
  ExecutorInfo info;                                     // of each engine's executor: replicas are alike
  std::vector<RankReport> ranks;                         // by rank; empty: one process has the model
  ModelFingerprint fingerprint;                          // of an instance's model; else zeros
  // Fingerprints of instances of this checkpoint that differ in ways that have a name, and what one has, as the end of
  // a sentence: "has weights in int8, and this one in float32 (--dtype, --quantization)".
  std::vector<std::pair<ModelFingerprint, std::string>> other_fingerprints;

  // Moves the engine and its replicas out, for AsyncEngine. `engine` is null afterwards.
  std::vector<std::unique_ptr<LLMEngine>> take_engines();
  void give_back(std::vector<std::unique_ptr<LLMEngine>> engines);  // the same, once stopped
};

}  // namespace transept
