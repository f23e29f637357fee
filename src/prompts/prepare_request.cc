#include "prompts/prepare_request.h"

#include <algorithm>

#include "base/strings.h"

namespace transept {
namespace {

// Points in time are asked for by a prompt that does not forbid them, whoever wrote it.
std::optional<TimestampRules> timestamp_rules(const PreparedRequest& prepared, const PromptProcessor& prompts) {
  const SpeechTokens* tokens = prompts.speech_tokens();
  if (tokens == nullptr || !tokens->no_timestamps.has_value() || prepared.params.eos_token_ids.empty()) {
    return std::nullopt;
  }
  const std::vector<int32_t>& ids = prepared.inputs.prompt_token_ids;
  if (std::ranges::find(ids, *tokens->no_timestamps) != ids.end()) return std::nullopt;
  return tokens->rules(prepared.params.eos_token_ids.front());
}

Status check_structured(const ParsedRequest& request, const PromptProcessor& prompts) {
  if (!prompts.has_structured_answers()) {
    return field_error(
        "return_structured",
        "return_structured: the answers of this model are text alone; those of Donut and Florence-2 have forms");
  }
  if (!prompts.has_tokenizer()) {
    return field_error("return_structured", "return_structured needs a tokenizer, and the model's folder has none");
  }
  if (!request.stream.value_or(false)) return ok_status();
  return field_error("return_structured", "return_structured: a form is that of a whole answer: leave stream out");
}

// The request's own drafts: one list, in one form, and only where tokens are chosen one by one.
Status check_drafts(const ParsedRequest& request, const SamplingParams& params) {
  const bool has_ids = request.sampling.draft_token_ids.has_value();
  const bool has_text = request.prompt_options.prediction.has_value();
  if (!has_ids && !has_text) return ok_status();
  const std::string_view field = has_text ? "prediction" : "draft_token_ids";
  if (params.score_only) return field_error(field, str_cat(field, ": a score generates nothing that could be guessed"));
  if (params.num_beams == 1) return ok_status();
  return field_error(field, str_cat(field, ": drafts and beam search exclude each other (this request has num_beams ",
                                    params.num_beams, "): set num_beams 1, or leave ", field, " out"));
}

// The answer may be elsewhere than it was expected; what lies far behind its end is never looked at.
constexpr size_t kDraftsPerToken = 2;

}  // namespace

Status take_prediction(const PromptProcessor& prompts, ParsedRequest& request) {
  std::optional<std::string>& text = request.prompt_options.prediction;
  if (text.value_or("").empty()) return ok_status();
  if (request.sampling.draft_token_ids.has_value()) {
    return field_error("prediction", "prediction and draft_token_ids are the same thing: give one of them");
  }
  ASSIGN_OR_RETURN(request.sampling.draft_token_ids, prompts.prediction_ids(*text));
  text = "";
  return ok_status();
}

StatusOr<PreparedRequest> prepare_request(const ParsedRequest& request, const PromptProcessor& prompts,
                                          const GenerationConfig& generation, const PrepareOptions& options) {
  if (!request.prompt_options.prediction.value_or("").empty()) {
    ParsedRequest with_ids = request;
    RETURN_IF_ERROR(take_prediction(prompts, with_ids));
    return prepare_request(with_ids, prompts, generation, options);
  }
  PromptProcessor::Options prompt_options(request.prompt_options);
  prompt_options.media = options.media;
  if (request.sampling.stop.has_value() && !request.sampling.stop->empty() && !prompts.has_tokenizer()) {
    return field_error("stop", "stop strings need a tokenizer, and the model's folder has none: use stop_token_ids");
  }
  if (request.sampling.return_alignments.value_or(false) && !prompts.has_alignment_heads()) {
    return field_error("return_alignments", "return_alignments: the model names no heads whose cross-attention aligns");
  }
  if (request.return_structured.value_or(false)) RETURN_IF_ERROR(check_structured(request, prompts));
  PreparedRequest prepared;
  ASSIGN_OR_RETURN(prepared.inputs, options.encoded.has_value()
                                        ? prompts.process_decoder(request.prompt, prompt_options, *options.encoded)
                                        : prompts.process(request.prompt, prompt_options));
  prepared.inputs.cache_salt = request.cache_salt.value_or("");
  ModelLimits limits;
  limits.vocab_size = prompts.vocab_size();
  limits.max_decoder_positions = prompts.limits().max_decoder_len;
  limits.positions_are_set = prompts.decoder_len_is_set();
  limits.decoder_prompt_tokens = static_cast<int32_t>(prepared.inputs.prompt_token_ids.size());
  limits.engine_seed = options.engine_seed;
  limits.request_index = options.request_key;
  limits.score_only = options.score_only;
  ASSIGN_OR_RETURN(prepared.params, resolve(request.sampling, generation, limits));
  prepared.params.score_only = options.score_only;
  RETURN_IF_ERROR(check_drafts(request, prepared.params));
  std::vector<int32_t>& drafts = prepared.params.draft_token_ids;
  drafts.resize(std::min(drafts.size(), kDraftsPerToken * static_cast<size_t>(prepared.params.max_tokens)));
  // A target language that is the decoder's start token itself leaves a prompt of one token; it stands there already.
  if (prepared.inputs.names_language) prepared.params.forced_bos_token_id.reset();
  prepared.params.timestamp_rules = timestamp_rules(prepared, prompts);
  if (request.prompt_options.bad_words.has_value()) {
    ASSIGN_OR_RETURN(auto words, prompts.bad_words_ids(*request.prompt_options.bad_words));
    auto& ids = prepared.params.bad_words_ids;
    ids.insert(ids.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  }
  return prepared;
}

}  // namespace transept
