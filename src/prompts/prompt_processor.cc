#include "prompts/prompt_processor.h"

#include <algorithm>

#include "base/check.h"
#include "request/field_table.h"

namespace transept {
namespace {

Status too_long(const std::string& param, const std::string& message) {
  return with_param(absl::OutOfRangeError(message), param);
}

}  // namespace

PromptProcessor::PromptProcessor(const ModelConfig& config, const GenerationConfig& generation, const ModelSpec& spec,
                                 const Limits& limits, const Tokenizer* tokenizer, std::string no_tokenizer,
                                 const Speech& speech)
    : spec_(spec), limits_(limits), tokenizer_(tokenizer), no_tokenizer_(std::move(no_tokenizer)), speech_(speech) {
  const auto first = [](std::optional<int32_t> a, std::optional<int32_t> b) { return a.has_value() ? a : b; };
  bos_ = first(generation.bos_token_id, config.bos_token_id);
  // A missing decoder_start falls back to bos.
  const auto start = first(generation.decoder_start_token_id, config.decoder_start_token_id);
  decoder_start_ = first(start, bos_).value_or(0);
  forced_bos_ = generation.forced_bos_token_id;
  eos_ = generation.eos_token_ids.empty() ? config.eos_token_ids : generation.eos_token_ids;
}

StatusOr<EncoderDecoderInputs> PromptProcessor::process(const EncoderDecoderPrompt& prompt,
                                                        const Options& options) const {
  RETURN_IF_ERROR(refuse_media(prompt));
  EncoderDecoderInputs inputs;
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
                                                                const Options& options) const {
  RETURN_IF_ERROR(refuse_media(prompt));
  EncoderDecoderInputs inputs;
  RETURN_IF_ERROR(fill_decoder_side(prompt, options, inputs));
  return inputs;
}

Status PromptProcessor::fill_encoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                                          EncoderDecoderInputs& inputs) const {
  if (prompt.encoder.multi_modal_data.has_value()) return fill_features(prompt, options, inputs);
  if (!spec_.encoder_takes_ids()) {
    return field_error(prompt.encoder_param,
                       str_cat("this model (", spec_.family, ") encodes ", spec_.modalities.front(),
                               ": give it in multi_modal_data; text and ids beside it are the decoder's"));
  }
  if (std::holds_alternative<std::monostate>(prompt.encoder.content)) {
    return field_error("encoder_prompt", "a request needs an encoder prompt; only a decoder prompt was given");
  }
  if (const auto* text = std::get_if<TextPrompt>(&prompt.encoder.content)) inputs.encoder_prompt = text->text;
  // Of a text the tokenizer says what its language must be.
  const bool is_text = std::holds_alternative<TextPrompt>(prompt.encoder.content);
  if (!is_text && tokenizer_ != nullptr && spec_.default_prompt == DefaultPrompt::kLanguage) {
    RETURN_IF_ERROR(language_token(options.source_lang, "source_lang").status());
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, encoder_ids(prompt.encoder, prompt.encoder_param, options));
  inputs.set_encoder_ids(std::move(ids));
  return ok_status();
}

Status PromptProcessor::fill_decoder_side(const EncoderDecoderPrompt& prompt, const Options& options,
                                          EncoderDecoderInputs& inputs) const {
  RETURN_IF_ERROR(check_transcript_options(options));
  ASSIGN_OR_RETURN(const std::optional<int32_t> target_language, language_token(options.target_lang, "target_lang"));
  if (target_language.has_value() && spec_.default_prompt == DefaultPrompt::kLanguage) {
    RETURN_IF_ERROR(check_ids({*target_language}, "target_lang", spec_.vocab_size));
  }
  if (prompt.decoder.has_value() && !std::holds_alternative<std::monostate>(prompt.decoder->content)) {
    if (const auto* text = std::get_if<TextPrompt>(&prompt.decoder->content)) inputs.prompt = text->text;
    RETURN_IF_ERROR(fill_given_decoder_prompt(prompt, options, inputs));
  } else if (spec_.default_prompt == DefaultPrompt::kTranscript) {
    RETURN_IF_ERROR(fill_transcript_prefix(options, inputs));
  } else {
    fill_default_decoder_prompt(target_language, inputs);
  }
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
  if (!prompt.encoder.multi_modal_data.has_value() || speech_.media != nullptr) return ok_status();
  constexpr size_t kMaxShownName = 100;
  std::string name = "media";
  if (prompt.encoder.multi_modal_data->is_object()) {
    const Json::Object& given = prompt.encoder.multi_modal_data->as_object();
    const auto unknown = std::find_if(given.begin(), given.end(), [&](const auto& item) {
      return std::find(spec_.modalities.begin(), spec_.modalities.end(), item.first) == spec_.modalities.end();
    });
    if (unknown != given.end()) name = unknown->first.substr(0, kMaxShownName);
  }
  return field_error("multi_modal_data", str_cat("this model (", spec_.family, ") takes no ", name, " input"));
}

Status PromptProcessor::fill_features(const EncoderDecoderPrompt& prompt, const Options& options,
                                      EncoderDecoderInputs& inputs) const {
  if (!std::holds_alternative<std::monostate>(prompt.encoder.content)) {
    return field_error("encoder_prompt",
                       str_cat("this model (", spec_.family, ") has no place for text beside media in ",
                               "its encoder: give it as decoder_prompt"));
  }
  if (options.truncate_prompt_tokens.has_value()) {
    return field_error("truncate_prompt_tokens",
                       "truncate_prompt_tokens cuts token ids, and the encoder input is audio");
  }
  MediaLimits media_limits = options.media_limits;
  if (!media_limits.max_positions.has_value()) media_limits.max_positions = limits_.max_encoder_len;
  ASSIGN_OR_RETURN(std::shared_ptr<const EncoderFeatures> features,
                   speech_.media->process(*prompt.encoder.multi_modal_data, options.media, media_limits));
  const int32_t num_positions = features->num_positions;
  inputs.set_encoder_features(std::move(features));
  if (num_positions <= limits_.max_encoder_len) return ok_status();
  return too_long("multi_modal_data", str_cat("the audio has ", num_positions, " encoder positions, more than the ",
                                              limits_.max_encoder_len, " that ",
                                              encoder_len_is_set() ? "--max-model-len allows" : "the model has",
                                              "; `transept transcribe` takes any length"));
}

Status PromptProcessor::check_transcript_options(const Options& options) const {
  if (speech_.tokens != nullptr) return ok_status();
  const std::string_view field = !options.language.empty() ? "language"
                                 : !options.task.empty()   ? "task"
                                 : options.timestamps      ? "timestamps"
                                                           : "";
  if (field.empty()) return ok_status();
  return field_error(field, str_cat("this model (", spec_.family, ") has no ", field, " to choose"));
}

Status PromptProcessor::fill_transcript_prefix(const Options& options, EncoderDecoderInputs& inputs) const {
  inputs.prompt_token_ids = {decoder_start_};
  if (speech_.tokens == nullptr) return ok_status();
  const SpeechTokens& tokens = *speech_.tokens;
  const std::string language = !options.language.empty() ? options.language : tokens.default_language.value_or("");
  if (!language.empty()) {
    ASSIGN_OR_RETURN(const std::optional<int32_t> id, tokens.language_token(language, "language"));
    if (id.has_value()) inputs.prompt_token_ids.push_back(*id);
  } else if (!tokens.languages.empty()) {
    OpenToken open{.index = static_cast<int32_t>(inputs.prompt_token_ids.size()), .choices = {}};
    for (const SpeechTokens::Language& known : tokens.languages) open.choices.push_back(known.token_id);
    inputs.prompt_token_ids.push_back(open.choices.front());
    inputs.open_token = std::move(open);
  }
  const std::string task = !options.task.empty() ? options.task : tokens.default_task.value_or("transcribe");
  ASSIGN_OR_RETURN(const std::optional<int32_t> task_id, tokens.task_token(task, "task"));
  if (task_id.has_value()) inputs.prompt_token_ids.push_back(*task_id);
  if (options.timestamps) {
    if (!tokens.no_timestamps.has_value()) return field_error("timestamps", "this model has no timestamps");
  } else if (tokens.no_timestamps.has_value()) {
    inputs.prompt_token_ids.push_back(*tokens.no_timestamps);
  }
  return check_ids(inputs.prompt_token_ids, "prompt", spec_.vocab_size);
}

Status PromptProcessor::fill_given_decoder_prompt(const EncoderDecoderPrompt& prompt, const Options& options,
                                                  EncoderDecoderInputs& inputs) const {
  const SingletonPrompt& decoder = *prompt.decoder;
  const bool is_text = std::holds_alternative<TextPrompt>(decoder.content);
  const auto is_start = [&](int32_t id) { return id == decoder_start_; };
  if (!is_text && prompt.decoder_beside_media) {
    inputs.prompt_token_ids = std::get<TokensPrompt>(decoder.content).token_ids;
    if (inputs.prompt_token_ids.empty()) return field_error(prompt.decoder_param, "the list of token ids is empty");
    return check_ids(inputs.prompt_token_ids, prompt.decoder_param, spec_.vocab_size);
  }
  if (spec_.default_prompt != DefaultPrompt::kTranscript) {
    ASSIGN_OR_RETURN(inputs.prompt_token_ids, decoder_ids(decoder, prompt.decoder_param, options));
    return ok_status();
  }
  // A transcript's prompt is whole if it says where it starts (behind previous text, maybe); else it is the text that
  // follows the default one.
  std::vector<int32_t> ids;
  if (is_text) {
    ASSIGN_OR_RETURN(ids, tokenize(std::get<TextPrompt>(decoder.content).text, prompt.decoder_param, false,
                                   TokenizerSide::kDecoder, options));
  } else {
    ids = std::get<TokensPrompt>(decoder.content).token_ids;
  }
  RETURN_IF_ERROR(check_ids(ids, prompt.decoder_param, spec_.vocab_size));
  const bool is_whole = std::any_of(ids.begin(), ids.end(), is_start);
  if (!is_whole && is_text) {
    RETURN_IF_ERROR(fill_transcript_prefix(options, inputs));
  } else if (!is_whole) {
    inputs.prompt_token_ids = {decoder_start_};
  }
  inputs.prompt_token_ids.insert(inputs.prompt_token_ids.end(), ids.begin(), ids.end());
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
  RETURN_IF_ERROR(check_ids(ids, param, spec_.encoder_vocab()));
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

StatusOr<std::vector<int32_t>> PromptProcessor::decoder_ids(const SingletonPrompt& prompt, const std::string& param,
                                                            const Options& options) const {
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<TextPrompt>(&prompt.content)) {
    ASSIGN_OR_RETURN(
        ids, tokenize(text->text, param, options.add_special_tokens.value_or(true), TokenizerSide::kDecoder, options));
    // Nobody continues a finished sentence: a trailing end token goes, unless the request insists.
    const bool ends = !ids.empty() && std::find(eos_.begin(), eos_.end(), ids.back()) != eos_.end();
    if (ends && options.add_special_tokens != true) ids.pop_back();
  } else {
    ids = std::get<TokensPrompt>(prompt.content).token_ids;
  }
  RETURN_IF_ERROR(check_ids(ids, param, spec_.vocab_size));
  if (ids.empty() || ids.front() != decoder_start_) ids.insert(ids.begin(), decoder_start_);
  return ids;
}

StatusOr<std::optional<int32_t>> PromptProcessor::language_token(const std::string& language,
                                                                 std::string_view field) const {
  if (language.empty()) return std::optional<int32_t>();
  if (tokenizer_ == nullptr) {
    return field_error(field, str_cat("languages need a tokenizer (", no_tokenizer_, ")"));
  }
  ASSIGN_OR_RETURN(const int32_t id, tokenizer_->language_token(language, field));
  return std::optional<int32_t>(id);
}

void PromptProcessor::fill_default_decoder_prompt(std::optional<int32_t> target_language,
                                                  EncoderDecoderInputs& inputs) const {
  std::optional<int32_t> second;
  if (spec_.default_prompt == DefaultPrompt::kBos) second = bos_;
  if (spec_.default_prompt == DefaultPrompt::kLanguage) {
    second = target_language.has_value() ? target_language : forced_bos_;
    inputs.names_language = second.has_value();
  }
  inputs.prompt_token_ids = {decoder_start_};
  if (!second.has_value() || *second == decoder_start_) return;
  inputs.prompt_token_ids.push_back(*second);
  inputs.num_default_generated = 1;
}

// A text of more bytes than the positions times the longest token has too many tokens, but for what a normalizer drops
// and for unknown characters that are fused to one token, and these are no reason to send more: megabytes take seconds
// to be cut. What is short is cut anyway, for the sake of the count in its error.
Status PromptProcessor::check_num_bytes(const std::string& text, const std::string& param, TokenizerSide side,
                                        const Options& options) const {
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
    for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
      longest = std::max(longest, tokenizer_->side_token_to_string(id, side).size());
    }
    longest_token_bytes_[index] = static_cast<int64_t>(longest);
  });
  return longest_token_bytes_[index];
}

StatusOr<std::vector<int32_t>> PromptProcessor::tokenize(const std::string& text, const std::string& param,
                                                         bool add_special_tokens, TokenizerSide side,
                                                         const Options& options) const {
  if (tokenizer_ == nullptr) {
    return field_error(
        param, str_cat("text needs a tokenizer (", no_tokenizer_, "): give token ids (prompt_token_ids) instead"));
  }
  RETURN_IF_ERROR(check_num_bytes(text, param, side, options));
  const EncodeOptions encode{add_special_tokens, side, options.source_lang, options.target_lang};
  StatusOr<std::vector<int32_t>> ids = tokenizer_->encode(text, encode);
  return ids.ok() ? std::move(ids) : StatusOr<std::vector<int32_t>>(with_param(ids.status(), param));
}

Status PromptProcessor::check_ids(const std::vector<int32_t>& ids, const std::string& param, int32_t vocab_size) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return field_error(param, str_cat("token id ", id, " is outside the vocabulary of ", vocab_size));
    }
  }
  return ok_status();
}

StatusOr<std::vector<std::vector<int32_t>>> PromptProcessor::bad_words_ids(
    const std::vector<std::string>& words) const {
  std::vector<std::vector<int32_t>> all;
  const Options options;
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

}  // namespace transept
