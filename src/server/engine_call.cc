#include "server/engine_call.h"

#include <malloc.h>

#include <algorithm>
#include <exception>

#include "base/log.h"
#include "base/mutex.h"
#include "disagg/instance_calls.h"
#include "server/cache_salt.h"
#include "server/replies.h"
#include "server/silent_answer.h"

namespace transept {
namespace {

// What a prompt's outputs come to: of a stream each holds what is new alone.
class Tally final {
 public:
  void add(const RequestOutput& output) {
    for (const CompletionOutput& piece : output.outputs) {
      const auto index = static_cast<size_t>(piece.index);
      if (answers_.size() <= index) answers_.resize(index + 1);
      answers_[index].num_tokens += static_cast<int64_t>(piece.token_ids.size());
      if (piece.finish_reason != FinishReason::kNone) answers_[index].finish_reason = piece.finish_reason;
    }
  }

  // `last` was added.
  FinishedRequest finished(const RequestOutput& last) const {
    const RequestMetrics& times = last.metrics;
    FinishedRequest request{.queue_s = times.queue_s, .first_token_s = times.first_token_s, .total_s = times.total_s};
    request.num_prompt_tokens =
        static_cast<int64_t>(last.encoder_prompt_token_ids.size() + last.prompt_token_ids.size());
    int64_t longest = 0;
    for (const Answer& answer : answers_) {
      request.num_generated_tokens += answer.num_tokens;
      longest = std::max(longest, answer.num_tokens);
      request.finish_reasons.push_back(answer.finish_reason);
    }
    if (answers_.empty()) request.finish_reasons = {FinishReason::kStop};  // a score generates nothing
    if (times.first_token_s >= 0 && times.total_s >= times.first_token_s) {
      request.num_intervals = longest - 1;
      request.interval_seconds = times.total_s - times.first_token_s;
    }
    return request;
  }

 private:
  struct Answer {
    int64_t num_tokens = 0;
    FinishReason finish_reason = FinishReason::kNone;
  };
  std::vector<Answer> answers_;
};

// Owned by the callbacks of its own streams and by whoever runs it: it goes with the last stream.
class Run final : public std::enable_shared_from_this<Run> {
 public:
  Run(const ServerContext& context, ApiCallPtr call, std::shared_ptr<EngineCall> route)
      : context_(context), call_(std::move(call)), route_(std::move(route)) {}

  // `silent`: where there is an output, it is the prompt's, and the engine does not get its spec.
  void start(std::vector<RequestSpec> specs, std::vector<std::optional<RequestOutput>> silent);

 private:
  void ready(size_t index);
  void pump();
  std::vector<size_t> take_ready();
  void read(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void pass_on(size_t index, RequestOutput output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void cancel();

  const ServerContext& context_;
  ApiCallPtr call_;

  Mutex ready_mutex_;  // what on_ready takes: never held while a stream is destroyed
  std::vector<size_t> ready_ ABSL_GUARDED_BY(ready_mutex_);
  bool is_scheduled_ ABSL_GUARDED_BY(ready_mutex_) = false;

  Mutex mutex_;
  std::shared_ptr<EngineCall> route_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::optional<RequestStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tally> tallies_ ABSL_GUARDED_BY(mutex_);
  size_t num_open_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

void Run::start(std::vector<RequestSpec> specs, std::vector<std::optional<RequestOutput>> silent) {
  {
    const MutexLock lock(mutex_);
    num_open_ = specs.size();
    streams_.resize(specs.size());
    tallies_.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      if (i < silent.size() && silent[i].has_value()) {
        pass_on(i, *std::move(silent[i]));
        continue;
      }
      specs[i].on_ready = [self = shared_from_this(), i] { self->ready(i); };
      StatusOr<RequestStream> stream = context_.engine.add_request(std::move(specs[i]));
      if (!stream.ok()) return end(stream.status());
      streams_[i].emplace(std::move(stream).value());
    }
    call_->places.release();
    call_->more_places.release();
  }
  call_->responder->on_gone([weak = weak_from_this()] {
    if (const std::shared_ptr<Run> self = weak.lock()) self->cancel();
  });
}

void Run::ready(size_t index) {
  {
    const MutexLock lock(ready_mutex_);
    ready_.push_back(index);
    if (is_scheduled_) return;
    is_scheduled_ = true;
  }
  context_.answers.post([self = shared_from_this()] { self->pump(); });
}

std::vector<size_t> Run::take_ready() {
  const MutexLock lock(ready_mutex_);
  if (ready_.empty()) is_scheduled_ = false;
  return std::exchange(ready_, {});
}

void Run::pump() {
  const MutexLock lock(mutex_);
  try {
    for (std::vector<size_t> indices = take_ready(); !indices.empty(); indices = take_ready()) {
      for (const size_t index : indices) read(index);
    }
  } catch (const std::exception& exception) {  // no memory: nobody would ever look again
    end(absl::InternalError(exception.what()));
  }
}

void Run::read(size_t index) {
  while (!is_over_ && streams_[index].has_value()) {
    std::optional<StatusOr<RequestOutput>> output = streams_[index]->try_next();
    if (!output.has_value()) return;
    if (!output->ok()) return end(output->status());
    pass_on(index, std::move(*output).value());
  }
}

void Run::pass_on(size_t index, RequestOutput output) {
  const bool is_finished = output.finished;
  tallies_[index].add(output);
  if (is_finished) {
    streams_[index].reset();
    context_.admission.note_answer();
    context_.metrics.count_request(tallies_[index].finished(output));
  }
  route_->on_output(index, std::move(output));
  if (is_finished && --num_open_ == 0) end(ok_status());
}

void Run::end(const Status& status) {
  if (is_over_) return;
  is_over_ = true;
  for (auto& stream : streams_) stream.reset();
  call_->charge.release();
  route_->on_end(status);
  route_.reset();
}

void Run::cancel() {
  const MutexLock lock(mutex_);
  if (is_over_) return;
  is_over_ = true;
  for (auto& stream : streams_) stream.reset();
  context_.metrics.count_aborted(static_cast<int32_t>(num_open_));
  call_->charge.release();
  route_.reset();
}

}  // namespace

MediaAccess media_access(const ServerContext& context) {
  MediaAccess access;
  access.local_paths = !context.options.allowed_local_media_path.empty();
  access.allowed_path = context.options.allowed_local_media_path;
  return access;
}

Status at_prompt(const Status& status, size_t index, size_t count) {
  static constexpr std::string_view kSides[] = {"prompt",         "prompt_token_ids", "prompt_tokens",
                                                "encoder_prompt", "multi_modal_data", ""};
  const std::string param = error_param(status);
  if (count < 2 || (param != "decoder_prompt" && std::ranges::find(kSides, param) == std::end(kSides))) return status;
  const std::string place = str_cat(param == "decoder_prompt" ? param : "prompt", "[", index, "]");
  return with_param(absl::Status(status.code(), str_cat(place, ": ", error_message(status))), place);
}

namespace {

// Beams show their text at the end alone: whoever asks for them and for a stream wants what cannot be.
Status check_stream(const ParsedRequest& parsed, const SamplingParams& params) {
  const bool asks_for_beams =
      parsed.sampling.num_beams.value_or(1) > 1 || parsed.sampling.use_beam_search.value_or(false);
  if (asks_for_beams && params.num_beams > 1) {
    return field_error("stream",
                       "a beam search is not certain of its text before its end: leave stream or the beams out");
  }
  if (params.num_beams <= 1 && params.best_of > params.n) {
    return field_error("stream", "the best answers are not known before the end: leave stream or best_of out");
  }
  return ok_status();
}

struct Prepared {
  std::vector<RequestSpec> specs;
  std::vector<std::optional<RequestOutput>> silent;  // of specs, where nobody speaks
  int64_t num_tokens = 0;
  double audio_seconds = 0;
  int64_t image_bytes = 0;
};

// Texts that are cut to size are tokenised whatever their length (PromptProcessor has a limit for one), and the worker
// is held for all of a request: a second for a megabyte of spaces.
Status check_cut_texts(const ParsedRequest& parsed, const std::vector<EncoderDecoderPrompt>& prompts) {
  constexpr size_t kMostBytes = 2 << 20;
  if (!parsed.prompt_options.truncate_prompt_tokens.has_value()) return ok_status();
  size_t num_bytes = 0;
  for (const EncoderDecoderPrompt& prompt : prompts) {
    if (const auto* text = std::get_if<TextPrompt>(&prompt.encoder.content)) num_bytes += text->text.size();
  }
  if (num_bytes <= kMostBytes) return ok_status();
  return field_error("truncate_prompt_tokens",
                     str_cat("truncate_prompt_tokens: the prompts have ", num_bytes, " bytes in all; at most ",
                             kMostBytes, " of texts that are cut are taken at once: send them in parts"));
}

StatusOr<Prepared> prepare_all(const ServerContext& context, ApiCall& call, ParsedRequest parsed,
                               std::vector<EncoderDecoderPrompt> prompts, const EngineCallOptions& options) {
  Prepared all;
  PrepareOptions prepare;
  prepare.engine_seed = context.model.config.seed;
  prepare.score_only = options.score_only;
  prepare.media = media_access(context);
  // Pictures are small in a body and large in memory: each is charged to the bodies' budget before it is decoded.
  prepare.media.charge = [&, own = call.body_charge.bytes()](int64_t bytes) {
    return context.admission.charge_body(call.body_charge, own + all.image_bytes + bytes);
  };
  RETURN_IF_ERROR(take_prediction(*context.model.prompts, parsed));
  RETURN_IF_ERROR(check_cut_texts(parsed, prompts));
  // Once for all: texts of megabytes would keep a worker busy for minutes if each of 512 prompts tokenised them.
  std::vector<std::vector<int32_t>> bad_words;
  if (auto words = std::exchange(parsed.prompt_options.bad_words, std::nullopt); words.has_value()) {
    ASSIGN_OR_RETURN(bad_words, context.model.prompts->bad_words_ids(*words));
  }
  ASSIGN_OR_RETURN(const std::string salt, cache_salt_of(context, call.http, parsed.cache_salt));
  const auto trace = std::make_shared<const TraceContext>(trace_of(call.http));
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (call.responder->is_gone()) return absl::CancelledError("the client has gone");
    const std::optional<TimePoint> deadline = call.deadline(context);
    if (deadline.has_value() && context.clock.now() >= *deadline) {
      return absl::DeadlineExceededError("the request was not begun before its deadline");
    }
    parsed.prompt = std::move(prompts[i]);
    RequestSpec spec;
    spec.id = context.engine.make_id(call.http.request_id);
    prepare.request_key = seed_key(spec.id);
    // The engine finds rows by the name of their request.
    if (!options.injected.empty() && options.injected[i].has_value()) spec.id = options.injected[i]->input.request_id;
    StatusOr<PreparedRequest> prepared =
        prepare_request(parsed, *context.model.prompts, context.model.generation, prepare);
    if (!prepared.ok()) return at_prompt(prepared.status(), i, prompts.size());
    if (options.stream) RETURN_IF_ERROR(check_stream(parsed, prepared->params));
    spec.inputs = std::move(prepared->inputs);
    spec.inputs.cache_salt = salt;
    spec.params = std::move(prepared->params);
    spec.params.skip_cumulative_logprob = true;  // no answer has it
    auto& banned = spec.params.bad_words_ids;
    banned.insert(banned.end(), bad_words.begin(), bad_words.end());
    spec.stream = options.stream;
    spec.deadline = deadline;
    spec.trace = trace;
    all.num_tokens += spec.inputs.num_encoder_tokens() + static_cast<int64_t>(spec.inputs.prompt_token_ids.size());
    for (const EncoderItem& item : spec.inputs.items) {
      if (item.features == nullptr) continue;
      all.audio_seconds += item.features->audio_seconds;
      if (item.features->modality == Modality::kImage) {
        all.image_bytes += static_cast<int64_t>(item.features->values.size() * sizeof(float));
      }
    }
    all.specs.push_back(std::move(spec));
  }
  return all;
}

// Pictures and their bodies leave pages of what prepared them, which would be taken beside what Admission counts. It
// takes milliseconds, a hundredth of the time of a picture that is worth it.
constexpr int64_t kManyImageBytes = 4 << 20;
void give_free_pages_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace

void start_engine_call(const ServerContext& context, const ApiCallPtr& call, const ParsedRequest& parsed,
                       std::vector<EncoderDecoderPrompt> prompts, const EngineCallOptions& options,
                       std::shared_ptr<EngineCall> route) {
  if (prompts.size() > 1) {
    StatusOr<Admission::Places> places = context.admission.take_places(static_cast<int32_t>(prompts.size()) - 1);
    if (!places.ok()) {
      if (absl::IsResourceExhausted(places.status())) context.metrics.count_refused("queue");
      return route->on_end(places.status());
    }
    call->more_places = std::move(places).value();
  }
  StatusOr<Prepared> prepared = prepare_all(context, *call, parsed, std::move(prompts), options);
  if (!prepared.ok()) return route->on_end(prepared.status());
  StatusOr<Admission::Charge> charge = context.admission.take_budget(prepared->num_tokens, prepared->audio_seconds);
  if (!charge.ok()) {
    context.metrics.count_refused("budget");
    return route->on_end(charge.status());
  }
  call->charge = std::move(charge).value();
  if (prepared->audio_seconds > 0) context.metrics.count_audio_seconds(prepared->audio_seconds);
  if (prepared->image_bytes >= kManyImageBytes) give_free_pages_back();
  for (size_t i = 0; i < prepared->specs.size(); ++i) {
    route->on_prompt(i, prepared->specs[i].inputs);
    prepared->silent.push_back(silent_answer(context, parsed, call->arrival, prepared->specs[i]));
  }
  std::make_shared<Run>(context, call, std::move(route))
      ->start(std::move(prepared->specs), std::move(prepared->silent));
}

void run_requests(const ServerContext& context, const ApiCallPtr& call, std::vector<RequestSpec> specs,
                  std::shared_ptr<EngineCall> route) {
  std::make_shared<Run>(context, call, std::move(route))->start(std::move(specs), {});
}

void Usage::add(const RequestOutput& finished) {
  add_request(finished);
  for (const CompletionOutput& output : finished.outputs) {
    completion_tokens += static_cast<int64_t>(output.token_ids.size());
  }
}

void Usage::add_request(const RequestOutput& finished) {
  encoder_tokens += static_cast<int64_t>(finished.encoder_prompt_token_ids.size());
  decoder_tokens += static_cast<int64_t>(finished.prompt_token_ids.size());
  audio_seconds += finished.audio_seconds;
  cached_tokens += std::max(finished.metrics.num_cached_tokens - finished.metrics.num_cached_media, 0);
  cached_media_tokens += finished.metrics.num_cached_media;
  accepted_prediction_tokens += finished.num_accepted_drafts;
  rejected_prediction_tokens += finished.num_rejected_drafts;
}

Json Usage::to_json() const {
  Json::Object details;
  details.emplace_back("encoder_tokens", encoder_tokens);
  details.emplace_back("decoder_tokens", decoder_tokens);
  details.emplace_back("cached_tokens", cached_tokens);
  if (cached_media_tokens > 0) details.emplace_back("cached_media_tokens", cached_media_tokens);
  if (image_tokens > 0) details.emplace_back("image_tokens", image_tokens);
  if (audio_seconds > 0) details.emplace_back("audio_seconds", audio_seconds);
  Json::Object usage;
  usage.emplace_back("prompt_tokens", encoder_tokens + decoder_tokens);
  usage.emplace_back("completion_tokens", completion_tokens);
  usage.emplace_back("total_tokens", encoder_tokens + decoder_tokens + completion_tokens);
  usage.emplace_back("prompt_tokens_details", std::move(details));
  if (accepted_prediction_tokens + rejected_prediction_tokens > 0) {
    Json::Object guesses;
    guesses.emplace_back("accepted_prediction_tokens", accepted_prediction_tokens);
    guesses.emplace_back("rejected_prediction_tokens", rejected_prediction_tokens);
    usage.emplace_back("completion_tokens_details", std::move(guesses));
  }
  return Json(std::move(usage));
}

}  // namespace transept
