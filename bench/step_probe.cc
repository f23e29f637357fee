// One step that encodes (one request, with the first row of its answer) or one decode step (of four) of a model, in a
// function of its own: what bench/instructions.py counts the instructions of, under callgrind
// (--toggle-collect=measured_encode or measured_step).
//
//     step_probe encode|step MODEL [KEY=VALUE...]     keys: isa, dtype, quantization, kv-cache-dtype
//
// MODEL may be "made": a BART of random weights, written for the run, wide enough that int8 is int8.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "models/tiny_bart_testing.h"
#include "startup/load_engine.h"

using transept::LLMEngine;
using transept::RequestOutput;

namespace {

constexpr int kRequests = 4, kInputLen = 48, kOutputLen = 32, kStepsBefore = 16;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "step_probe: %s\n", why.c_str());
  std::exit(2);
}

std::vector<int32_t> ids_of(int request, int32_t vocab) {
  std::vector<int32_t> ids;
  ids.reserve(kInputLen);
  for (int i = 0; i < kInputLen; ++i) ids.push_back(4 + (request * 131 + i * 37) % (vocab - 4));
  return ids;
}

void set(transept::EngineConfig& config, const std::string& key, const std::string& value) {
  const std::map<std::string, std::string*> places = {{"isa", &config.isa},
                                                      {"dtype", &config.dtype},
                                                      {"quantization", &config.quantization},
                                                      {"kv-cache-dtype", &config.kv_cache_dtype}};
  const auto place = places.find(key);
  if (place == places.end()) fail("no key " + key);
  *place->second = value;
}

}  // namespace

// Symbols that callgrind finds by their name; noipa: not inlined, not merged, not cloned.
extern "C" [[gnu::noipa]] bool measured_encode(LLMEngine& engine, std::vector<RequestOutput>& outputs) {
  return engine.step(outputs).ok();
}

extern "C" [[gnu::noipa]] bool measured_step(LLMEngine& engine, std::vector<RequestOutput>& outputs) {
  return engine.step(outputs).ok();
}

int main(int argc, char** argv) {
  if (argc < 3) fail("expected encode|step MODEL [KEY=VALUE...]");
  transept::EngineConfig config;
  const transept::testing::TestFolder made;
  config.model = argv[2];
  if (config.model == "made") {
    const transept::testing::TinyBart model{
        .vocab_size = 1000, .d_model = 256, .heads = 4, .ffn = 512, .decoder_layers = 2};
    model.write(made);
    config.model = made.path();
  }
  config.threads = 1;  // callgrind runs one at a time
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t at = argument.find('=');
    if (at == std::string::npos) fail(argument + " is not KEY=VALUE");
    set(config, argument.substr(0, at), argument.substr(at + 1));
  }
  const transept::SteadyClock clock;
  const auto model = transept::load_engine(config, clock);
  if (!model.ok()) fail(transept::error_message(model.status()));
  const int32_t vocab = model->info.spec.encoder_vocab();
  const bool encodes = argv[1] == std::string("encode");
  for (int i = 0; i < (encodes ? 1 : kRequests); ++i) {
    transept::EncoderDecoderInputs inputs;
    inputs.set_encoder_ids(ids_of(i, vocab));
    inputs.prompt_token_ids = {model->prompts->decoder_start_token_id()};
    transept::SamplingParams params;
    params.max_tokens = kOutputLen;
    params.ignore_eos = true;
    if (!model->engine->add_request(std::to_string(i), std::move(inputs), params).ok()) fail("a request failed");
  }
  std::vector<RequestOutput> outputs;
  if (encodes) {
    if (!measured_encode(*model->engine, outputs)) fail("the encode failed");
    return 0;
  }
  for (int i = 0; i < kStepsBefore; ++i) {
    if (!model->engine->step(outputs).ok()) fail("a step failed");
  }
  if (!measured_step(*model->engine, outputs)) fail("the step failed");
  return 0;
}
