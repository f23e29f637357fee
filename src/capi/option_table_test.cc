#include <gtest/gtest.h>

#include "capi/model_options.h"
#include "capi/option_table.h"
#include "capi/speech_options.h"

namespace transept {
namespace {

Json json(std::string_view text) { return Json::parse(text).value(); }

Status model_error(std::string_view text) { return model_options_of(json(text)).status(); }
Status speech_error(std::string_view text) { return transcribe_options_of(json(text)).status(); }

TEST(Options, OfAModel) {
  const EngineConfig defaults;
  const ModelOptions plain = model_options_of(Json::object()).value();
  EXPECT_EQ(plain.block_size, defaults.block_size);
  EXPECT_FALSE(plain.quantization_given);
  const ModelOptions config = model_options_of(json(R"({"block_size": 8, "dtype": "bfloat16",
      "kv_cache_memory": 5000000000, "max_model_len": 40, "quantization": "none", "seed": 9, "threads": 3.0,
      "share_identical_inputs": false, "watermark": 0.5, "swap_space": null, "revision": "v1", "download_dir": "d",
      "hf_token": "t", "local_files_only": true})"))
                                  .value();
  EXPECT_EQ(config.block_size, 8);
  EXPECT_EQ(config.dtype, "bfloat16");
  EXPECT_EQ(config.kv_cache_memory, 5000000000u);
  EXPECT_EQ(config.max_model_len, 40);
  EXPECT_TRUE(config.quantization_given);
  EXPECT_EQ(config.seed, 9u);
  EXPECT_EQ(config.threads, 3);
  EXPECT_FALSE(config.share_identical_inputs);
  EXPECT_EQ(config.watermark, 0.5);
  EXPECT_EQ(config.swap_space, defaults.swap_space);
  EXPECT_EQ(config.revision, "v1");
  EXPECT_EQ(config.download_dir, "d");
  EXPECT_EQ(config.hf_token, "t");
  EXPECT_TRUE(config.local_files_only);
}

TEST(Options, HaveTheNamesAndZerosOfOtherLibraries) {
  EXPECT_EQ(model_options_of(json(R"({"dtype": "half"})")).value().dtype, "float16");
  EXPECT_EQ(model_options_of(json(R"({"dtype": "float"})")).value().dtype, "float32");
  EXPECT_EQ(model_options_of(json(R"({"dtype": "float7"})")).value().dtype, "float7") << "refused with the model";
  EXPECT_EQ(model_options_of(json(R"({"threads": 0})")).value().threads, 0);
}

TEST(OptionTable, ErrorsOfLoadingNameOptions) {
  const auto said = [](std::string_view message) { return in_words_of_options(invalid_argument(message)); };
  EXPECT_EQ(error_message(said("--kv-cache-dtype x: not with --device y, but with --dtype")),
            "kv_cache_dtype x: not with device y, but with dtype");
  EXPECT_EQ(error_param(said("--kv-cache-dtype x: unknown")), "kv_cache_dtype");
  EXPECT_EQ(error_param(said("m/config.json: give --dtype")), "") << "the file is what is wrong";
  for (const char* message : {"--nnodes 2: --, --dtypes and ---dtype", "/models/x--dtype: no such folder"}) {
    EXPECT_EQ(error_message(said(message)), message);
  }
  EXPECT_EQ(error_param(in_words_of_options(field_error("model", "--dtype"))), "model");
  EXPECT_TRUE(in_words_of_options(ok_status()).ok());
}

TEST(Options, ErrorsNameWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"block_size": 0})", "block_size must be a whole number from 1 to 1024, not 0"},
      {R"({"block_size": 1025})", "block_size must be a whole number from 1 to 1024, not 1025"},
      {R"({"block_size": 8.5})", "block_size must be a whole number from 1 to 1024, not 8.5"},
      {R"({"block_size": "8"})", "block_size must be a whole number from 1 to 1024, not \"8\""},
      {R"({"seed": -1})", "seed must be a whole number from 0 to 9e+18, not -1"},
      {R"({"seed": 99999999999999999999})", "seed must be a whole number from 0 to 9e+18, not 99999999999999999999"},
      {R"({"revision": "a\u0000b"})", R"(revision must be a string without a NUL, not "a\u0000b")"},
      {R"({"dtype": 16})", "dtype must be a string, not 16"},
      {R"({"share_identical_inputs": "on"})", "share_identical_inputs must be true or false, not \"on\""},
      {R"({"watermark": "a"})", "watermark must be a number, not \"a\""},
      {R"({"watermark": 1})", "watermark must be a number from 0 to 0.99, not 1"},
      {R"({"blok_size": 8})", "\"blok_size\" is no option of a model; did you mean \"block_size\"?"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_message(model_error(text)), message) << text;
  EXPECT_EQ(error_param(model_error(R"({"block_size": 0})")), "block_size");
  EXPECT_EQ(error_param(model_error(R"({"xyz": 0})")), "xyz");
  EXPECT_EQ(error_param(model_error(R"({"": 0})")), "\"\"") << "an error of an option names one";
  EXPECT_NE(error_message(model_error(R"({"xyzxyz": 0})")).find("the options are attention_backend, "),
            std::string::npos);
}

TEST(Options, OfATranscription) {
  const TranscribeOptions defaults;
  const TranscribeOptions options =
      transcribe_options_of(json(R"({"language": null, "beam_size": 2, "logprob_threshold": null, "mode": "batched",
      "no_speech_threshold": 0.5, "suppress_tokens": [-1, 7], "temperature_increment_on_fallback": null,
      "word_timestamps": true, "seed": 3})"))
          .value();
  EXPECT_EQ(options.language, "");
  EXPECT_EQ(options.beam_size, 2);
  EXPECT_EQ(options.thresholds.logprob, std::nullopt);
  EXPECT_EQ(options.thresholds.no_speech, 0.5);
  EXPECT_EQ(options.thresholds.compression_ratio, defaults.thresholds.compression_ratio);
  EXPECT_EQ(options.suppress_tokens, (std::vector<int32_t>{-1, 7}));
  EXPECT_EQ(options.temperature_increment, std::nullopt);
  EXPECT_EQ(options.mode, TranscribeMode::kBatched);
  EXPECT_TRUE(options.word_timestamps);
  EXPECT_EQ(options.seed, 3u);
  EXPECT_EQ(transcribe_options_of(json(R"({"mode": "sequential"})")).value().mode, TranscribeMode::kSequential);
  EXPECT_EQ(transcribe_options_of(json(R"({"mode": "auto"})")).value().mode, std::nullopt);
  EXPECT_EQ(error_param(speech_error(R"({"mode": "both"})")), "mode");
  EXPECT_EQ(error_param(speech_error(R"({"beam_size": 65})")), "beam_size");
  EXPECT_EQ(error_param(speech_error(R"({"suppress_tokens": [1.5]})")), "suppress_tokens");
  EXPECT_EQ(error_param(speech_error(R"({"suppress_tokens": "-1"})")), "suppress_tokens");
  EXPECT_EQ(error_param(speech_error(R"({"suppress_tokens": [2147483648]})")), "suppress_tokens");
  EXPECT_EQ(error_message(speech_error(R"({"beam": 1})")).substr(0, 38), "\"beam\" is no option of a transcription");
}

TEST(Options, OfSubtitles) {
  const SubtitleOptions options =
      subtitle_options_of(json(R"({"max_line_width": 9, "highlight_words": true})")).value();
  EXPECT_EQ(options.max_line_width, 9);
  EXPECT_TRUE(options.highlight_words);
  EXPECT_EQ(error_param(subtitle_options_of(json(R"({"max_line_count": -1})")).status()), "max_line_count");
  EXPECT_EQ(transcript_format_of("srt").value(), TranscriptFormat::kSrt);
  EXPECT_EQ(error_param(transcript_format_of("doc").status()), "format");
}

TEST(Options, AreOneObject) {
  EXPECT_TRUE(parse_options("", "options_json").value().as_object().empty());
  for (const char* text : {"[]", "{", "{} {}", "7", "{\"a\": \"\xff\"}"}) {
    EXPECT_EQ(error_param(parse_options(text, "options_json").status()), "options_json") << text;
  }
}

}  // namespace
}  // namespace transept
