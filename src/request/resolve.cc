#include "request/resolve.h"

#include <algorithm>

#include "request/field_table.h"

namespace transept {
namespace {

// What a request and the model's files come to, step by step; each step may refuse.
class Resolver final {
 public:
  Resolver(const RequestOverrides& request, const GenerationConfig& model, const ModelLimits& limits)
      : request_(request), model_(model), limits_(limits) {}

  StatusOr<SamplingParams> run() {
    RETURN_IF_ERROR(check_ids());
    RETURN_IF_ERROR(check_outputs());
    resolve_sampling();
    RETURN_IF_ERROR(check_beams());
    RETURN_IF_ERROR(resolve_lengths());
    resolve_ends();
    resolve_constraints();
    if (limits_.score_only) set_score();
    return std::move(params_);
  }

  int32_t num_answers() {
    resolve_sampling();
    return params_.n;
  }

 private:
  Status check_id(std::string_view field, int32_t id) const {
    if (id >= 0 && static_cast<int64_t>(id) < limits_.vocab_size) return ok_status();
    return field_error(field, str_cat(field, ": token id ", id, " is outside the vocabulary of ", limits_.vocab_size));
  }

  Status check_list(std::string_view field, const std::optional<std::vector<int32_t>>& ids) const {
    if (!ids.has_value()) return ok_status();
    for (const int32_t id : *ids) RETURN_IF_ERROR(check_id(field, id));
    return ok_status();
  }

  Status check_ids() const {
    RETURN_IF_ERROR(check_list("stop_token_ids", request_.stop_token_ids));
    RETURN_IF_ERROR(check_list("suppress_tokens", request_.suppress_tokens));
    RETURN_IF_ERROR(check_list("begin_suppress_tokens", request_.begin_suppress_tokens));
    RETURN_IF_ERROR(check_list("allowed_token_ids", request_.allowed_token_ids));
    if (request_.allowed_token_ids.has_value() && request_.allowed_token_ids->empty()) {
      return field_error("allowed_token_ids", "allowed_token_ids is empty: nothing could be generated");
    }
    RETURN_IF_ERROR(check_list("draft_token_ids", request_.draft_token_ids));
    RETURN_IF_ERROR(check_list("forced_eos_token_id", request_.forced_eos_token_ids));
    if (request_.forced_bos_token_id) {
      RETURN_IF_ERROR(check_id("forced_bos_token_id", *request_.forced_bos_token_id));
    }
    if (request_.bad_words_ids) {
      for (const auto& word : *request_.bad_words_ids) RETURN_IF_ERROR(check_list("bad_words_ids", word));
    }
    if (request_.logit_bias) {
      for (const auto& [id, bias] : *request_.logit_bias) RETURN_IF_ERROR(check_id("logit_bias", id));
    }
    return ok_status();
  }

  // The field in which the request says how many answers it wants.
  std::string_view outputs_field() const { return request_.n ? "n" : "num_return_sequences"; }
  std::optional<int32_t> requested_outputs() const { return request_.n ? request_.n : request_.num_return_sequences; }

  Status check_outputs() const {
    if (request_.n && request_.num_return_sequences && *request_.n != *request_.num_return_sequences) {
      return field_error("n", str_cat("n ", *request_.n, " and num_return_sequences ", *request_.num_return_sequences,
                                      " are the same thing and contradict each other"));
    }
    return ok_status();
  }

  bool asks_for_beams() const { return request_.use_beam_search.value_or(false) || request_.num_beams.value_or(1) > 1; }

  // generation_config.json's beams hold unless the request says something about beams or asks for sampling.
  bool inherits_beams() const {
    const bool samples = request_.temperature.value_or(0) > 0 || request_.top_p || request_.top_k || request_.min_p;
    return model_.num_beams > 1 && !request_.num_beams && !request_.use_beam_search && !samples;
  }

  int32_t beam_width() const {
    if (request_.num_beams) return *request_.num_beams;
    if (inherits_beams()) return model_.num_beams;
    return request_.best_of.value_or(requested_outputs().value_or(1));
  }

  void resolve_sampling() {
    const bool model_samples = model_.do_sample && !asks_for_beams() && !inherits_beams();
    params_.temperature = request_.temperature.value_or(model_samples ? model_.temperature : 0);
    params_.top_k = std::max(0, request_.top_k.value_or(model_.top_k));
    params_.top_p = request_.top_p.value_or(model_.top_p);
    params_.min_p = request_.min_p.value_or(model_.min_p);
    params_.seed = request_.seed ? static_cast<uint64_t>(*request_.seed) : drawn_seed();
    // Several greedy answers would be one answer several times: what the model's file wants holds for the others.
    params_.num_beams = asks_for_beams() || inherits_beams() ? beam_width() : 1;
    const int32_t distinct = params_.temperature > 0 ? model_.num_return_sequences : params_.num_beams;
    params_.n = requested_outputs().value_or(std::min(model_.num_return_sequences, distinct));
    params_.best_of = std::max(params_.n, request_.best_of.value_or(params_.n));
    params_.logprobs = request_.logprobs;
    params_.prompt_logprobs = request_.prompt_logprobs;
    params_.return_alignments = request_.return_alignments.value_or(false);
    if (request_.draft_token_ids) params_.draft_token_ids = *request_.draft_token_ids;
  }

  // The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014) over the
  // engine's seed and the place of the request.
  uint64_t drawn_seed() const {
    uint64_t x = limits_.engine_seed + (limits_.request_index + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  Status check_beams() const {
    const bool asks = asks_for_beams();
    if (request_.use_beam_search == false && request_.num_beams.value_or(1) > 1) {
      return field_error("use_beam_search",
                         str_cat("use_beam_search is false, but num_beams ", *request_.num_beams, " asks for beams"));
    }
    if (asks && request_.num_beams && request_.best_of && *request_.best_of != *request_.num_beams) {
      return field_error("best_of", str_cat("best_of ", *request_.best_of, " and num_beams ", *request_.num_beams,
                                            " are both the width of the beam search and contradict each other"));
    }
    if ((asks || inherits_beams()) && params_.n > beam_width()) {
      return field_error(outputs_field(), str_cat(outputs_field(), " ", params_.n, " answers are more than the ",
                                                  beam_width(), " beams", asks ? "" : " of the model's own search"));
    }
    if (request_.best_of && *request_.best_of < params_.n) {
      return field_error("best_of", str_cat("best_of ", *request_.best_of, " is less than the ", params_.n,
                                            " answers that are asked for"));
    }
    if (inherits_beams() && request_.best_of && *request_.best_of > beam_width()) {
      return field_error("best_of", str_cat("best_of ", *request_.best_of, " is more than the ", beam_width(),
                                            " beams of the model's own search: give num_beams"));
    }
    if (asks && params_.temperature > 0) {
      return field_error("temperature",
                         str_cat("temperature ", params_.temperature, " samples, and beam search does not: give 0"));
    }
    return ok_status();
  }

  Status resolve_lengths() {
    const int32_t prompt = limits_.decoder_prompt_tokens, positions = limits_.max_decoder_positions;
    if (prompt > positions || (prompt == positions && !limits_.score_only)) {
      return with_param(absl::OutOfRangeError(str_cat("the decoder prompt of ", prompt, " tokens ",
                                                      prompt > positions ? "exceeds" : "fills", positions_text())),
                        "decoder_prompt");
    }
    if (limits_.score_only) return ok_status();  // nothing is generated
    const int32_t room = positions - prompt;
    if (request_.max_tokens && *request_.max_tokens > positions) {
      return with_param(
          absl::OutOfRangeError(str_cat("max_tokens ", *request_.max_tokens, " exceeds", positions_text())),
          "max_tokens");
    }
    RETURN_IF_ERROR(resolve_max_tokens(room));
    if (request_.min_tokens && *request_.min_tokens > params_.max_tokens) {
      return field_error("min_tokens",
                         str_cat("min_tokens ", *request_.min_tokens, " is more than max_tokens ", params_.max_tokens));
    }
    const int32_t inherited =
        std::max(model_.min_new_tokens.value_or(0), model_.min_length.value_or(0) - limits_.decoder_prompt_tokens);
    params_.min_tokens = request_.min_tokens.value_or(0);
    params_.min_tokens_before_eos = request_.min_tokens.value_or(std::clamp(inherited, 0, params_.max_tokens));
    return ok_status();
  }

  std::string positions_text() const {
    const int32_t positions = limits_.max_decoder_positions;
    return limits_.positions_are_set ? str_cat(" the ", positions, " tokens that --max-model-len allows")
                                     : str_cat(" the model's ", positions, " positions");
  }

  Status resolve_max_tokens(int32_t room) {
    if (request_.max_tokens) {
      // An answer ends where the positions do (finish_reason length), whatever was allowed.
      params_.max_tokens = std::min(*request_.max_tokens, room);
    } else if (model_.max_new_tokens) {
      params_.max_tokens = std::min(*model_.max_new_tokens, room);
    } else if (model_.max_length) {
      const int32_t left = *model_.max_length - limits_.decoder_prompt_tokens;
      if (left <= 0) {
        return with_param(absl::OutOfRangeError(str_cat("the decoder prompt of ", limits_.decoder_prompt_tokens,
                                                        " tokens leaves nothing of the max_length ", *model_.max_length,
                                                        " of ", model_.source, ": give max_tokens")),
                          "max_tokens");
      }
      params_.max_tokens = std::min(left, room);
    } else {
      params_.max_tokens = room;
    }
    return ok_status();
  }

  void resolve_ends() {
    params_.stop = request_.stop.value_or(std::vector<std::string>());
    params_.stop_token_ids = request_.stop_token_ids.value_or(std::vector<int32_t>());
    params_.eos_token_ids = model_.eos_token_ids;
    params_.ignore_eos = request_.ignore_eos.value_or(false);
    params_.include_stop_str_in_output = request_.include_stop_str_in_output.value_or(false);
    params_.skip_special_tokens = request_.skip_special_tokens.value_or(true);
  }

  void resolve_constraints() {
    params_.repetition_penalty = request_.repetition_penalty.value_or(model_.repetition_penalty);
    params_.presence_penalty = request_.presence_penalty.value_or(0);
    params_.frequency_penalty = request_.frequency_penalty.value_or(0);
    params_.no_repeat_ngram_size = request_.no_repeat_ngram_size.value_or(model_.no_repeat_ngram_size);
    params_.encoder_no_repeat_ngram_size =
        request_.encoder_no_repeat_ngram_size.value_or(model_.encoder_no_repeat_ngram_size);
    if (request_.logit_bias) params_.logit_bias = *request_.logit_bias;
    params_.bad_words_ids = model_.bad_words_ids;
    if (request_.bad_words_ids) {
      params_.bad_words_ids.insert(params_.bad_words_ids.end(), request_.bad_words_ids->begin(),
                                   request_.bad_words_ids->end());
    }
    params_.suppress_tokens = request_.suppress_tokens.value_or(model_.suppress_tokens);
    params_.begin_suppress_tokens = request_.begin_suppress_tokens.value_or(model_.begin_suppress_tokens);
    params_.allowed_token_ids = request_.allowed_token_ids.value_or(std::vector<int32_t>());
    params_.forced_bos_token_id =
        request_.forced_bos_token_id ? request_.forced_bos_token_id : model_.forced_bos_token_id;
    params_.forced_eos_token_ids = request_.forced_eos_token_ids.value_or(model_.forced_eos_token_ids);
    params_.renormalize_logits = model_.renormalize_logits;
    params_.length_penalty = request_.length_penalty.value_or(model_.length_penalty);
    params_.early_stopping = request_.early_stopping.value_or(model_.early_stopping);
  }

  void set_score() {
    params_.score_only = true;
    params_.max_tokens = 1;
    params_.min_tokens = params_.min_tokens_before_eos = 0;
    params_.n = params_.best_of = params_.num_beams = 1;
    params_.prompt_logprobs = request_.prompt_logprobs.value_or(0);
  }

  const RequestOverrides& request_;
  const GenerationConfig& model_;
  const ModelLimits& limits_;
  SamplingParams params_;
};

std::string early_stopping_text(SamplingParams::EarlyStopping value) {
  switch (value) {
    case SamplingParams::EarlyStopping::kFalse: return "false";
    case SamplingParams::EarlyStopping::kTrue: return "true";
    case SamplingParams::EarlyStopping::kNever: return "never";
  }
  return "";
}

// Ids in a note: a few as they are, many by their number.
std::string ids_text(const std::vector<int32_t>& ids) {
  constexpr size_t kShown = 8;
  if (ids.size() > kShown) return str_cat("(", ids.size(), " ids)");
  std::string text;
  for (const int32_t id : ids) text += str_cat(text.empty() ? "" : ", ", id);
  return str_cat("[", text, "]");
}

class Notes final {
 public:
  explicit Notes(std::string source) : source_(std::move(source)) {}

  template <typename... Parts>
  void add(const Parts&... parts) {
    lines_.push_back(str_cat(source_, ": ", parts...));
  }
  template <typename T>
  void if_set(std::string_view name, const std::optional<T>& value, std::string_view remark = "") {
    if (value.has_value()) add(name, " ", *value, remark);
  }
  template <typename T>
  void if_not(std::string_view name, T value, T neutral) {
    if (value != neutral) add(name, " ", value);
  }
  void if_any(std::string_view name, const std::vector<int32_t>& ids) {
    if (!ids.empty()) add(name, " ", ids_text(ids));
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::string source_;
  std::vector<std::string> lines_;
};

void note_sampling(const GenerationConfig& model, Notes& notes) {
  if (model.do_sample) notes.add("do_sample true: requests without a temperature are sampled at ", model.temperature);
  notes.if_not("top_k", model.top_k, 0);
  notes.if_not("top_p", model.top_p, 1.0f);
  notes.if_not("min_p", model.min_p, 0.0f);
  if (model.do_sample || model.num_beams > 1) {
    notes.if_not("num_return_sequences", model.num_return_sequences, 1);
  }
}

void note_beams(const GenerationConfig& model, Notes& notes) {
  if (model.num_beams == 1) return;
  notes.add("num_beams ", model.num_beams, ", length_penalty ", model.length_penalty, ", early_stopping ",
            early_stopping_text(model.early_stopping),
            ": requests that say nothing about beams or sampling are searched with beams");
}

}  // namespace

StatusOr<SamplingParams> resolve(const RequestOverrides& request, const GenerationConfig& model,
                                 const ModelLimits& limits) {
  return Resolver(request, model, limits).run();
}

int32_t num_answers(const RequestOverrides& request, const GenerationConfig& model) {
  return Resolver(request, model, ModelLimits()).num_answers();
}

std::vector<std::string> startup_notes(const GenerationConfig& model) {
  Notes notes(model.source);
  notes.if_set("max_length", model.max_length, " (with the decoder prompt)");
  notes.if_set("min_length", model.min_length, " (with the decoder prompt)");
  notes.if_set("max_new_tokens", model.max_new_tokens);
  notes.if_set("min_new_tokens", model.min_new_tokens);
  note_sampling(model, notes);
  note_beams(model, notes);
  notes.if_not("repetition_penalty", model.repetition_penalty, 1.0f);
  notes.if_not("no_repeat_ngram_size", model.no_repeat_ngram_size, 0);
  notes.if_not("encoder_no_repeat_ngram_size", model.encoder_no_repeat_ngram_size, 0);
  notes.if_set("forced_bos_token_id", model.forced_bos_token_id);
  notes.if_any("forced_eos_token_id", model.forced_eos_token_ids);
  notes.if_any("suppress_tokens", model.suppress_tokens);
  notes.if_any("begin_suppress_tokens", model.begin_suppress_tokens);
  if (!model.bad_words_ids.empty()) notes.add("bad_words_ids (", model.bad_words_ids.size(), " words)");
  notes.if_not("renormalize_logits", model.renormalize_logits, false);
  for (const std::string& field : model.unsupported) notes.add(field, " is not supported and has no effect");
  return notes.take();
}

}  // namespace transept
