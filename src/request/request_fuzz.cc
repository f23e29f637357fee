// Any bytes as a JSONL line: parse and resolve end in a request or an error, and what was resolved is in range.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "request/request.h"
#include "request/resolve.h"
#include "request/result_json.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<Json> line = Json::parse(text);
  if (!line.ok()) {
    require(!error_json(1, line.status()).dump().empty());
    return 0;
  }
  const StatusOr<ParsedRequest> request = parse_request(*line, 1);
  if (!request.ok()) {
    require(!error_json(request_id(*line, 1), request.status()).dump().empty());
    return 0;
  }
  constexpr int32_t kVocab = 560, kPositions = 128;
  const bool in_vocab = check_token_ids(request->prompt, kVocab).ok();
  GenerationConfig beams;
  beams.num_beams = 4;
  beams.max_length = 28;
  beams.min_length = 10;
  beams.eos_token_ids = {2};
  for (const GenerationConfig& model : {GenerationConfig(), beams}) {
    for (const bool score_only : {false, true}) {
      const auto params = resolve(request->sampling, model,
                                  {.vocab_size = kVocab,
                                   .max_decoder_positions = kPositions,
                                   .decoder_prompt_tokens = 2,
                                   .score_only = score_only});
      if (!params.ok()) continue;
      require(params->max_tokens > 0 && params->max_tokens + 2 <= kPositions);
      require(params->min_tokens >= 0 && params->min_tokens <= params->max_tokens);
      require(params->n >= 1 && params->n <= 16 && params->num_beams == 1);
      require(params->temperature >= 0 && params->top_p > 0 && params->top_k >= 0);
      for (const int32_t id : params->suppress_tokens) require(id >= 0 && id < kVocab);
    }
  }
  (void)in_vocab;
  return 0;
}
