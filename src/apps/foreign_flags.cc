#include "apps/foreign_flags.h"

#include <algorithm>
#include <iterator>

#include "apps/foreign_rows.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr std::string_view kWhisper = "openai-whisper", kFaster = "faster-whisper", kCpp = "whisper.cpp";
constexpr std::string_view kCt2 = "CTranslate2", kHf = "transformers";
constexpr std::string_view kSpeech = "transcribe";

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
    stands(kFaster, "--cpu-threads", "N", "", "--threads={}"),
    nothing(kFaster, "--print-colors --pc", "[BOOL]", "segments have no colours", kSpeech),
    refused(kFaster, "--repetition-penalty --no-repeat-ngram-size", "X",
            "a window that repeats itself is decoded again: --compression-ratio-threshold", kSpeech),
    refused(kFaster, "--chunk-length", "N", "a window has the model's own length", kSpeech),
    refused(kFaster, "--vad-onset --vad-samples-overlap", "X", kCutAtPauses, kSpeech),
    nothing(kFaster, "--device-index", "N", "there is no GPU"),
    nothing(kFaster, "--pretty-json", "[BOOL]", "JSON is written on one line, as openai-whisper writes it", kSpeech),
    refused(kFaster, "--local-files-only", "[BOOL]", "set HF_HUB_OFFLINE=1", "", "true"),
    stands(kFaster, "--local-files-only", "[BOOL]", "false", ""),
    stands(kFaster, "--cache-directory", "DIR", "", "--download-dir={}"),
    stands(kFaster, "--multilingual", "[BOOL]", "false", "", kSpeech),
    refused(kFaster, "--multilingual", "[BOOL]", "a file has one language: cut it, or give --clip-timestamps", kSpeech,
            "true"),
    refused(kFaster, "--live-transcribe", "[BOOL]", "give --live and pipe a microphone into standard input", kSpeech,
            "true"),
    stands(kFaster, "--live-transcribe", "[BOOL]", "false", "", kSpeech),
    refused(kFaster, "--live-volume-threshold --live-input-device --live-input-device-sample-rate", "X",
            "--live reads standard input; --live-format says what comes", kSpeech),
    refused(kFaster, "--prompt-reset-on-temperature", "X",
            "a text above temperature 0.5 is no prompt, as in "
            "openai-whisper",
            kSpeech),
    stands(kFaster, "--suppress-blank", "[BOOL]", "true", "", kSpeech),
    refused(kFaster, "--suppress-blank", "[BOOL]", "blank beginnings are always suppressed", kSpeech, "false"),
    refused(kFaster, "--max-initial-timestamp --max-new-tokens", "X", "windows are decoded as openai-whisper does",
            kSpeech),
    refused(kFaster, "--language-detection-threshold --language-detection-segments", "X",
            "the first window decides; --language names it", kSpeech),
    nothing(kFaster, "--log-progress", "[BOOL]", "progress is shown on a terminal", kSpeech),
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
    stands(kCpp, "-t", "N", "", "--threads={}"),
    stands(kCpp, "-p --processors", "N", "1", "", kSpeech),
    refused(kCpp, "-p --processors", "N", "--mode batched runs --batch-size windows of a file at once", kSpeech),
    stands(kCpp, "-tr --translate", "", "", "--task=translate", kSpeech),
    stands(kCpp, "-ml --max-len", "N", "0", "", kSpeech),
    stands(kCpp, "-ml --max-len", "N", "", "--word-timestamps --max-line-width={} --max-line-count=1", kSpeech),
    stands(kCpp, "-sow --split-on-word", "", "", "", kSpeech),
    stands(kCpp, "-bo", "N", "", "--best-of={}", kSpeech),
    stands(kCpp, "-bs", "N", "", "--beam-size={}", kSpeech),
    stands(kCpp, "-nt --no-timestamps", "", "", "--without-timestamps", kSpeech),
    nothing(kCpp, "-pp --print-progress", "", "progress is shown on a terminal", kSpeech),
    nothing(kCpp, "-pc -ps --print-special", "", "segments are printed as plain text", kSpeech),
    stands(kCpp, "-np --no-prints", "", "", "--log-level=warning", kSpeech),
    stands(kCpp, "-tp", "X", "", "--temperature={}", kSpeech),
    stands(kCpp, "-tpi --temperature-inc", "X", "0", "--temperature-increment-on-fallback=none", kSpeech),
    stands(kCpp, "-tpi --temperature-inc", "X", "0.0", "--temperature-increment-on-fallback=none", kSpeech),
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
    stands(kCpp, "-ot --offset-t -d --duration", "MS", "0", "", kSpeech),
    refused(kCpp, "-ot --offset-t -d --duration", "MS", kClips, kSpeech),
    refused(kCpp, "-di --diarize -tdrz --tinydiarize", "", kNoSpeakers, kSpeech),
    refused(kCpp, "-dl --detect-language", "", "--language none detects the language, and transcribes", kSpeech),
    stands(kCpp, "-ng --no-gpu", "", "", ""),
    stands(kCpp, "-on --offset-n", "N", "0", "", kSpeech),
    refused(kCpp, "-on --offset-n", "N", "subtitles are numbered from 1", kSpeech),
    nothing(kCpp, "-wt --word-thold", "X", "word times come from attention, without a threshold", kSpeech),
    nothing(kCpp, "-debug --debug-mode", "", "--log-level info tells more", kSpeech),
    nothing(kCpp, "-fp --font-path", "FILE", "no karaoke scripts are written", kSpeech),
    nothing(kCpp, "-oved --ov-e-device", "NAME", "there is no OpenVINO", kSpeech),
    nothing(kCpp, "-dev", "N", "there is no GPU"),
    nothing(kCpp, "--device", "N", "there is no GPU", kSpeech, "[0-9]"),
    nothing(kCpp, "--print-confidence", "", "segments have no colours; JSON has probabilities of words", kSpeech),
    nothing(kCpp, "-fa --flash-attn -nfa --no-flash-attn", "", "--attention-backend names the kernels of attention"),
    stands(kCpp, "--prompt", "TEXT", "", "--initial-prompt={}", kSpeech),
    refused(kCpp, "-sns --suppress-nst", "", "--suppress-tokens takes the ids; its default is the model's list",
            kSpeech),
    refused(kCpp, "--suppress-regex", "TEXT", "--suppress-tokens takes ids", kSpeech),
    refused(kCpp, "--grammar --grammar-rule --grammar-penalty", "TEXT", "structured output is not supported", kSpeech),
    stands(kCpp, "-dtw --dtw", "MODEL", "", "--word-timestamps", kSpeech),
    stands(kCpp, "--vad", "", "", "--vad-filter", kSpeech),
    refused(kCpp, "-vt -vspd -vsd -vmsd -vp -vo", "X", kCutAtPauses, kSpeech),
    nothing(kCpp, "-vm --vad-model", "FILE", "the voice detector is built in", kSpeech),
    refused(kCpp, "-ls --log-score", "", "--output-format json has avg_logprob of every segment", kSpeech),

    stands(kCt2, "--src", "FILE", "", "{}", "translate"),
    stands(kCt2, "--out", "FILE", "", "--output={}", "translate"),
    stands(kCt2, "--beam-size", "N", "", "--num-beams={}", "translate generate"),
    stands(kCt2, "--num-hypotheses", "N", "", "--n-best={}", "translate"),
    refused(kCt2, "--with-score", "[BOOL]", "--n-best 1 writes the score behind each line", "translate"),
    stands(kCt2, "--intra-threads", "N", "", "--threads={}"),
    stands(kCt2, "--inter-threads", "N", "1", ""),
    refused(kCt2, "--inter-threads", "N", "requests share one batch: --max-num-seqs; serve has --replicas"),
    stands(kCt2, "--max-batch-size --batch-size", "N", "", "--max-num-seqs={}", "translate"),
    nothing(kCt2, "--read-batch-size --max-queued-batches", "N", "lines are read as there is room for them",
            "translate"),
    nothing(kCt2, "--batch-type --read-batch-type", "TYPE", "sequences join and leave the batch at each step",
            "translate"),
    nothing(kCt2, "--cuda-compute-type --device-index", "X", "there is no GPU", "translate"),
    stands(kCt2, "--cpu-core-offset", "N", "-1", "", "translate"),
    refused(kCt2, "--cpu-core-offset", "N", "--cpu-affinity LIST names the processors", "translate"),
    refused(kCt2, "--cpu-compute-type", "TYPE", "give --dtype and --quantization", "translate"),
    nothing(kCt2, "--log-throughput --log-profiling", "[BOOL]", "--stats-json FILE has rates", "translate"),
    stands(kCt2, "--task", "NAME", "translate", "", "translate"),
    refused(kCt2, "--task", "NAME", "transept generate MODEL --score gives log-probabilities of answers", "translate",
            "score"),
    refused(kCt2, "--tgt", "FILE", "transept generate MODEL --score gives log-probabilities of answers", "translate"),
    refused(kCt2, "--patience", "X", "--early-stopping says when beams end", "translate"),
    refused(kCt2, "--coverage-penalty", "X", "beams are ranked with --length-penalty alone", "translate"),
    refused(kCt2, "--prefix-bias-beta", "X", "--decoder-prompt TEXT is how every translation begins", "translate"),
    refused(kCt2, "--end-token", "TOKEN", "--stop-token-ids takes ids", "translate"),
    refused(kCt2, "--suppress-sequences", "TEXT", "--bad-words takes them", "translate"),
    refused(kCt2, "--disable-unk --replace-unknowns", "[BOOL]",
            "the tokenizers spell every word; --suppress-tokens takes the id of <unk>", "translate"),
    refused(kCt2, "--max-input-length", "N", "longer lines are errors; --truncate-prompt-tokens keeps their ends",
            "translate"),
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

std::span<const ForeignFlag> all_foreign_flags() {
  static const std::vector<ForeignFlag> rows = [] {
    std::vector<ForeignFlag> all(std::begin(kRows), std::end(kRows));
    // By tool, and in the order of docs/migrate.
    const auto at = std::ranges::find(all, kCt2, &ForeignFlag::tool);
    all.insert(at, vllm_flags().begin(), vllm_flags().end());
    return all;
  }();
  return rows;
}

std::vector<ForeignFlag> foreign_flags(std::string_view verb, bool takes_model, const std::vector<FlagSpec>& table) {
  std::vector<ForeignFlag> rows;
  std::ranges::copy_if(all_foreign_flags(), std::back_inserter(rows), [&](const ForeignFlag& row) {
    if (row.verbs.empty() ? !takes_model : !has_word(row.verbs, verb)) return false;
    const std::vector<std::string_view> words = split(row.ours, ' ');
    return std::all_of(words.begin(), words.end(),
                       [&](std::string_view word) { return !word.starts_with("--") || has_flag(table, word); });
  });
  return rows;
}

}  // namespace transept
