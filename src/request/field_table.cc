#include "request/field_table.h"

#include <limits>

#include "core/capabilities.h"

namespace transept {
namespace {

constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxStopIds = 1024;
constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxDraftIds = 65536;
constexpr size_t kMaxSuppressed = 2'000'000;  // a whole vocabulary (docs/server.md, Limits)

// The slot of a member of ParsedRequest or of one of its parts.
template <auto member>
FieldSlot sampling(ParsedRequest& request) {
  return &(request.sampling.*member);
}
template <auto member>
FieldSlot prompting(ParsedRequest& request) {
  return &(request.prompt_options.*member);
}
template <auto member>
FieldSlot body(ParsedRequest& request) {
  return &(request.body.*member);
}
template <auto member>
FieldSlot flag(ParsedRequest& request) {
  return &(request.*member);
}
FieldSlot none(ParsedRequest&) { return {}; }

using O = RequestOverrides;
using P = PromptOptions;
using R = ParsedRequest;
using B = BodyFields;
using L = RequestLimits;
namespace at = field_routes;
using K = FieldKind;

constexpr std::string_view kSides[] = {"encoder", "decoder"};
constexpr std::string_view kAudioFormats[] = {"json", "text", "srt", "verbose_json", "vtt"};
constexpr std::string_view kTasks[] = {"transcribe", "translate"};
constexpr std::string_view kGranularities[] = {"word", "segment"};
constexpr std::string_view kIncludeUsage[] = {"include_usage"};
constexpr std::string_view kIncludeProgress[] = {"include_progress"};
constexpr size_t kMaxTexts = 4096;
constexpr size_t kMaxSaltBytes = 1024;
constexpr std::string_view kNoTools = "tools are not supported";

// clang-format off
constexpr FieldSpec kFields[] = {
    {.name = "id", .kind = K::kId, .slot = none, .doc = "Name of the request in its result; the line number where there is none.", .routes = at::kJsonLines},
    {.name = "prompt", .kind = K::kPrompt, .slot = none, .doc = "The encoder's prompt: text, a list of token ids, or an object (see the prompt forms).", .routes = at::kPrompted | at::kEncode, .is_required = true},
    {.name = "decoder_prompt", .kind = K::kPrompt, .slot = none, .doc = "The decoder's prompt, which the answer continues; the model's own start where there is none.", .routes = at::kPrompted},

    {"max_tokens", K::kInt, sampling<&O::max_tokens>, "Tokens to generate at most; the model's own maximum where absent.", 1, kMaxInt},
    {"min_tokens", K::kInt, sampling<&O::min_tokens>, "End tokens and stop_token_ids are forbidden before this many tokens.", 0, kMaxInt},
    {.name = "n", .kind = K::kInt, .slot = sampling<&O::n>, .doc = "Answers to return.", .min = 1, .max = kMaxOutputs, .limit = &L::max_outputs},
    {.name = "best_of", .kind = K::kInt, .slot = sampling<&O::best_of>, .doc = "Answers to generate, of which the n best are returned; at least n.", .min = 1, .max = kMaxBeams, .limit = &L::max_beams},
    {"temperature", K::kNumber, sampling<&O::temperature>, "0 takes the likeliest token; above, tokens are drawn from the distribution, flatter the higher.", 0, 2},
    {"top_p", K::kNumber, sampling<&O::top_p>, "Draw among the likeliest tokens that together reach this probability.", 0, 1, true},
    {"top_k", K::kInt, sampling<&O::top_k>, "Draw among the k likeliest tokens; 0 or -1: among all.", -1, kMaxInt},
    {"min_p", K::kNumber, sampling<&O::min_p>, "Draw among tokens at least this likely relative to the likeliest one.", 0, 1},
    {"seed", K::kInt, sampling<&O::seed>, "Makes drawing repeatable.", static_cast<double>(std::numeric_limits<int64_t>::min()), static_cast<double>(std::numeric_limits<int64_t>::max())},
    {.name = "stop", .kind = K::kStrings, .slot = sampling<&O::stop>, .doc = "Strings at which an answer ends.", .max_items = kMaxStopStrings, .limit = &L::max_stop_strings},
    {"stop_token_ids", K::kTokenIds, sampling<&O::stop_token_ids>, "Token ids at which an answer ends.", 0, 0, false, kMaxStopIds},
    {"ignore_eos", K::kBool, sampling<&O::ignore_eos>, "Go on after the model's end token."},
    {.name = "logprobs", .kind = K::kInt, .slot = sampling<&O::logprobs>, .doc = "Log-probabilities of this many best tokens and the chosen one, at every place.", .min = 0, .max = kMaxLogprobs, .routes = at::kPlainGeneration, .limit = &L::max_logprobs},
    {.name = "prompt_logprobs", .kind = K::kInt, .slot = sampling<&O::prompt_logprobs>, .doc = "The same over the decoder prompt.", .min = 0, .max = kMaxLogprobs, .limit = &L::max_logprobs},
    {"return_alignments", K::kBool, sampling<&O::return_alignments>, "Return for every token the index of the encoder token that it attends to most."},
    {.name = "return_structured", .kind = K::kBool, .slot = flag<&R::return_structured>, .doc = "Return what the answer says as JSON, too, of models whose answers have a form: Donut's fields, Florence-2's boxes.", .routes = at::kJsonLines | at::kAnswers},
    {"presence_penalty", K::kNumber, sampling<&O::presence_penalty>, "Lowers the score of every token that was generated before.", -2, 2},
    {"frequency_penalty", K::kNumber, sampling<&O::frequency_penalty>, "Lowers a token's score each time that it was generated.", -2, 2},
    {"repetition_penalty", K::kNumber, sampling<&O::repetition_penalty>, "Above 1 makes tokens of the decoder prompt and the answer less likely.", 0, 1000, true},
    {"no_repeat_ngram_size", K::kInt, sampling<&O::no_repeat_ngram_size>, "No run of this many tokens comes twice; 0: off.", 0, kMaxInt},
    {"encoder_no_repeat_ngram_size", K::kInt, sampling<&O::encoder_no_repeat_ngram_size>, "No run of this many encoder tokens comes in the answer; 0: off.", 0, kMaxInt},
    {"logit_bias", K::kLogitBias, sampling<&O::logit_bias>, "Token id -> what is added to its score.", -100, 100, false, kMaxBiases},
    {.name = "bad_words", .kind = K::kStrings, .slot = prompting<&P::bad_words>, .doc = "Words that must not be generated.", .max_items = kMaxBadWords, .limit = &L::max_bad_words},
    {"skip_special_tokens", K::kBool, sampling<&O::skip_special_tokens>, "Leave special tokens out of the text (the default)."},
    {"include_stop_str_in_output", K::kBool, sampling<&O::include_stop_str_in_output>, "Keep the stop string or stop token in the text."},
    {"use_beam_search", K::kBool, sampling<&O::use_beam_search>, "Beam search with num_beams, else best_of, else n beams."},
    {.name = "num_beams", .kind = K::kInt, .slot = sampling<&O::num_beams>, .doc = "Beam search with this many beams; 1: none.", .min = 1, .max = kMaxBeams, .limit = &L::max_beams},
    {"length_penalty", K::kNumber, sampling<&O::length_penalty>, "A beam's score is its sum / length ^ length_penalty.", -100, 100},
    {"early_stopping", K::kEarlyStopping, sampling<&O::early_stopping>, "When beam search stops, as in Hugging Face."},
    {.name = "num_return_sequences", .kind = K::kInt, .slot = sampling<&O::num_return_sequences>, .doc = "Another name of n.", .min = 1, .max = kMaxOutputs, .limit = &L::max_outputs},
    {"forced_bos_token_id", K::kTokenId, sampling<&O::forced_bos_token_id>, "The first generated token, where the decoder prompt is one token long."},
    {"forced_eos_token_id", K::kTokenIdOrList, sampling<&O::forced_eos_token_ids>, "The token at the last place that max_tokens allows.", 0, 0, false, kMaxStopIds},
    {.name = "suppress_tokens", .kind = K::kTokenIds, .slot = sampling<&O::suppress_tokens>, .doc = "Token ids that are never generated.", .max_items = kMaxSuppressed, .each_once = true},
    {.name = "begin_suppress_tokens", .kind = K::kTokenIds, .slot = sampling<&O::begin_suppress_tokens>, .doc = "Token ids that are not generated first.", .max_items = kMaxSuppressed, .each_once = true},
    {.name = "allowed_token_ids", .kind = K::kTokenIds, .slot = sampling<&O::allowed_token_ids>, .doc = "Only these token ids are generated.", .max_items = kMaxSuppressed, .each_once = true},
    {.name = "bad_words_ids", .kind = K::kTokenIdLists, .slot = sampling<&O::bad_words_ids>, .doc = "Runs of token ids that must not be generated.", .max_items = kMaxBadWords, .limit = &L::max_bad_words},
    {.name = "draft_token_ids", .kind = K::kTokenIds, .slot = sampling<&O::draft_token_ids>, .doc = "Token ids of the answer that is expected, or of its beginning: guesses that save time where they are right, and never change an answer.", .max_items = kMaxDraftIds},
    {.name = "prediction", .kind = K::kPrediction, .slot = prompting<&P::prediction>, .doc = "The same as text, as OpenAI has it: {\"type\": \"content\", \"content\": TEXT}."},
    {.name = "truncate_prompt_tokens", .kind = K::kInt, .slot = prompting<&P::truncate_prompt_tokens>, .doc = "Keep only the last k tokens of the encoder prompt.", .min = 1, .max = kMaxInt, .routes = at::kEncoderPrompt},
    {.name = "add_special_tokens", .kind = K::kBool, .slot = prompting<&P::add_special_tokens>, .doc = "Give texts the family's special tokens (the default).", .routes = at::kEncoderPrompt},
    {.name = "source_lang", .kind = K::kString, .slot = prompting<&P::source_lang>, .doc = "Language of the encoder prompt, as the model's tokenizer names it.", .routes = at::kEncoderPrompt},
    {"target_lang", K::kString, prompting<&P::target_lang>, "Language of the answer, as the model's tokenizer names it."},
    {.name = "cache_salt", .kind = K::kString, .slot = flag<&R::cache_salt>, .doc = "Nothing that was computed for requests of another salt is used, and nothing of this one for them.", .max_items = kMaxSaltBytes, .routes = at::kGeneration | at::kAudio},
    {.name = "stream", .kind = K::kBool, .slot = flag<&R::stream>,
     .doc = "Send the answer as it comes.", .routes = at::kJsonLines, .refusal = "streaming needs the server; a line of results is written whole"},

    {.name = "language", .kind = K::kString, .slot = prompting<&P::language>, .doc = "Language of the speech, by code or English name; detected where absent.",
     .models = FieldModels::kSpeech},
    {.name = "task", .kind = K::kString, .slot = prompting<&P::task>, .doc = "transcribe (the default), or translate into English.",
     .models = FieldModels::kSpeech},
    {.name = "timestamps", .kind = K::kBool, .slot = prompting<&P::timestamps>, .doc = "Tokens of points in time in the answer.",
     .models = FieldModels::kSpeech},
    {.name = "num_beam_groups", .kind = K::kAny, .slot = none, .doc = "Diverse beam search.", .min = 1,
     .refusal = feature_row(Feature::kDiverseBeamSearch).refusal},
    {.name = "diversity_penalty", .kind = K::kAny, .slot = none, .doc = "Diverse beam search.",
     .refusal = feature_row(Feature::kDiverseBeamSearch).refusal},
    {.name = "response_format", .kind = K::kAny, .slot = none, .doc = "Structured output.", .routes = at::kPlainGeneration,
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_json", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_regex", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_choice", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_grammar", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},

    // HTTP alone, from here on.
    {.name = "model", .kind = K::kText, .slot = body<&B::model>, .doc = "A name that the model is served by; the served model where absent or empty.", .routes = at::kHttp},
    {.name = "user", .kind = K::kIgnored, .slot = none, .doc = "Not looked at.", .routes = at::kHttp},
    {.name = "stream", .kind = K::kBool, .slot = flag<&R::stream>, .doc = "Send the answer as it comes, as server-sent events.", .routes = at::kAnswers},
    {.name = "stream", .kind = K::kBool, .slot = flag<&R::stream>, .doc = "Send the answer as server-sent events: the segments of a window when the window is done. With json, text and verbose_json.", .routes = at::kAudio},
    {.name = "stream_options", .kind = K::kStreamOptions, .slot = body<&B::include_usage>, .doc = "With stream: include_usage adds a last chunk with the usage.", .routes = at::kAnswers, .words = kIncludeUsage},
    {.name = "stream_options", .kind = K::kStreamOptions, .slot = body<&B::include_progress>, .doc = "With stream and verbose_json: include_progress adds events that tell how much of the audio is done.", .routes = at::kAudio, .words = kIncludeProgress},
    {.name = "echo", .kind = K::kBool, .slot = body<&B::echo>, .doc = "Put the decoder prompt's text before the answer.", .routes = at::kCompletions},
    {.name = "suffix", .kind = K::kAny, .slot = none, .doc = "Text behind the answer.", .routes = at::kCompletions, .refusal = "text behind the answer is not supported"},
    {.name = "decoder_prompt", .kind = K::kAny, .slot = none, .doc = "The decoder's prompt.", .routes = at::kTranslate, .refusal = "a translation begins as the model begins it; /v1/completions takes a decoder_prompt"},
    {.name = "text", .kind = K::kTexts, .slot = body<&B::texts>, .doc = "What is to be translated: a text, or a list of them.", .max_items = kMaxTexts, .routes = at::kTranslate, .is_required = true},
    {.name = "prompt", .kind = K::kText, .slot = body<&B::text>, .doc = "The text to be tokenised.", .routes = at::kTokenize, .is_required = true},
    {.name = "add_special_tokens", .kind = K::kBool, .slot = prompting<&P::add_special_tokens>, .doc = "Give the text the family's special tokens (the default).", .routes = at::kTokenize},
    {.name = "side", .kind = K::kWord, .slot = body<&B::side>, .doc = "Whose vocabulary, where encoder and decoder have their own.", .routes = at::kTokenize, .words = kSides},
    {.name = "source_lang", .kind = K::kString, .slot = prompting<&P::source_lang>, .doc = "Language of the text, as the model's tokenizer names it.", .routes = at::kTokenize},
    {.name = "target_lang", .kind = K::kString, .slot = prompting<&P::target_lang>, .doc = "Language of the answer, as the model's tokenizer names it.", .routes = at::kTokenize},
    {.name = "return_token_strs", .kind = K::kBool, .slot = body<&B::return_token_strs>, .doc = "Return how the vocabulary spells each token, too.", .routes = at::kTokenize},
    {.name = "tokens", .kind = K::kTokenIds, .slot = body<&B::tokens>, .doc = "Token ids to be made text.", .max_items = kMaxSuppressed, .routes = at::kDetokenize, .is_required = true},
    {.name = "skip_special_tokens", .kind = K::kBool, .slot = sampling<&O::skip_special_tokens>, .doc = "Leave special tokens out of the text (the default).", .routes = at::kDetokenize},

    {.name = "encoded_inputs", .kind = K::kIgnored, .slot = none, .doc = "Of a proxy of the same fleet alone: where the rows of the prompts are. Refused from others.", .routes = at::kAnswers | at::kScore | at::kTranslate},
    {.name = "consumer", .kind = K::kString, .slot = body<&B::consumer>, .doc = "The decode instance that gets the encoder's output, by its --instance-name.", .routes = at::kEncode, .is_required = true},
    {.name = "request_id", .kind = K::kString, .slot = body<&B::request_id>, .doc = "Name of the request at the decode instance: 1 to 128 of letters, digits and . _ : -; the X-Request-Id where absent.", .routes = at::kEncode},
    {.name = "attempt", .kind = K::kInt, .slot = body<&B::attempt>, .doc = "How often this input was sent under this name before.", .min = 0, .max = kMaxInt, .routes = at::kEncode},
    {.name = "timeout", .kind = K::kNumber, .slot = body<&B::timeout>, .doc = "Seconds that the encode and its sending may take; 60 where absent.", .min = 0, .max = 86400, .min_excluded = true, .routes = at::kEncode},

    {.name = "messages", .kind = K::kMessages, .slot = none, .doc = "The turns of the chat: role and content, a text or a list of parts.", .routes = at::kChat, .is_required = true},
    {.name = "logprobs", .kind = K::kBool, .slot = body<&B::with_logprobs>, .doc = "Log-probabilities of the answer's tokens.", .routes = at::kChat},
    {.name = "top_logprobs", .kind = K::kInt, .slot = body<&B::top_logprobs>, .doc = "With logprobs: those of this many best tokens at every place, too.", .min = 0, .max = kMaxLogprobs, .routes = at::kChat, .limit = &L::max_logprobs},
    {.name = "max_completion_tokens", .kind = K::kInt, .slot = body<&B::max_completion_tokens>, .doc = "Another name of max_tokens.", .min = 1, .max = kMaxInt, .routes = at::kChat},
    {.name = "prompt", .kind = K::kAny, .slot = none, .doc = "A prompt.", .routes = at::kChat, .refusal = "a chat has messages; /v1/completions takes a prompt"},
    {.name = "decoder_prompt", .kind = K::kAny, .slot = none, .doc = "The decoder's prompt.", .routes = at::kChat, .refusal = "a chat has messages; /v1/completions takes a decoder_prompt"},
    {.name = "response_format", .kind = K::kAny, .slot = none, .doc = "Structured output.", .routes = at::kChat,
     .refusal = feature_row(Feature::kStructuredOutput).refusal, .accepted = R"({"type": "text"})"},
    {.name = "tools", .kind = K::kAny, .slot = none, .doc = "Functions that may be called.", .routes = at::kChat, .refusal = kNoTools},
    {.name = "functions", .kind = K::kAny, .slot = none, .doc = "Functions that may be called.", .routes = at::kChat, .refusal = kNoTools},
    {.name = "tool_choice", .kind = K::kAny, .slot = none, .doc = "Which function is called.", .routes = at::kChat, .refusal = kNoTools, .accepted = R"("none")"},
    {.name = "function_call", .kind = K::kAny, .slot = none, .doc = "Which function is called.", .routes = at::kChat, .refusal = kNoTools, .accepted = R"("none")"},
    {.name = "modalities", .kind = K::kAny, .slot = none, .doc = "What the answer is made of.", .routes = at::kChat, .refusal = "answers are text", .accepted = R"(["text"])"},
    {.name = "audio", .kind = K::kAny, .slot = none, .doc = "The voice of an answer.", .routes = at::kChat, .refusal = "answers are text"},
    {.name = "web_search_options", .kind = K::kAny, .slot = none, .doc = "A search before the answer.", .routes = at::kChat, .refusal = "nothing is searched for"},
    {.name = "chat_template", .kind = K::kAny, .slot = none, .doc = "How messages become a prompt.", .routes = at::kChat, .refusal = "the template is the server's: `transept serve --chat-template FILE`"},
    {.name = "chat_template_kwargs", .kind = K::kAny, .slot = none, .doc = "Variables of the chat template.", .routes = at::kChat, .refusal = "variables of the template cannot be given"},

    {.name = "file", .kind = K::kFile, .slot = none, .doc = "The audio: a file of any container and coding that docs/transcribe.md lists.", .routes = at::kAudio, .is_required = true},
    {.name = "language", .kind = K::kString, .slot = prompting<&P::language>, .doc = "Language of the speech, by code or English name; detected where absent.", .routes = at::kAudio},
    {.name = "prompt", .kind = K::kText, .slot = body<&B::text>, .doc = "What was said before, or how names are spelled: text before the first window.", .routes = at::kAudio},
    {.name = "response_format", .kind = K::kWord, .slot = body<&B::response_format>, .doc = "The form of the answer.", .routes = at::kAudio, .words = kAudioFormats},
    {.name = "temperature", .kind = K::kNumber, .slot = sampling<&O::temperature>, .doc = "0: the likeliest text, and higher temperatures where that fails; above: this temperature alone.", .min = 0, .max = 1, .routes = at::kAudio},
    {.name = "timestamp_granularities", .kind = K::kWords, .slot = body<&B::timestamp_granularities>, .doc = "What has times in verbose_json: word, segment (the default) or both.", .max_items = 2, .routes = at::kAudio, .words = kGranularities},
    {.name = "chunking_strategy", .kind = K::kChunking, .slot = none, .doc = "auto, or an object with type server_vad: cut long audio at pauses, windows of it running together.", .routes = at::kAudio},
    {.name = "vad_filter", .kind = K::kBool, .slot = body<&B::vad_filter>, .doc = "true: cut at pauses, as chunking_strategy does. false: listen for no pauses, and decode silence, too.", .routes = at::kAudio},
    {.name = "hotwords", .kind = K::kText, .slot = body<&B::hotwords>, .doc = "Words to expect: text before the previous text of every window.", .routes = at::kAudio},
    {.name = "vad_filter", .kind = K::kBool, .slot = body<&B::vad_filter>, .doc = "false: answer audio without speech by what the model makes of it, not by an empty text.", .models = FieldModels::kSpeech, .routes = at::kAnswers},
    {.name = "vad_parameters", .kind = K::kAny, .slot = none, .doc = "Of the voice detector.", .routes = at::kAudio, .refusal = "the voice detector has no parameters (docs/transcribe.md)"},
    {.name = "task", .kind = K::kWord, .slot = prompting<&P::task>, .doc = "translate: into English, as /v1/audio/translations does.", .routes = at::kAudio, .words = kTasks},
    {.name = "condition_on_previous_text", .kind = K::kBool, .slot = body<&B::condition_on_previous_text>, .doc = "false: a window is not told the text before it.", .routes = at::kAudio},
    {.name = "patience", .kind = K::kNumber, .slot = body<&B::patience>, .doc = "The beam search ends when beams * patience answers are complete; 1 where absent. Needs beams.", .min = 0, .max = 100, .min_excluded = true, .routes = at::kAudio},
    {.name = "best_of", .kind = K::kInt, .slot = sampling<&O::best_of>, .doc = "Answers that are drawn at temperatures above 0, of which the likeliest is taken; 5 where absent.", .min = 1, .max = kMaxBeams, .routes = at::kAudio, .limit = &L::max_beams},
    {.name = "word_timestamps", .kind = K::kBool, .slot = body<&B::word_timestamps>, .doc = "true: the same as timestamp_granularities with word.", .routes = at::kAudio},
    {.name = "beam_size", .kind = K::kInt, .slot = body<&B::beam_size>, .doc = "Beams of the search at temperature 0; 1: the greedy search. Where absent the model's own num_beams, which is 1 in Whisper's files; transept transcribe takes 5, as openai-whisper's command line does.", .min = 1, .max = kMaxBeams, .routes = at::kAudio, .limit = &L::max_beams},
    {.name = "num_beams", .kind = K::kInt, .slot = sampling<&O::num_beams>, .doc = "Another name of beam_size.", .min = 1, .max = kMaxBeams, .routes = at::kAudio, .limit = &L::max_beams},
    {.name = "include", .kind = K::kAny, .slot = none, .doc = "Log-probabilities.", .routes = at::kAudio, .refusal = "log-probabilities of a transcript are not supported; verbose_json has avg_logprob of each segment"},
    {.name = "keywords", .kind = K::kAny, .slot = none, .doc = "Words to listen for.", .routes = at::kAudio, .refusal = "lists of words are not supported; put them into hotwords"},
    {.name = "languages", .kind = K::kAny, .slot = none, .doc = "Possible languages.", .routes = at::kAudio, .refusal = "a list of languages is not supported; give one language, or none"},
    {.name = "known_speaker_names", .kind = K::kAny, .slot = none, .doc = "Speakers.", .routes = at::kAudio, .refusal = "telling speakers apart is not supported"},
    {.name = "known_speaker_references", .kind = K::kAny, .slot = none, .doc = "Speakers' voices.", .routes = at::kAudio, .refusal = "telling speakers apart is not supported"},
};
// clang-format on

std::string in_quotes(std::span<const std::string_view> words) {
  std::vector<std::string> all;
  for (const std::string_view word : words) all.push_back(str_cat('"', word, '"'));
  return join(all, ", ");
}

std::string at_most(const FieldSpec& field) { return str_cat("at most ", field.max_items); }

std::string range(const FieldSpec& field) {
  return str_cat(field.min_excluded ? "above " : "from ", field.min, field.min_excluded ? " and up to " : " to ",
                 field.max);
}

// Bounds of whole numbers, the widest of which say nothing.
std::string whole_range(const FieldSpec& field) {
  if (field.min <= -kMaxInt && field.max >= kMaxInt) return "";
  return field.max >= kMaxInt ? str_cat(" from ", static_cast<int64_t>(field.min), " on") : str_cat(" ", range(field));
}

}  // namespace

// Rows of JSON lines stand before those of HTTP alone.
std::span<const FieldSpec> request_fields() {
  size_t count = 0;
  while (count < std::size(kFields) && (kFields[count].routes & at::kJsonLines) != 0) ++count;
  return std::span(kFields).first(count);
}

std::vector<const FieldSpec*> fields_of(FieldRoutes routes) {
  std::vector<const FieldSpec*> found;
  for (const FieldSpec& field : kFields) {
    if ((field.routes & routes) != 0) found.push_back(&field);
  }
  return found;
}

const FieldSpec* find_field(std::string_view name, FieldRoutes routes) {
  for (const FieldSpec& field : kFields) {
    if (field.name == name && (field.routes & routes) != 0) return &field;
  }
  return nullptr;
}

FieldSpec with_limits(const FieldSpec& field, const RequestLimits& limits) {
  FieldSpec limited = field;
  if (field.limit == nullptr) return limited;
  if (field.max_items > 0) {
    limited.max_items = static_cast<size_t>(limits.*field.limit);
  } else {
    limited.max = limits.*field.limit;
  }
  return limited;
}

std::string describe(const FieldSpec& field) {
  switch (field.kind) {
    case K::kId: return "a string or a number";
    case K::kPrompt: return "a text, a list of token ids, or an object";
    case K::kMessages: return "a list of messages";
    case K::kInt: return str_cat("a whole number", whole_range(field));
    case K::kNumber: return str_cat("a number ", range(field));
    case K::kBool: return "true or false";
    case K::kString:
      return str_cat("a string that is not empty",
                     field.max_items == 0 ? "" : str_cat(", of ", at_most(field), " bytes"));
    case K::kText: return "a string";
    case K::kTexts: return str_cat("a string or a list of 1 to ", field.max_items, " strings");
    case K::kWord: return str_cat("one of ", in_quotes(field.words));
    case K::kWords: return str_cat("a list of ", in_quotes(field.words));
    case K::kStrings: return str_cat("a string or a list of ", at_most(field), " strings, none of them empty");
    case K::kTokenId: return "a token id";
    case K::kTokenIds: return str_cat("a list of ", at_most(field), " token ids");
    case K::kTokenIdOrList: return str_cat("a token id or a list of ", at_most(field));
    case K::kTokenIdLists:
      return str_cat("a list of ", at_most(field), " lists of 1 to ", kMaxBadWordTokens, " token ids");
    case K::kLogitBias:
      return str_cat("an object of ", at_most(field), " token ids, each with a number ", range(field));
    case K::kEarlyStopping: return "true, false or \"never\"";
    case K::kPrediction: return "an object with type \"content\" and content, a text or a list of parts of text";
    case K::kAny: return "nothing that is supported";
    case K::kIgnored: return "anything";
    case K::kStreamOptions: return "an object";
    case K::kChunking: return "\"auto\" or an object with type \"server_vad\"";
    case K::kFile: return "a file";
  }
  return "";
}

}  // namespace transept
