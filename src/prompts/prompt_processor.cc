#include "prompts/prompt_processor.h"

#include <algorithm>

#include "base/check.h"
#include "multimodal/make_input_rules.h"
#include "request/field_table.h"

namespace transept {
namespace {

Status too_long(const std::string& param, const std::string& message) {
  return with_param(absl::OutOfRangeError(message), param);
}

// Of a model that is a decoder alone: what stands where others have the encoder's text or ids.
EncoderDecoderPrompt as_decoder_prompt(const EncoderDecoderPrompt& prompt) {
  EncoderDecoderPrompt own;
  own.decoder = prompt.encoder;
  own.decoder_param = prompt.encoder_param;
  own.decoder_beside_media = true;
  return own;
}

}  // namespace

PromptProcessor::PromptProcessor(const ModelConfig& config, const GenerationConfig& generation, const ModelSpec& spec,
                                 const Limits& limits, const Parts& parts)
    : spec_(spec), limits_(limits), parts_(parts) {
  const auto first = [](std::optional<int32_t> a, std::optional<int32_t> b) { return a.has_value() ? a : b; };
  InputContext context;
  context.family = spec.family;
  context.bos = first(generation.bos_token_id, config.bos_token_id);
  // A missing decoder_start falls back to bos.
  const auto start = first(generation.decoder_start_token_id, config.decoder_start_token_id);
  context.decoder_start = decoder_start_ = first(start, context.bos).value_or(0);
  context.forced_bos = generation.forced_bos_token_id;
  context.eos = generation.eos_token_ids.empty() ? config.eos_token_ids : generation.eos_token_ids;
  context.vocab_size = spec.vocab_size;
  context.prompt_vocab_size = spec.prompt_vocab_size;
  context.encoder_vocab_size = spec.encoder_vocab();
  context.media_token_id = spec.media_token_id;
  context.draws_question = parts.media != nullptr && parts.media->draws_question();
  context.modalities = spec.modalities;
  context.tokenizer = parts.tokenizer;
  context.no_tokenizer = parts.no_tokenizer;
  context.speech_tokens = parts.speech_tokens;
  rules_ = make_input_rules(config, std::move(context));
}

StatusOr<EncoderDecoderInputs> PromptProcessor::process(const EncoderDecoderPrompt& prompt,
                                                        const Options& options) const {
  RETURN_IF_ERROR(refuse_media(prompt));
  EncoderDecoderInputs inputs;
  if (rules_->is_decoder_alone() && !prompt.encoder.multi_modal_data.has_value() && !prompt.decoder.has_value()) {
    RETURN_IF_ERROR(fill_decoder_side(as_decoder_prompt(prompt), options, inputs));
    return inputs;
  }
  RETURN_IF_ERROR(fill_encoder_side(prompt, options, inputs));
  RETURN_IF_ERROR(fill_decoder_side(prompt, options, inputs));
  return inputs;
}

StatusOr<EncoderDecoderInputs> PromptProcessor::process_encoder(const EncoderDecoderPrompt& prompt,
                                                                const Options& options) const {
  RETURN_IF_ERROR(refuse_media(prompt));
  EncoderDecoderInputs inputs;
  RETURN_IF_ERROR(fill_encoder_side(prompt, options, inputs));
  return inputs;
}

StatusOr<EncoderDecoderInputs> PromptProcessor::process_decoder(const EncoderDecoderPrompt& prompt,
                                                                const Options& options,
                                                                std::span<const EncoderItem> items) const {
  RETURN_IF_ERROR(refuse_media(prompt));
  if (rules_->is_decoder_alone() && !prompt.decoder.has_value()) {
    return field_error(prompt.decoder_param,
                       str_cat("this model (", spec_.family, ") has its pictures within the prompt: a request over ",
                               "encoded ones gives its prompt as decoder_prompt, with a token for each"));
  }
  EncoderDecoderInputs inputs;
  inputs.items.assign(items.begin(), items.end());
  RETURN_IF_ERROR(fill_decoder_side(prompt, options, inputs));
  return inputs;
}

Status PromptProcessor::fill_encoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                                          EncoderDecoderInputs& inputs) const {
  RETURN_IF_ERROR(rules_->check_encoder(prompt, options));
  if (prompt.encoder.multi_modal_data.has_value()) return fill_features(prompt, options, inputs);
  if (const auto* text = std::get_if<TextPrompt>(&prompt.encoder.content)) inputs.encoder_prompt = text->text;
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, encoder_ids(prompt.encoder, prompt.encoder_param, options));
  inputs.set_encoder_ids(std::move(ids));
  return ok_status();
}

Status PromptProcessor::fill_decoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                                          EncoderDecoderInputs& inputs) const {
  const auto tokenize_text = [&](const std::string& text, bool add_special_tokens) {
    return tokenize(text, prompt.decoder_param, add_special_tokens, TokenizerSide::kDecoder, options);
  };
  RETURN_IF_ERROR(rules_->fill_decoder(prompt, options, tokenize_text, inputs));
  const int32_t num_prompt = static_cast<int32_t>(inputs.prompt_token_ids.size());
  if (num_prompt > limits_.max_decoder_len) {
    return too_long(prompt.decoder_param,
                    str_cat("the decoder prompt has ", num_prompt, " tokens, more than the ", limits_.max_decoder_len,
                            decoder_len_is_set() ? " that --max-model-len allows" : " positions of the decoder"));
  }
  return ok_status();
}

Status PromptProcessor::refuse_media(const EncoderDecoderPrompt& prompt) const {
  if (prompt.decoder.has_value() && prompt.decoder->multi_modal_data.has_value()) {
    return field_error("multi_modal_data", "media belong to the encoder: the decoder prompt takes text or ids only");
  }
  if (!prompt.encoder.multi_modal_data.has_value() || parts_.media != nullptr) return ok_status();
  constexpr size_t kMaxShownName = 100;
  std::string name = "media";
  if (prompt.encoder.multi_modal_data->is_object()) {
    const Json::Object& given = prompt.encoder.multi_modal_data->as_object();
    const auto unknown = std::find_if(given.begin(), given.end(), [&](const auto& item) {
      return std::find(spec_.modalities.begin(), spec_.modalities.end(), item.first) == spec_.modalities.end();
    });
    if (unknown != given.end()) name = unknown->first.substr(0, kMaxShownName);
  }
  return field_error("multi_modal_data", str_cat("this model (", spec_.family, ") takes no ", name,
                                                 " input: give text or ids as prompt or encoder_prompt"));
}

Status PromptProcessor::fill_features(const EncoderDecoderPrompt& prompt, const Options& options,
                                      EncoderDecoderInputs& inputs) const {
  MediaLimits media_limits = parts_.media_limits;
  media_limits.first_window_alone = options.first_window_alone;
  if (!media_limits.max_positions.has_value()) media_limits.max_positions = limits_.max_encoder_len;
  const BesideMedia beside = beside_media(prompt);
  ASSIGN_OR_RETURN(const std::optional<std::string> question, rules_->question_of(beside.content, beside.param));
  if (question.has_value()) inputs.encoder_prompt = *question;
  ASSIGN_OR_RETURN(MultiModalRegistry::Items features,
                   parts_.media->process(*prompt.encoder.multi_modal_data, options.media, media_limits, question));
  inputs.set_encoder_features(std::move(features));
  for (EncoderItem& item : inputs.items) {
    const Consumers by_form = rules_->consumers_of(*item.features);
    if (spec_.splices_alone()) item.consumers = Consumers::kSplice;
    if (by_form != Consumers::kNone) item.consumers = by_form;
  }
  if (spec_.encoder_takes_media_among_ids()) RETURN_IF_ERROR(fill_ids_around_media(prompt, options, inputs));
  return check_positions(inputs.items, "multi_modal_data");
}

PromptProcessor::BesideMedia PromptProcessor::beside_media(const EncoderDecoderPrompt& prompt) const {
  const bool is_decoders = prompt.decoder_beside_media && rules_->text_beside_media_is_encoders();
  if (is_decoders) return {prompt.decoder->content, prompt.decoder_param};
  return {prompt.encoder.content, prompt.encoder_param};
}

Status PromptProcessor::fill_ids_around_media(const EncoderDecoderPrompt& prompt, const Options& options,
                                              EncoderDecoderInputs& inputs) const {
  const auto& [content, param] = beside_media(prompt);
  if (const auto* text = std::get_if<TextPrompt>(&content)) inputs.encoder_prompt = text->text;
  const auto tokenize_text = [&, &param = param](const std::string& text, bool add_special_tokens) {
    return tokenize(text, param, add_special_tokens, TokenizerSide::kEncoder, options);
  };
  for (EncoderItem& item : inputs.items) {
    const int32_t num_rows = item.features->num_positions;
    ASSIGN_OR_RETURN(item.token_ids, rules_->ids_around_media(content, param, num_rows, options, tokenize_text));
  }
  return ok_status();
}

Status PromptProcessor::check_item(const EncoderItem& item) const {
  if (spec_.encoder_takes_media_among_ids()) return check_item_of_both(item);
  const bool has_features = item.features != nullptr;
  if (has_features != (parts_.media != nullptr) || has_features == !item.token_ids.empty()) {
    return field_error(has_features ? "has_features" : "token_ids",
                       str_cat("this model (", spec_.family, ") encodes ",
                               parts_.media != nullptr ? spec_.modalities.front() : std::string("ids"), " alone"));
  }
  if (has_features) {
    RETURN_IF_ERROR(parts_.media->check(*item.features));
    const Consumers by_form = rules_->consumers_of(*item.features);
    if (by_form != Consumers::kNone && item.consumers != by_form) {
      return field_error("consumers", str_cat("this model (", spec_.family, ") ",
                                              has(by_form, Consumers::kSplice) ? "splices" : "crosses",
                                              " the rows of such features, and does nothing else with them"));
    }
  } else {
    RETURN_IF_ERROR(check_token_ids(item.token_ids, "token_ids", spec_.encoder_vocab()));
  }
  return check_positions({&item, 1}, "num_positions");
}

// Media among ids: a place for each of the tower's rows.
Status PromptProcessor::check_item_of_both(const EncoderItem& item) const {
  if (item.features == nullptr || item.token_ids.empty()) {
    return field_error(item.features == nullptr ? "has_features" : "token_ids",
                       str_cat("this model (", spec_.family, ") encodes ", spec_.modalities.front(), " among ids"));
  }
  RETURN_IF_ERROR(parts_.media->check(*item.features));
  RETURN_IF_ERROR(check_token_ids(item.token_ids, "token_ids", spec_.encoder_vocab()));
  const int64_t num_places = std::ranges::count(item.token_ids, spec_.media_token_id);
  if (num_places != item.features->num_positions) {
    return field_error("token_ids", str_cat(num_places, " ids are places for the ", item.features->num_positions,
                                            " rows of the ", spec_.modalities.front()));
  }
  return check_positions({&item, 1}, "num_positions");
}

// Of media, or of items of another process.
Status PromptProcessor::check_positions(std::span<const EncoderItem> items, const std::string& param) const {
  const bool is_audio = parts_.media != nullptr && parts_.media->audio() != nullptr;
  const std::string_view text = spec_.encoder_takes_media_among_ids() ? " with its text" : "";
  const std::string input = parts_.media == nullptr ? "input" : str_cat(spec_.modalities.front(), text);
  int32_t positions = num_cross_positions(items);
  // Rows that are spliced stand in the prompt, whose length is checked there: each item is one input of the encoder.
  for (const EncoderItem& item : items) positions = std::max(positions, item.num_positions());
  if (positions > limits_.max_encoder_len) {
    return too_long(
        param, str_cat("the ", input, " has ", positions, " encoder positions, more than the ", limits_.max_encoder_len,
                       " that ", encoder_len_is_set() ? "--max-model-len allows" : "the model has",
                       is_audio ? "; `transept transcribe` takes any length" : ""));
  }
  for (const EncoderItem& item : items) {
    if (spec_.max_item_rows == 0 || item.num_rows() <= spec_.max_item_rows) continue;
    return too_long(param, str_cat("the ", input, " has ", item.num_rows(), " rows in the encoder, more than the ",
                                   spec_.max_item_rows, " of the largest that the model's files allow"));
  }
  return ok_status();
}

StatusOr<std::vector<int32_t>> PromptProcessor::encoder_ids(const SingletonPrompt& prompt, const std::string& param,
                                                            const Options& options) const {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<TextPrompt>(&prompt.content)) {
    ASSIGN_OR_RETURN(
        ids, tokenize(text->text, param, options.add_special_tokens.value_or(true), TokenizerSide::kEncoder, options));
    if (ids.empty()) return field_error(param, "the text has no tokens");
  } else {
    ids = std::get<TokensPrompt>(prompt.content).token_ids;
  }
  RETURN_IF_ERROR(check_token_ids(ids, param, spec_.encoder_vocab()));
  if (options.truncate_prompt_tokens.has_value()) {
    const size_t keep = static_cast<size_t>(*options.truncate_prompt_tokens);
    if (ids.size() > keep) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(keep));
  }
  if (static_cast<int64_t>(ids.size()) > limits_.max_encoder_len) {
    return too_long(param,
                    str_cat("the encoder prompt has ", ids.size(), " tokens, more than the ", limits_.max_encoder_len,
                            encoder_len_is_set() ? " that --max-model-len allows" : " positions of the encoder",
                            "; truncate_prompt_tokens keeps the last so many"));
  }
  return ids;
}

// A text of more bytes than the positions times the longest token has too many tokens, but for what a normalizer drops
// and for unknown characters that are fused to one token, and these are no reason to send more: megabytes take seconds
// to be cut. What is short is cut anyway, for the sake of the count in its error.
Status PromptProcessor::check_num_bytes(const std::string& text, const std::string& param, TokenizerSide side,
                                        const PromptOptions& options) const {
  constexpr int64_t kAlwaysCut = 64 << 10, kTruncated = 16;
  const auto num_bytes = static_cast<int64_t>(text.size());
  const int64_t factor = options.truncate_prompt_tokens.has_value() ? kTruncated : 1;
  if (num_bytes <= kAlwaysCut * factor) return ok_status();
  const bool is_encoder = side == TokenizerSide::kEncoder;
  const int64_t positions = is_encoder ? limits_.max_encoder_len : limits_.max_decoder_len;
  const int64_t most = std::max(kAlwaysCut, positions * longest_token_bytes(side)) * factor;
  if (num_bytes <= most) return ok_status();
  return too_long(param, str_cat("the ", is_encoder ? "encoder" : "decoder", " prompt has ", num_bytes,
                                 " bytes, more than ", positions, " positions can hold (", most, ")"));
}

int64_t PromptProcessor::longest_token_bytes(TokenizerSide side) const {
  const auto index = static_cast<size_t>(side);
  std::call_once(longest_is_known_[index], [&] {
    size_t longest = 1;
    for (int32_t id = 0; id < parts_.tokenizer->vocab_size(); ++id) {
      longest = std::max(longest, parts_.tokenizer->side_token_to_string(id, side).size());
    }
    longest_token_bytes_[index] = static_cast<int64_t>(longest);
  });
  return longest_token_bytes_[index];
}

StatusOr<std::vector<int32_t>> PromptProcessor::tokenize(const std::string& text, const std::string& param,
                                                         bool add_special_tokens, TokenizerSide side,
                                                         const PromptOptions& options) const {
  if (parts_.tokenizer == nullptr) {
    return field_error(param, str_cat("text needs a tokenizer (", parts_.no_tokenizer,
                                      "): give token ids (prompt_token_ids) instead"));
  }
  RETURN_IF_ERROR(check_num_bytes(text, param, side, options));
  const std::string source_lang = options.source_lang.value_or(""), target_lang = options.target_lang.value_or("");
  const EncodeOptions encode{add_special_tokens, side, source_lang, target_lang};
  StatusOr<std::vector<int32_t>> ids = parts_.tokenizer->encode(text, encode);
  return ids.ok() ? std::move(ids) : StatusOr<std::vector<int32_t>>(with_param(ids.status(), param));
}

StatusOr<std::vector<std::vector<int32_t>>> PromptProcessor::bad_words_ids(
    const std::vector<std::string>& words) const {
  std::vector<std::vector<int32_t>> all;
  const PromptOptions options;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(std::vector<int32_t> bare, tokenize(word, "bad_words", false, TokenizerSide::kDecoder, options));
    if (bare.size() > kMaxBadWordTokens) {
      return field_error("bad_words", str_cat("bad_words: a word of ", bare.size(), " tokens; at most ",
                                              kMaxBadWordTokens, " are allowed"));
    }
    ASSIGN_OR_RETURN(std::vector<int32_t> spaced,
                     tokenize(" " + word, "bad_words", false, TokenizerSide::kDecoder, options));
    if (bare.empty()) continue;
    if (spaced.size() == bare.size() && spaced.front() != bare.front()) all.push_back(std::move(spaced));
    all.push_back(std::move(bare));
  }
  return all;
}

StatusOr<std::vector<int32_t>> PromptProcessor::prediction_ids(const std::string& text) const {
  return tokenize(text, "prediction", false, TokenizerSide::kDecoder, PromptOptions());
}

}  // namespace transept
