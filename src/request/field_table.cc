#include "request/field_table.h"

#include <limits>

#include "core/capabilities.h"

namespace transept {
namespace {

constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxStopIds = 1024;
constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxSuppressed = 2'000'000;  // a whole vocabulary (API.md, Limits)

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
FieldSlot flag(ParsedRequest& request) {
  return &(request.*member);
}
FieldSlot none(ParsedRequest&) { return {}; }

using O = RequestOverrides;
using P = PromptOptions;
using R = ParsedRequest;
using K = FieldKind;

// clang-format off
constexpr FieldSpec kFields[] = {
    {"id", K::kId, none, "Name of the request in its result; the line number where there is none."},
    {"prompt", K::kPrompt, none, "The encoder's prompt: text, a list of token ids, or an object (see the prompt forms)."},
    {"decoder_prompt", K::kPrompt, none, "The decoder's prompt, which the answer continues; the model's own start where there is none."},

    {"max_tokens", K::kInt, sampling<&O::max_tokens>, "Tokens to generate at most; the model's own maximum where absent.", 1, kMaxInt},
    {"min_tokens", K::kInt, sampling<&O::min_tokens>, "End tokens and stop_token_ids are forbidden before this many tokens.", 0, kMaxInt},
    {"n", K::kInt, sampling<&O::n>, "Answers to return.", 1, kMaxOutputs},
    {"best_of", K::kInt, sampling<&O::best_of>, "Answers to generate, of which the n best are returned; at least n.", 1, kMaxBeams},
    {"temperature", K::kNumber, sampling<&O::temperature>, "0 takes the likeliest token; above, tokens are drawn from the distribution, flatter the higher.", 0, 2},
    {"top_p", K::kNumber, sampling<&O::top_p>, "Draw among the likeliest tokens that together reach this probability.", 0, 1, true},
    {"top_k", K::kInt, sampling<&O::top_k>, "Draw among the k likeliest tokens; 0 or -1: among all.", -1, kMaxInt},
    {"min_p", K::kNumber, sampling<&O::min_p>, "Draw among tokens at least this likely relative to the likeliest one.", 0, 1},
    {"seed", K::kInt, sampling<&O::seed>, "Makes drawing repeatable.", static_cast<double>(std::numeric_limits<int64_t>::min()), static_cast<double>(std::numeric_limits<int64_t>::max())},
    {"stop", K::kStrings, sampling<&O::stop>, "Strings at which an answer ends.", 0, 0, false, kMaxStopStrings},
    {"stop_token_ids", K::kTokenIds, sampling<&O::stop_token_ids>, "Token ids at which an answer ends.", 0, 0, false, kMaxStopIds},
    {"ignore_eos", K::kBool, sampling<&O::ignore_eos>, "Go on after the model's end token."},
    {"logprobs", K::kInt, sampling<&O::logprobs>, "Log-probabilities of this many best tokens and the chosen one, at every place.", 0, kMaxLogprobs},
    {"prompt_logprobs", K::kInt, sampling<&O::prompt_logprobs>, "The same over the decoder prompt.", 0, kMaxLogprobs},
    {"return_alignments", K::kBool, sampling<&O::return_alignments>, "Return for every token the index of the encoder token that it attends to most."},
    {"presence_penalty", K::kNumber, sampling<&O::presence_penalty>, "Lowers the score of every token that was generated before.", -2, 2},
    {"frequency_penalty", K::kNumber, sampling<&O::frequency_penalty>, "Lowers a token's score each time that it was generated.", -2, 2},
    {"repetition_penalty", K::kNumber, sampling<&O::repetition_penalty>, "Above 1 makes tokens of the decoder prompt and the answer less likely.", 0, 1000, true},
    {"no_repeat_ngram_size", K::kInt, sampling<&O::no_repeat_ngram_size>, "No run of this many tokens comes twice; 0: off.", 0, kMaxInt},
    {"encoder_no_repeat_ngram_size", K::kInt, sampling<&O::encoder_no_repeat_ngram_size>, "No run of this many encoder tokens comes in the answer; 0: off.", 0, kMaxInt},
    {"logit_bias", K::kLogitBias, sampling<&O::logit_bias>, "Token id -> what is added to its score.", -100, 100, false, kMaxBiases},
    {"bad_words", K::kStrings, prompting<&P::bad_words>, "Words that must not be generated.", 0, 0, false, kMaxBadWords},
    {"skip_special_tokens", K::kBool, sampling<&O::skip_special_tokens>, "Leave special tokens out of the text (the default)."},
    {"include_stop_str_in_output", K::kBool, sampling<&O::include_stop_str_in_output>, "Keep the stop string or stop token in the text."},
    {"use_beam_search", K::kBool, sampling<&O::use_beam_search>, "Beam search with num_beams, else best_of, else n beams."},
    {"num_beams", K::kInt, sampling<&O::num_beams>, "Beam search with this many beams; 1: none.", 1, kMaxBeams},
    {"length_penalty", K::kNumber, sampling<&O::length_penalty>, "A beam's score is its sum / length ^ length_penalty.", -100, 100},
    {"early_stopping", K::kEarlyStopping, sampling<&O::early_stopping>, "When beam search stops, as in Hugging Face."},
    {"num_return_sequences", K::kInt, sampling<&O::num_return_sequences>, "Another name of n.", 1, kMaxOutputs},
    {"forced_bos_token_id", K::kTokenId, sampling<&O::forced_bos_token_id>, "The first generated token, where the decoder prompt is one token long."},
    {"forced_eos_token_id", K::kTokenIdOrList, sampling<&O::forced_eos_token_ids>, "The token at the last place that max_tokens allows.", 0, 0, false, kMaxStopIds},
    {"suppress_tokens", K::kTokenIds, sampling<&O::suppress_tokens>, "Token ids that are never generated.", 0, 0, false, kMaxSuppressed},
    {"begin_suppress_tokens", K::kTokenIds, sampling<&O::begin_suppress_tokens>, "Token ids that are not generated first.", 0, 0, false, kMaxSuppressed},
    {"allowed_token_ids", K::kTokenIds, sampling<&O::allowed_token_ids>, "Only these token ids are generated.", 0, 0, false, kMaxSuppressed},
    {"bad_words_ids", K::kTokenIdLists, sampling<&O::bad_words_ids>, "Runs of token ids that must not be generated.", 0, 0, false, kMaxBadWords},
    {"truncate_prompt_tokens", K::kInt, prompting<&P::truncate_prompt_tokens>, "Keep only the last k tokens of the encoder prompt.", 1, kMaxInt},
    {"add_special_tokens", K::kBool, prompting<&P::add_special_tokens>, "Give texts the family's special tokens (the default)."},
    {"source_lang", K::kString, prompting<&P::source_lang>, "Language of the encoder prompt, as the model's tokenizer names it."},
    {"target_lang", K::kString, prompting<&P::target_lang>, "Language of the answer, as the model's tokenizer names it."},
    {.name = "stream", .kind = K::kBool, .slot = flag<&R::stream>,
     .doc = "Send the answer as it comes.", .refusal = "streaming needs the server; a line of results is written whole"},

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
    {.name = "response_format", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_json", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_regex", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_choice", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
    {.name = "guided_grammar", .kind = K::kAny, .slot = none, .doc = "Structured output.",
     .refusal = feature_row(Feature::kStructuredOutput).refusal},
};
// clang-format on

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

std::span<const FieldSpec> request_fields() { return kFields; }

const FieldSpec* find_field(std::string_view name) {
  for (const FieldSpec& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::string describe(const FieldSpec& field) {
  switch (field.kind) {
    case K::kId: return "a string or a number";
    case K::kPrompt: return "a text, a list of token ids, or an object";
    case K::kInt: return str_cat("a whole number", whole_range(field));
    case K::kNumber: return str_cat("a number ", range(field));
    case K::kBool: return "true or false";
    case K::kString: return "a string that is not empty";
    case K::kStrings: return str_cat("a string or a list of ", at_most(field), " strings, none of them empty");
    case K::kTokenId: return "a token id";
    case K::kTokenIds: return str_cat("a list of ", at_most(field), " token ids");
    case K::kTokenIdOrList: return str_cat("a token id or a list of ", at_most(field));
    case K::kTokenIdLists:
      return str_cat("a list of ", at_most(field), " lists of 1 to ", kMaxBadWordTokens, " token ids");
    case K::kLogitBias:
      return str_cat("an object of ", at_most(field), " token ids, each with a number ", range(field));
    case K::kEarlyStopping: return "true, false or \"never\"";
    case K::kAny: return "nothing that is supported";
  }
  return "";
}

}  // namespace transept
