#include "speech/window_decoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/strings.h"
#include "core/speech_languages.h"
#include "multimodal/transcript_rules.h"
#include "speech/characters.h"
#include "speech/compression_ratio.h"
#include "speech/window_segments.h"

namespace transept {
namespace {

constexpr int32_t kDefaultBeams = 5;  // openai-whisper's --beam_size
// openai-whisper, decoding.py: max_initial_timestamp of 1 s, in steps of 0.02 s.
constexpr int32_t kMaxInitialTimestamp = 50;
// Nobody says more tokens a second; ends loops of models that have no timestamps early (Moonshine's own code takes 6).
constexpr double kMostTokensPerSecond = 13;
constexpr int32_t kLeastTokens = 10;
constexpr uint64_t kMostTemperatures = 1000;  // of a ladder (decoding_rules.h)

int32_t most_tokens(double seconds) {
  constexpr double kMost = 1e6;
  return static_cast<int32_t>(std::min(kMost, std::ceil(seconds * kMostTokensPerSecond) + kLeastTokens));
}

// openai-whisper, decoding.py, MaximumLikelihoodRanker.
double rank_score(const CompletionOutput& answer, size_t num_tokens, const std::optional<double>& length_penalty) {
  const double length = std::max<double>(1, static_cast<double>(num_tokens));
  const double penalty = length_penalty.has_value() ? std::pow((5 + length) / 6, *length_penalty) : length;
  return answer.cumulative_logprob / penalty;
}

// The engine's fields as TranscribeOptions names them.
Status under_own_name(const Status& error) {
  const std::string param = error_param(error);
  const std::string_view own = param == "num_beams" ? "beam_size" : param == "n" ? "best_of" : "";
  return own.empty() ? error : with_param(Status(error.code(), error.message()), own);
}

}  // namespace

StatusOr<std::unique_ptr<WindowDecoder>> WindowDecoder::create(const SpeechModel& model,
                                                               const TranscribeOptions& options,
                                                               const TranscribeLimits& limits) {
  std::unique_ptr<WindowDecoder> decoder(new WindowDecoder(model, options, limits));
  RETURN_IF_ERROR(decoder->settle());
  return decoder;
}

Status WindowDecoder::settle() {
  start_ = model_.prompts->decoder_start_token_id();
  max_len_ = model_.prompts->limits().max_decoder_len;
  if (model_.generation->eos_token_ids.empty()) return invalid_argument("the model's files name no end token");
  end_of_text_ = model_.generation->eos_token_ids.front();
  ASSIGN_OR_RETURN(temperatures_, temperature_ladder(options_.temperature, options_.temperature_increment));
  RETURN_IF_ERROR(settle_tokens());
  ASSIGN_OR_RETURN(suppressed_, suppressed_tokens());
  begin_suppressed_ = model_.generation->begin_suppress_tokens;
  if (!options_.initial_prompt.empty()) {
    ASSIGN_OR_RETURN(initial_prompt_, encode_text(options_.initial_prompt, "initial_prompt"));
  }
  if (!options_.hotwords.empty()) {
    ASSIGN_OR_RETURN(hotwords_, encode_text(options_.hotwords, "hotwords"));
  }
  if (!options_.prefix.empty()) {
    ASSIGN_OR_RETURN(prefix_, encode_text(options_.prefix, "prefix"));
    // As in faster-whisper, which gives it a time.
    if (!options_.without_timestamps) prefix_.insert(prefix_.begin(), *model_.tokens->timestamp_begin());
  }
  RETURN_IF_ERROR(settle_room());
  return check_sequences();
}

// The decoder has room for previous text, the start sequence, the prefix and something to answer; the encoder for a
// window.
Status WindowDecoder::settle_room() {
  const int32_t max_encoder_len = model_.prompts->limits().max_encoder_len;
  const auto window = static_cast<size_t>(
      model_.audio->max_samples().value_or(model_.audio->sampling_rate() / int64_t{100} * kWindowFrames));
  const int64_t num_positions = model_.audio->num_positions(static_cast<int64_t>(window));
  if (num_positions > max_encoder_len) {
    return field_error("max_model_len",
                       str_cat("a window of audio has ", num_positions, " encoder positions, more than ", "the ",
                               max_encoder_len, " that --max-model-len allows"));
  }
  if (model_.tokens == nullptr) return ok_status();
  constexpr int32_t kStartAndAnswer = 8;
  const int32_t room = max_len_ - max_len_ / 2 - kStartAndAnswer;
  if (room < 0) {
    return field_error("max_model_len", str_cat("a decoder of ", max_len_, " positions has no room for a transcript"));
  }
  // faster-whisper takes the beginning of a list that is too long.
  if (options_.reference == SpeechReference::kFasterWhisper) {
    hotwords_.resize(std::min(hotwords_.size(), static_cast<size_t>(std::max<int64_t>(max_previous_tokens(), 0))));
    prefix_.resize(std::min(prefix_.size(), static_cast<size_t>(room)));
    return ok_status();
  }
  // As many as all that is carried would leave the text before a window no room.
  if (const int64_t most = max_previous_tokens() - 1; std::ssize(hotwords_) > most) {
    return field_error("hotwords", str_cat("hotwords has ", hotwords_.size(), " tokens, and at most ", most,
                                           " leave room for the text before a window"));
  }
  if (std::ssize(prefix_) <= room) return ok_status();
  return field_error(
      "prefix", str_cat("prefix has ", prefix_.size(), " tokens, and at most ", room, " leave room for an answer"));
}

// Known before the first window is decoded, not when the first falls back.
Status WindowDecoder::check_sequences() const {
  const auto check = [&](std::string_view field, int32_t count) {
    if (count <= model_.max_num_seqs) return ok_status();
    return field_error(field, str_cat(field, " ", count, ": the engine runs ", model_.max_num_seqs,
                                      " sequences at most (--max-num-seqs)"));
  };
  for (const double temperature : temperatures_) {
    RETURN_IF_ERROR(temperature > 0 ? check("best_of", options_.best_of) : check("beam_size", params(0).num_beams));
  }
  return ok_status();
}

Status WindowDecoder::settle_tokens() {
  if (model_.tokens == nullptr) {
    const std::string_view field = !options_.language.empty()                     ? "language"
                                   : !options_.languages.empty()                  ? "languages"
                                   : options_.task != "transcribe"                ? "task"
                                   : options_.word_timestamps                     ? "word_timestamps"
                                   : !options_.initial_prompt.empty()             ? "initial_prompt"
                                   : !options_.hotwords.empty()                   ? "hotwords"
                                   : !options_.prefix.empty()                     ? "prefix"
                                   : options_.mode == TranscribeMode::kSequential ? "mode"
                                                                                  : "";
    if (!field.empty()) {
      return field_error(field,
                         str_cat(field, ": this model has no transcript tokens: it transcribes windows, without ",
                                 "languages, tasks, previous text and timestamps"));
    }
    language_ = "en";
    return ok_status();
  }
  const SpeechTokens& tokens = *model_.tokens;
  if (!options_.without_timestamps && !tokens.no_timestamps.has_value()) {
    return field_error("without_timestamps", "this model has no timestamps: give without_timestamps");
  }
  if (options_.word_timestamps && !model_.has_alignment_heads) {
    return field_error(
        "word_timestamps",
        "word_timestamps needs the alignment_heads of generation_config.json, and this model's has none");
  }
  if (options_.word_timestamps && !tokens.no_timestamps.has_value()) {
    return field_error("word_timestamps", "word_timestamps: this model has no timestamps");
  }
  if (!tokens.start_of_previous.has_value()) {
    const std::string_view field = !options_.initial_prompt.empty() ? "initial_prompt"
                                   : !options_.hotwords.empty()     ? "hotwords"
                                                                    : "";
    if (!field.empty()) return field_error(field, str_cat(field, ": this model takes no text before a window"));
  }
  ASSIGN_OR_RETURN(task_token_, tokens.task_token(options_.task, "task"));
  RETURN_IF_ERROR(settle_languages());
  const bool is_default = options_.languages.empty() && tokens.default_language.has_value();
  const std::string language = !options_.language.empty()  ? options_.language
                               : tokens.languages.empty()  ? "en"
                               : is_default                ? *tokens.default_language
                               : language_ids_.size() == 1 ? std::string(tokens.language_of(language_ids_.front()))
                                                           : "";
  return language.empty() ? ok_status() : set_language(language);
}

// Of `languages`, or all.
Status WindowDecoder::settle_languages() {
  for (const std::string& language : options_.languages) {
    ASSIGN_OR_RETURN(const std::optional<int32_t> id, model_.tokens->language_token(language, "languages"));
    if (id.has_value()) language_ids_.push_back(*id);
  }
  if (options_.languages.empty()) {
    for (const SpeechTokens::Language& known : model_.tokens->languages) language_ids_.push_back(known.token_id);
  }
  std::ranges::sort(language_ids_);
  language_ids_.erase(std::unique(language_ids_.begin(), language_ids_.end()), language_ids_.end());
  return ok_status();
}

Status WindowDecoder::set_language(const std::string& language) {
  ASSIGN_OR_RETURN(language_token_, model_.tokens->language_token(language, "language"));
  language_ = speech_language_code(language);
  return ok_status();
}

// The model's list or the caller's, and the special tokens that no transcript holds (openai-whisper, decoding.py,
// _get_suppress_tokens).
StatusOr<std::vector<int32_t>> WindowDecoder::suppressed_tokens() const {
  // As there: an empty list bans nothing, special tokens neither.
  if (options_.suppress_tokens.has_value() && options_.suppress_tokens->empty()) return std::vector<int32_t>();
  std::vector<int32_t> ids;
  const std::vector<int32_t>& own = model_.generation->suppress_tokens;
  for (const int32_t id : options_.suppress_tokens.value_or(std::vector<int32_t>{-1})) {
    if (id == -1) {
      ids.insert(ids.end(), own.begin(), own.end());
    } else if (id >= 0 && id < model_.prompts->vocab_size()) {
      ids.push_back(id);
    } else {
      return field_error("suppress_tokens", str_cat("suppress_tokens: ", id, " is outside the vocabulary of ",
                                                    model_.prompts->vocab_size()));
    }
  }
  if (model_.tokens != nullptr) {
    const SpeechTokens& tokens = *model_.tokens;
    for (const auto& id : {tokens.transcribe, tokens.translate, tokens.start_of_previous, tokens.no_speech,
                           model_.tokenizer->string_to_token("<|startoflm|>")}) {
      if (id.has_value()) ids.push_back(*id);
    }
    ids.push_back(start_);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

StatusOr<std::vector<int32_t>> WindowDecoder::encode_text(const std::string& text, std::string_view field) const {
  const EncodeOptions options{.add_special_tokens = false, .side = TokenizerSide::kDecoder};
  StatusOr<std::vector<int32_t>> ids = model_.tokenizer->encode(str_cat(" ", strip_space(text)), options);
  if (!ids.ok()) return with_param(ids.status(), field);
  for (const int32_t id : *ids) {
    if (!is_text(id)) return field_error(field, str_cat(field, " holds a special token"));
  }
  return ids;
}

std::vector<int32_t> WindowDecoder::start_sequence(bool timestamps) const {
  return transcript_prompt(model_.tokens, start_, language_token_, task_token_, timestamps);
}

EncoderDecoderInputs WindowDecoder::make_inputs(const std::shared_ptr<const EncoderFeatures>& features) const {
  EncoderDecoderInputs inputs;
  inputs.set_encoder_features(features);
  inputs.cache_salt = options_.cache_salt;
  return inputs;
}

StatusOr<EncodedInput> WindowDecoder::encode(const std::shared_ptr<const EncoderFeatures>& features) const {
  EncoderDecoderInputs inputs = make_inputs(features);
  inputs.make_digests();
  for (const EncodedInput& known : language_inputs_) {
    if (known.items().front().digest == inputs.items.front().digest) return known;
  }
  num_windows_.fetch_add(1, std::memory_order_relaxed);
  num_encoder_tokens_.fetch_add(features->num_positions, std::memory_order_relaxed);
  return model_.engine->encode(std::move(inputs)).get();
}

StatusOr<RequestOutput> WindowDecoder::ask(const EncodedInput& window, std::vector<int32_t> prompt,
                                           const SamplingParams& params) const {
  RETURN_IF_ERROR(limits_.check(model_.engine->clock()));
  RequestSpec spec;
  spec.id = model_.engine->make_id("speech-");
  spec.encoded = window;
  spec.inputs.prompt_token_ids = std::move(prompt);
  spec.inputs.cache_salt = options_.cache_salt;
  spec.params = params;
  spec.deadline = limits_.deadline;
  spec.priority = limits_.priority;
  spec.trace = limits_.trace;
  num_requests_.fetch_add(1, std::memory_order_relaxed);
  StatusOr<RequestOutput> answered = answer_of(std::move(spec));
  // What the limits have ended is told in their words, not in those of one request.
  if (!answered.ok()) RETURN_IF_ERROR(limits_.check(model_.engine->clock()));
  const MutexLock lock(times_mutex_);
  if (answered.ok() && times_.queue_s < 0) times_.queue_s = answered->metrics.queue_s;
  return answered;
}

void WindowDecoder::note_tokens(const RequestOutput& output) const {
  const RequestMetrics& times = output.metrics;
  const TimePoint now = model_.engine->clock().now();
  const MutexLock lock(times_mutex_);
  const double since_first = times.total_s - times.first_token_s;
  if (times.first_token_s < 0 || since_first < 0) return;
  if (!times_.first_token.has_value()) {
    times_.first_token = now - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(since_first));
  }
  size_t longest = 0;
  for (const CompletionOutput& answer : output.outputs) longest = std::max(longest, answer.token_ids.size());
  if (longest < 2) return;
  times_.num_intervals += static_cast<int64_t>(longest) - 1;
  times_.interval_seconds += since_first;
}

// The first asks for admission, of them all, and the others wait until it has it: they would fill its queue. (If it is
// refused, that ends the transcription.)
StatusOr<RequestStream> WindowDecoder::add(RequestSpec spec) const {
  const MutexLock lock(admission_mutex_);
  spec.is_continuation = was_admitted_;
  StatusOr<RequestStream> stream = model_.engine->add_request(std::move(spec));
  was_admitted_ = was_admitted_ || stream.ok();
  return stream;
}

StatusOr<RequestOutput> WindowDecoder::answer_of(RequestSpec spec) const {
  const std::string id = spec.id;
  ASSIGN_OR_RETURN(RequestStream stream, add(std::move(spec)));
  // On the thread that asks for the stop, or here if that has been before.
  const std::stop_callback on_stop(limits_.stop_token, [&] {
    const Status aborted = model_.engine->abort(id);  // not found: it has ended
    (void)aborted;
  });
  StatusOr<RequestOutput> answered = stream.next();
  if (!answered.ok()) return under_own_name(answered.status());
  for (const CompletionOutput& answer : answered->outputs) {
    if (answer.finish_reason == FinishReason::kAbort) return absl::CancelledError("the request was aborted");
  }
  return answered;
}

StatusOr<std::vector<LanguageGuess>> WindowDecoder::detect_language(
    const std::shared_ptr<const EncoderFeatures>& features) {
  ASSIGN_OR_RETURN(const EncodedInput input, encode(features));
  language_inputs_.push_back(input);
  ASSIGN_OR_RETURN(const RequestOutput output, ask(input, {start_}, language_params()));
  ASSIGN_OR_RETURN(std::vector<LanguageGuess> guesses, language_guesses(output));
  RETURN_IF_ERROR(set_language(guesses.front().code));
  return guesses;
}

SamplingParams WindowDecoder::language_params() const {
  SamplingParams params;
  params.max_tokens = 1;
  params.allowed_token_ids = language_ids_;
  params.logprobs = static_cast<int32_t>(language_ids_.size());
  return params;
}

StatusOr<std::vector<LanguageGuess>> WindowDecoder::language_guesses(const RequestOutput& output) const {
  CHECK(output.outputs.size() == 1 && output.outputs[0].logprobs.has_value(), "no log-probabilities of the language");
  std::vector<LanguageGuess> guesses;
  for (const TokenLogprob& entry : output.outputs[0].logprobs->front()) {
    const std::string_view code = model_.tokens->language_of(entry.token_id);
    if (!code.empty()) guesses.push_back({std::string(code), std::exp(static_cast<double>(entry.logprob))});
  }
  if (guesses.empty()) return absl::InternalError("the model gave no language");
  return guesses;
}

RequestSpec WindowDecoder::language_request(const std::shared_ptr<const EncoderFeatures>& features) const {
  RequestSpec spec;
  spec.id = model_.engine->make_id("speech-");
  spec.inputs = make_inputs(features);
  spec.inputs.prompt_token_ids = {start_};
  spec.params = language_params();
  return spec;
}

RequestSpec WindowDecoder::attempt_request(const std::shared_ptr<const EncoderFeatures>& features,
                                           std::span<const int32_t> previous, double seconds,
                                           std::vector<int32_t> draft) const {
  Prompt prompt = make_prompt(previous, false);
  RequestSpec spec;
  spec.id = model_.engine->make_id("speech-");
  spec.inputs = make_inputs(features);
  spec.params = params_of(prompt, 0, seconds);
  // A loop ends early: what it says is given up.
  spec.params.max_tokens = std::min(spec.params.max_tokens, most_tokens(seconds));
  spec.params.draft_token_ids = std::move(draft);
  spec.inputs.prompt_token_ids = std::move(prompt.ids);
  return spec;
}

StatusOr<WindowAnswer> WindowDecoder::attempt_answer(const RequestOutput& output) const {
  return read_answer(output, params(0), {});
}

SamplingParams WindowDecoder::params(double temperature) const {
  SamplingParams params;
  params.eos_token_ids = model_.generation->eos_token_ids;
  params.suppress_tokens = suppressed_;
  params.begin_suppress_tokens = begin_suppressed_;
  if (model_.tokens != nullptr && !options_.without_timestamps) {
    params.timestamp_rules = model_.tokens->rules(end_of_text_);
    if (!params.timestamp_rules->max_initial_timestamp_index.has_value()) {
      params.timestamp_rules->max_initial_timestamp_index = kMaxInitialTimestamp;
    }
  }
  const int32_t beams = options_.beam_size.value_or(model_.tokens != nullptr ? kDefaultBeams : 1);
  if (temperature > 0) {
    params.temperature = static_cast<float>(temperature);
    params.n = params.best_of = options_.best_of;
  } else if (beams > 1) {
    params.num_beams = beams;
    params.patience = options_.patience.value_or(1);
    params.patience_length_penalty = options_.length_penalty;
    params.patience_ends_by_rank = options_.reference == SpeechReference::kFasterWhisper;
  }
  return params;
}

StatusOr<WindowAnswer> WindowDecoder::decode_at(const EncodedInput& window, const std::vector<int32_t>& prompt,
                                                const SamplingParams& params) const {
  ASSIGN_OR_RETURN(const RequestOutput output, ask(window, prompt, params));
  note_tokens(output);
  return read_answer(output, params, std::span(prompt).last(static_cast<size_t>(params.num_given_tokens)));
}

// Of the first num_tokens tokens.
std::vector<float> WindowDecoder::logprobs_of(const CompletionOutput& answer, size_t num_tokens) {
  CHECK(answer.logprobs.has_value() && answer.logprobs->size() >= num_tokens, "no log-probabilities of tokens");
  std::vector<float> logprobs;
  for (size_t i = 0; i < num_tokens; ++i) {
    const PositionLogprobs& entries = (*answer.logprobs)[i];
    const auto chosen = std::ranges::find(entries, answer.token_ids[i], &TokenLogprob::token_id);
    CHECK(chosen != entries.end(), "no log-probability of token ", answer.token_ids[i]);
    logprobs.push_back(chosen->logprob);
  }
  return logprobs;
}

StatusOr<WindowAnswer> WindowDecoder::read_answer(const RequestOutput& output, const SamplingParams& params,
                                                  std::span<const int32_t> given) const {
  if (output.outputs.empty()) return absl::InternalError("the engine gave no answer");
  const auto tokens_of = [&](const CompletionOutput& answer) {
    const auto end = std::ranges::find(answer.token_ids, end_of_text_);
    return std::vector<int32_t>(answer.token_ids.begin(), end);
  };
  const auto score_of = [&](const CompletionOutput& answer) {
    return rank_score(answer, given.size() + tokens_of(answer).size(), options_.length_penalty);
  };
  const CompletionOutput* best = &output.outputs.front();
  if (params.num_beams == 1) {
    for (const CompletionOutput& answer : output.outputs) {
      if (score_of(answer) > score_of(*best)) best = &answer;
    }
  }
  WindowAnswer answer;
  answer.tokens = tokens_of(*best);
  answer.num_generated = static_cast<int64_t>(best->token_ids.size());
  if (options_.token_logprobs) {
    answer.logprobs = logprobs_of(*best, answer.tokens.size());
    answer.logprobs.insert(answer.logprobs.begin(), given.size(), 0);
  }
  answer.tokens.insert(answer.tokens.begin(), given.begin(), given.end());
  answer.temperature = static_cast<double>(params.temperature);
  answer.scores.avg_logprob = best->cumulative_logprob / static_cast<double>(answer.tokens.size() + 1);
  answer.scores.compression_ratio = compression_ratio(strip_space(whole_text(answer.tokens)));
  if (output.probe_logprob.has_value()) {
    answer.scores.no_speech_prob = std::exp(static_cast<double>(*output.probe_logprob));
  }
  return answer;
}

WindowDecoder::Prompt WindowDecoder::make_prompt(std::span<const int32_t> previous, bool with_prefix) const {
  std::vector<int32_t> prompt;
  if (model_.tokens != nullptr && !previous.empty() && model_.tokens->start_of_previous.has_value()) {
    prompt.push_back(*model_.tokens->start_of_previous);
    prompt.insert(prompt.end(), previous.begin(), previous.end());
  }
  const auto start_index = static_cast<int32_t>(prompt.size());
  const std::vector<int32_t> start = start_sequence(!options_.without_timestamps);
  prompt.insert(prompt.end(), start.begin(), start.end());
  if (!with_prefix) return {std::move(prompt), start_index, 0};
  prompt.insert(prompt.end(), prefix_.begin(), prefix_.end());
  return {std::move(prompt), start_index, static_cast<int32_t>(prefix_.size())};
}

SamplingParams WindowDecoder::params_of(const Prompt& prompt, double temperature, double seconds) const {
  SamplingParams asked = params(temperature);
  // The last token takes no position: nothing follows it. The reference takes it, too (decoding.py, _main_loop).
  const int32_t room = max_len_ + 1 - static_cast<int32_t>(prompt.ids.size());
  asked.max_tokens = std::min(room, model_.tokens != nullptr ? max_len_ / 2 : most_tokens(seconds));
  if (options_.token_logprobs) asked.logprobs = 0;
  asked.num_given_tokens = prompt.num_given;
  if (model_.tokens != nullptr && model_.tokens->no_speech.has_value()) {
    asked.probe = PromptProbe{prompt.start_index, *model_.tokens->no_speech};
  }
  return asked;
}

StatusOr<WindowAnswer> WindowDecoder::decode(const EncodedInput& window, std::span<const int32_t> previous,
                                             bool with_prefix, double seconds, uint64_t window_key) const {
  const Prompt prompt = make_prompt(previous, with_prefix);
  WindowAnswer answer;
  for (size_t i = 0; i < temperatures_.size(); ++i) {
    SamplingParams asked = params_of(prompt, temperatures_[i], seconds);
    asked.seed = options_.seed * 0x9e3779b97f4a7c15u + window_key * kMostTemperatures + i;
    // Of a window that is decoded again much comes again.
    if (i > 0 && asked.num_beams == 1) {
      asked.draft_token_ids.assign(answer.tokens.begin() + prompt.num_given, answer.tokens.end());
    }
    ASSIGN_OR_RETURN(answer, decode_at(window, prompt.ids, asked));
    answer.temperature = temperatures_[i];
    if (!needs_fallback(answer.scores, options_.thresholds)) break;
    if (i + 1 < temperatures_.size()) num_fallbacks_.fetch_add(1, std::memory_order_relaxed);
  }
  num_prompt_tokens_.fetch_add(static_cast<int64_t>(prompt.ids.size()), std::memory_order_relaxed);
  num_generated_tokens_.fetch_add(answer.num_generated, std::memory_order_relaxed);
  return answer;
}

StatusOr<std::vector<WordTiming>> WindowDecoder::align(const EncodedInput& window, std::span<const int32_t> text_tokens,
                                                       int64_t num_frames) const {
  if (text_tokens.empty()) return std::vector<WordTiming>();
  std::vector<int32_t> prompt = start_sequence(false);
  const size_t first = prompt.size();
  prompt.insert(prompt.end(), text_tokens.begin(), text_tokens.end());
  prompt.push_back(end_of_text_);
  SamplingParams params;
  params.max_tokens = 1;
  params.score_only = true;
  params.prompt_logprobs = 0;
  params.prompt_logprobs_vocab = end_of_text_;
  params.capture_cross_attention = true;
  ASSIGN_OR_RETURN(const RequestOutput output, ask(window, prompt, params));
  CHECK(output.cross_attention != nullptr && output.prompt_logprobs.has_value(), "no attention of the words");
  std::vector<float> probabilities;
  for (size_t i = 0; i < text_tokens.size(); ++i) {
    const auto& entries = (*output.prompt_logprobs)[first + i];
    float logprob = -INFINITY;
    for (const TokenLogprob& entry : *entries) {
      if (entry.token_id == text_tokens[i]) logprob = entry.logprob;
    }
    probabilities.push_back(std::exp(logprob));
  }
  AlignmentInput input;
  input.attention = output.cross_attention->values;
  input.num_heads = output.cross_attention->num_heads;
  input.num_tokens = output.cross_attention->num_tokens;
  input.num_positions = output.cross_attention->num_positions;
  input.num_prefix_tokens = static_cast<int64_t>(first) - 1;  // without that of no timestamps
  input.num_frames = num_frames;
  input.text_tokens = text_tokens;
  input.probabilities = probabilities;
  const auto append = [&](int32_t token, std::string& out) { model_.tokenizer->append_bytes({}, token, out); };
  return align_words(input, append, word_split(language_));
}

std::string WindowDecoder::text(std::span<const int32_t> tokens) const { return text_below(tokens, end_of_text_); }

std::string WindowDecoder::whole_text(std::span<const int32_t> tokens) const {
  return text_below(tokens, end_of_whole_text());
}

int32_t WindowDecoder::end_of_whole_text() const {
  const bool has_timestamps = model_.tokens != nullptr && model_.tokens->no_timestamps.has_value();
  return has_timestamps ? *model_.tokens->timestamp_begin() : model_.prompts->vocab_size();
}

std::vector<size_t> WindowDecoder::text_ends(std::span<const int32_t> tokens) const {
  std::vector<size_t> ends;
  ends.reserve(tokens.size());
  std::vector<int32_t> shown;
  std::string bytes;
  for (const int32_t id : tokens) {
    const bool is_shown = model_.tokens == nullptr ? !model_.tokenizer->is_special(id) : id < end_of_whole_text();
    if (is_shown) {
      model_.tokenizer->append_bytes(shown, id, bytes);
      shown.push_back(id);
    }
    ends.push_back(bytes.size());
  }
  return ends;
}

std::string WindowDecoder::text_below(std::span<const int32_t> tokens, int32_t end) const {
  if (model_.tokens == nullptr) return model_.tokenizer->decode(tokens, true);
  std::vector<int32_t> ids;
  std::ranges::copy_if(tokens, std::back_inserter(ids), [&](int32_t id) { return id < end; });
  return model_.tokenizer->decode(ids, false);
}

TranscribeCounts WindowDecoder::counts() const {
  return {num_windows_.load(),       num_requests_.load(),         num_fallbacks_.load(),
          num_prompt_tokens_.load(), num_generated_tokens_.load(), num_encoder_tokens_.load()};
}

TranscribeTimes WindowDecoder::times() const {
  const MutexLock lock(times_mutex_);
  return times_;
}

}  // namespace transept
