#include "apps/foreign_flags.h"

#include <algorithm>
#include <iterator>

#include "base/strings.h"

namespace transept {
namespace {

using Kind = ForeignFlag::Kind;

constexpr std::string_view kWhisper = "openai-whisper", kFaster = "faster-whisper", kCpp = "whisper.cpp";
constexpr std::string_view kVllm = "vLLM", kCt2 = "CTranslate2", kHf = "transformers";
constexpr std::string_view kSpeech = "transcribe";

constexpr ForeignFlag stands(std::string_view tool, std::string_view spellings, std::string_view value_name,
                             std::string_view value, std::string_view ours, std::string_view verbs = "") {
  return {Kind::kStandsFor, tool, spellings, value_name, value, ours, "", verbs};
}
constexpr ForeignFlag nothing(std::string_view tool, std::string_view spellings, std::string_view value_name,
                              std::string_view why, std::string_view verbs = "") {
  return {Kind::kNothing, tool, spellings, value_name, "", "", why, verbs};
}
constexpr ForeignFlag refused(std::string_view tool, std::string_view spellings, std::string_view value_name,
                              std::string_view why, std::string_view verbs = "", std::string_view value = "") {
  return {Kind::kRefused, tool, spellings, value_name, value, "", why, verbs};
}

constexpr std::string_view kNoSpeakers = "speakers are not told apart";
constexpr std::string_view kCutAtPauses =
    "the voice detector has no settings; --vad-filter leaves pauses of over 2 s out";
constexpr std::string_view kClips = "give --clip-timestamps START,END in seconds";

// A value of a flag that has a row for every value comes before that row.
constexpr ForeignFlag kRows[] = {
    stands(kWhisper, "--model -m", "NAME", "", "MODEL={}"),
    stands(kWhisper, "--model-dir", "DIR", "", "--download-dir={}"),
    stands(kWhisper, "--fp16", "[BOOL]", "true", "--dtype=float16"),
    stands(kWhisper, "--fp16", "[BOOL]", "false", ""),
    stands(kWhisper, "--threads", "N", "0", ""),
    stands(kWhisper, "--language", "LANG", "auto", "--language=none", kSpeech),

    stands(kFaster, "--compute-type", "TYPE", "default", ""),
    stands(kFaster, "--compute-type", "TYPE", "auto", "--quantization=auto"),
    stands(kFaster, "--compute-type", "TYPE", "float32", "--dtype=float32"),
    stands(kFaster, "--compute-type", "TYPE", "float16", "--dtype=float16"),
    stands(kFaster, "--compute-type", "TYPE", "bfloat16", "--dtype=bfloat16"),
    stands(kFaster, "--compute-type", "TYPE", "int8", "--quantization=int8"),
    stands(kFaster, "--compute-type", "TYPE", "int8_float32", "--dtype=float32 --quantization=int8"),
    stands(kFaster, "--compute-type", "TYPE", "int8_float16", "--dtype=float16 --quantization=int8"),
    stands(kFaster, "--compute-type", "TYPE", "int8_bfloat16", "--dtype=bfloat16 --quantization=int8"),
    refused(kFaster, "--compute-type", "TYPE", "there are no products in 16-bit integers; --dtype float16 is as small",
            "", "int16"),
    stands(kFaster, "--batched", "[BOOL]", "true", "--mode=batched", kSpeech),
    stands(kFaster, "--batched", "[BOOL]", "false", "--mode=sequential", kSpeech),
    refused(kFaster, "--vad-threshold --vad-min-speech-duration-ms --vad-max-speech-duration-s", "X", kCutAtPauses,
            kSpeech),
    refused(kFaster, "--vad-min-silence-duration-ms --vad-speech-pad-ms", "N", kCutAtPauses, kSpeech),
    stands(kFaster, "--model-directory", "DIR", "", "MODEL={}"),
    stands(kFaster, "--cpu-threads", "N", "0", ""),
    stands(kFaster, "--cpu-threads", "N", "", "--threads={}"),
    nothing(kFaster, "--print-colors --pc", "[BOOL]", "segments have no colours", kSpeech),
    refused(kFaster, "--repetition-penalty --no-repeat-ngram-size", "X",
            "a window that repeats itself is decoded again: --compression-ratio-threshold", kSpeech),
    refused(kFaster, "--chunk-length", "N", "a window has the model's own length", kSpeech),
    refused(kFaster, "--hf-token --speaker-name --speaker-num", "TEXT", kNoSpeakers, kSpeech),

    stands(kCpp, "-f", "FILE", "*.*", "{}", kSpeech),
    stands(kCpp, "-f", "FILE", "*/*", "{}", kSpeech),
    stands(kCpp, "-f", "FILE", "-", "{}", kSpeech),
    stands(kCpp, "--file", "FILE", "", "{}", kSpeech),
    stands(kCpp, "-otxt --output-txt", "", "", "--output-format=txt", kSpeech),
    stands(kCpp, "-ovtt --output-vtt", "", "", "--output-format=vtt", kSpeech),
    stands(kCpp, "-osrt --output-srt", "", "", "--output-format=srt", kSpeech),
    stands(kCpp, "-oj --output-json", "", "", "--output-format=json", kSpeech),
    stands(kCpp, "-ojf --output-json-full", "", "", "--output-format=json --word-timestamps", kSpeech),
    refused(kCpp, "-ocsv --output-csv", "", "--output-format tsv has these columns, with tabs between them", kSpeech),
    refused(kCpp, "-olrc --output-lrc", "", "give --output-format vtt or srt", kSpeech),
    refused(kCpp, "-owts --output-words", "", "give --output-format vtt --word-timestamps --highlight-words", kSpeech),
    refused(kCpp, "-of --output-file", "NAME", "files have the names of their audio; --output-dir DIR is where they go",
            kSpeech),
    stands(kCpp, "-l", "LANG", "auto", "--language=none", kSpeech),
    stands(kCpp, "-l", "LANG", "", "--language={}", kSpeech),
    stands(kCpp, "-t", "N", "0", ""),
    stands(kCpp, "-t", "N", "", "--threads={}"),
    stands(kCpp, "-p --processors", "N", "1", "", kSpeech),
    refused(kCpp, "-p --processors", "N", "--mode batched runs --batch-size windows of a file at once", kSpeech),
    stands(kCpp, "-tr --translate", "", "", "--task=translate", kSpeech),
    stands(kCpp, "-ml --max-len", "N", "0", "", kSpeech),
    stands(kCpp, "-ml --max-len", "N", "", "--word-timestamps --max-line-width={}", kSpeech),
    stands(kCpp, "-sow --split-on-word", "", "", "", kSpeech),
    stands(kCpp, "-bo", "N", "", "--best-of={}", kSpeech),
    stands(kCpp, "-bs", "N", "", "--beam-size={}", kSpeech),
    stands(kCpp, "-nt --no-timestamps", "", "", "--without-timestamps", kSpeech),
    nothing(kCpp, "-pp --print-progress", "", "progress is shown on a terminal", kSpeech),
    nothing(kCpp, "-pc -ps --print-special", "", "segments are printed as plain text", kSpeech),
    stands(kCpp, "-np --no-prints", "", "", "--quiet", kSpeech),
    stands(kCpp, "-tp", "X", "", "--temperature={}", kSpeech),
    stands(kCpp, "-tpi --temperature-inc", "X", "", "--temperature-increment-on-fallback={}", kSpeech),
    stands(kCpp, "-nf --no-fallback", "", "", "--temperature-increment-on-fallback=none", kSpeech),
    refused(kCpp, "-et --entropy-thold", "X", "--compression-ratio-threshold finds texts that repeat themselves",
            kSpeech),
    stands(kCpp, "-lpt --logprob-thold", "X", "", "--logprob-threshold={}", kSpeech),
    stands(kCpp, "-nth --no-speech-thold", "X", "", "--no-speech-threshold={}", kSpeech),
    stands(kCpp, "-mc --max-context", "N", "0", "--condition-on-previous-text=false", kSpeech),
    stands(kCpp, "-mc --max-context", "N", "-1", "", kSpeech),
    refused(kCpp, "-mc --max-context", "N", "--condition-on-previous-text false leaves the text before a window out",
            kSpeech),
    stands(kCpp, "-ac --audio-ctx", "N", "0", "", kSpeech),
    refused(kCpp, "-ac --audio-ctx", "N", "the encoder always takes the model's own window", kSpeech),
    refused(kCpp, "-ot --offset-t -d --duration", "MS", kClips, kSpeech),
    refused(kCpp, "-di --diarize -tdrz --tinydiarize", "", kNoSpeakers, kSpeech),
    refused(kCpp, "-dl --detect-language", "", "--language none detects the language, and transcribes", kSpeech),
    stands(kCpp, "-ng --no-gpu", "", "", ""),
    nothing(kCpp, "-fa --flash-attn", "", "--attention-backend names the kernels of attention"),
    stands(kCpp, "--prompt", "TEXT", "", "--initial-prompt={}", kSpeech),
    refused(kCpp, "-sns --suppress-nst", "", "--suppress-tokens takes the ids; its default is the model's list",
            kSpeech),
    refused(kCpp, "--suppress-regex", "TEXT", "--suppress-tokens takes ids", kSpeech),
    refused(kCpp, "--grammar --grammar-rule", "TEXT", "structured output is not supported", kSpeech),
    stands(kCpp, "-dtw --dtw", "MODEL", "", "--word-timestamps", kSpeech),
    stands(kCpp, "--vad", "", "", "--vad-filter", kSpeech),
    nothing(kCpp, "-vm --vad-model", "FILE", "the voice detector is built in", kSpeech),
    refused(kCpp, "-ls --log-score", "", "--output-format json has avg_logprob of every segment", kSpeech),

    stands(kVllm, "--dtype", "TYPE", "half", "--dtype=float16"),
    stands(kVllm, "--dtype", "TYPE", "float", "--dtype=float32"),
    stands(kVllm, "--no-enable-prefix-caching", "", "", "--enable-prefix-caching=off"),
    nothing(kVllm, "--trust-remote-code", "[BOOL]", "no code from a model's folder is run"),
    nothing(kVllm, "--enforce-eager", "[BOOL]", "there are no graphs to capture"),
    refused(kVllm, "--gpu-memory-utilization", "SHARE", "--kv-cache-memory SIZE is the memory of the KV cache"),
    stands(kVllm, "--kv-cache-memory-bytes", "N", "", "--kv-cache-memory={}"),
    refused(kVllm, "--kv-cache-dtype", "TYPE", "--kv-cache-dtype int8 is the type of 8 bits", "", "fp8*"),
    stands(kVllm, "--swap-space", "N", "[0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9][0-9]", "--swap-space={}GiB"),
    refused(kVllm, "--tokenizer", "NAME", "the tokenizer is read from the folder of MODEL"),
    stands(kVllm, "--tokenizer-mode", "MODE", "auto", ""),
    stands(kVllm, "--tokenizer-mode", "MODE", "slow", ""),
    stands(kVllm, "--load-format", "FORMAT", "auto", ""),
    stands(kVllm, "--load-format", "FORMAT", "safetensors", ""),
    stands(kVllm, "--data-parallel-size -dp", "N", "", "--replicas={}", "serve"),
    stands(kVllm, "-tp", "N", "", "--tensor-parallel-size={}", "serve generate"),
    stands(kVllm, "-pp", "N", "", "--pipeline-parallel-size={}", "serve generate"),
    nothing(kVllm, "--disable-log-requests --disable-log-stats --no-enable-log-requests", "[BOOL]",
            "--log-level and --log-prompts say what is logged", "serve"),
    refused(kVllm, "--allowed-origins", "JSON", "give --cors-origin URL, once for each", "serve"),
    refused(kVllm, "--ssl-keyfile --ssl-certfile", "FILE", "a proxy adds TLS (docs/deployment.md)", "serve"),
    nothing(kVllm, "--task --runner", "NAME", "MODEL says what it does", "serve generate"),
    nothing(kVllm, "--max-seq-len-to-capture", "N", "there are no graphs to capture"),
    nothing(kVllm, "--disable-custom-all-reduce", "[BOOL]", "there is one rank"),

    stands(kCt2, "--src", "FILE", "", "{}", "translate"),
    stands(kCt2, "--out", "FILE", "", "--output={}", "translate"),
    stands(kCt2, "--beam-size", "N", "", "--num-beams={}", "translate generate"),
    stands(kCt2, "--num-hypotheses", "N", "", "--n-best={}", "translate"),
    refused(kCt2, "--with-score", "[BOOL]", "--n-best 1 writes the score behind each line", "translate"),
    stands(kCt2, "--intra-threads", "N", "0", ""),
    stands(kCt2, "--intra-threads", "N", "", "--threads={}"),
    stands(kCt2, "--inter-threads", "N", "1", ""),
    refused(kCt2, "--inter-threads", "N", "requests share one batch: --max-num-seqs; serve has --replicas"),
    stands(kCt2, "--max-batch-size", "N", "", "--max-num-seqs={}", "translate"),
    stands(kCt2, "--sampling-topk", "N", "", "--top-k={}", "translate generate"),
    stands(kCt2, "--sampling-topp", "X", "", "--top-p={}", "translate generate"),
    stands(kCt2, "--sampling-temp --sampling-temperature", "X", "", "--temperature={}", "translate generate"),
    stands(kCt2, "--max-decoding-length", "N", "", "--max-tokens={}", "translate generate"),
    stands(kCt2, "--min-decoding-length", "N", "", "--min-tokens={}", "translate generate"),
    stands(kCt2, "--use-vmap", "[BOOL]", "true", "--shortlist=auto", "translate generate"),
    stands(kCt2, "--use-vmap", "[BOOL]", "false", "--shortlist=none", "translate generate"),

    stands(kHf, "--max-new-tokens", "N", "", "--max-tokens={}", "translate generate"),
    refused(kHf, "--max-length", "N", "--max-tokens counts the tokens of the answer alone", "translate generate"),
    stands(kHf, "--src-lang", "CODE", "", "--source-lang={}", "translate generate"),
    stands(kHf, "--tgt-lang", "CODE", "", "--target-lang={}", "translate generate"),
};

bool has_flag(const std::vector<FlagSpec>& table, std::string_view word) {
  const std::string_view name = word.substr(2, word.find('=') == word.npos ? word.npos : word.find('=') - 2);
  return std::any_of(table.begin(), table.end(), [&](const FlagSpec& flag) { return flag.name == name; });
}

bool has_word(std::string_view text, std::string_view word) {
  const std::vector<std::string_view> words = split(text, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::span<const ForeignFlag> all_foreign_flags() { return kRows; }

std::vector<ForeignFlag> foreign_flags(std::string_view verb, bool takes_model, const std::vector<FlagSpec>& table) {
  std::vector<ForeignFlag> rows;
  std::copy_if(std::begin(kRows), std::end(kRows), std::back_inserter(rows), [&](const ForeignFlag& row) {
    if (row.verbs.empty() ? !takes_model : !has_word(row.verbs, verb)) return false;
    const std::vector<std::string_view> words = split(row.ours, ' ');
    return std::all_of(words.begin(), words.end(),
                       [&](std::string_view word) { return !word.starts_with("--") || has_flag(table, word); });
  });
  return rows;
}

}  // namespace transept
