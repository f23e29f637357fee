// Any bytes as the options of a model, a transcription or subtitles: they end in values of their ranges, or in an
// error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "capi/model_options.h"
#include "capi/option_table.h"
#include "capi/speech_options.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const StatusOr<Json> options = parse_options({reinterpret_cast<const char*>(data), size}, "options_json");
  if (!options.ok()) {
    require(error_param(options.status()) == "options_json");
    return 0;
  }
  if (const StatusOr<ModelOptions> config = model_options_of(*options); config.ok()) {
    require(config->block_size >= 1 && config->block_size <= 1024);
    require(config->max_num_seqs >= 1 && config->replicas >= 1 && config->replicas <= 1024);
    require(config->threads >= 0 && config->max_model_len.value_or(1) >= 1);
    require(config->watermark >= 0 && config->watermark < 1);
  } else {
    require(!error_param(config.status()).empty());
  }
  if (const StatusOr<TranscribeOptions> speech = transcribe_options_of(*options); speech.ok()) {
    require(check_transcribe_options(*speech).ok());
  }
  if (const StatusOr<SubtitleOptions> subtitles = subtitle_options_of(*options); subtitles.ok()) {
    require(subtitles->max_line_width >= 0 && subtitles->max_line_count >= 0 && subtitles->max_words_per_line >= 0);
  }
  return 0;
}
