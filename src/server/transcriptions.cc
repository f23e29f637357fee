#include "server/transcriptions.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "disagg/instance_calls.h"
#include "request/result_json.h"
#include "server/cache_salt.h"
#include "server/replies.h"
#include "server/transcription_ask.h"
#include "server/transcription_form.h"
#include "server/transcription_reply.h"
#include "server/transcription_stream.h"

namespace transept {
namespace {

// OpenAI's least length.
constexpr double kMinSeconds = 0.1;
// Audio without a stated length waits so long for its charge: others of its kind hold as much until their first passes
// end.
constexpr auto kWaitForBudget = std::chrono::seconds(2);
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

// One request, on its thread.
class Transcription final {
 public:
  Transcription(const ServerContext& context, const ApiCallPtr& call, bool translate)
      : context_(context), call_(call), translate_(translate) {
    limits_ = {.stop_token = stop_.get_token(),
               .deadline = call->deadline(context),
               .trace = std::make_shared<const TraceContext>(trace_of(call->http))};
    begin_ = context.clock.now();
  }

  void run() {
    call_->responder->on_gone([stop = stop_]() mutable { stop.request_stop(); });
    const Status status = answer();
    call_->charge.release();
    if (status.ok()) return;
    if (call_->responder->is_gone()) return context_.metrics.count_aborted(1);  // hears nothing, whatever ended
    if (stream_.has_value() && stream_->has_begun()) {
      stream_->fail(status);
    } else {
      reply_error(context_, *call_, status);
    }
  }

 private:
  Status answer();
  Status check_model() const;
  StatusOr<TranscriptionForm> read_form();
  StatusOr<double> look_at(const AudioBytes& audio) const;
  Status take_charge(double stated_seconds);
  StatusOr<TranscribeResult> transcribe(const AudioBytes& audio, const TranscribeOptions& options);
  void count(const TranscribeResult& result) const;

  const ServerContext& context_;
  const ApiCallPtr& call_;
  const bool translate_;
  std::stop_source stop_;
  TranscribeLimits limits_;
  TimePoint begin_{};
  std::optional<TranscriptionStream> stream_;  // of a streamed answer
};

Status Transcription::answer() {
  RETURN_IF_ERROR(limits_.check(context_.clock));  // while it waited
  RETURN_IF_ERROR(check_model());
  StatusOr<TranscriptionForm> form = read_form();
  if (absl::IsResourceExhausted(form.status())) {
    call_->responder->respond(
        http_error_response(413, error_message(form.status()), "request_too_large", error_param(form.status())));
    return ok_status();
  }
  RETURN_IF_ERROR(form.status());
  RETURN_IF_ERROR(model_name(context_, form->request.body.model).status());
  ASSIGN_OR_RETURN(TranscriptionAsk ask, transcription_ask(context_, form->request, translate_));
  ASSIGN_OR_RETURN(ask.options.cache_salt, cache_salt_of(context_, call_->http, form->request.cache_salt));
  ASSIGN_OR_RETURN(const double seconds, look_at(form->audio));
  RETURN_IF_ERROR(take_charge(seconds));
  if (ask.stream) stream_.emplace(context_, call_, ask);
  ASSIGN_OR_RETURN(const TranscribeResult result, transcribe(form->audio, ask.options));
  count(result);
  if (stream_.has_value()) {
    stream_->finish(result);
  } else {
    call_->responder->respond(transcription_reply(result.transcript, ask));
  }
  return ok_status();
}

// Before a byte of the body is looked at. What was found at loading names the model's folder, which is nobody else's.
Status Transcription::check_model() const {
  if (context_.speech != nullptr) return ok_status();
  std::string why = error_message(context_.why_no_speech);
  const std::string folder = str_cat(context_.model.config.model, ": ");
  if (why.starts_with(folder)) why.erase(0, folder.size());
  return with_param(unimplemented(why.empty() ? "this model does not take audio" : why), "model");
}

StatusOr<TranscriptionForm> Transcription::read_form() {
  const FieldRoutes route = translate_ ? field_routes::kAudioTranslations : field_routes::kTranscriptions;
  ASSIGN_OR_RETURN(TranscriptionForm form,
                   read_transcription_form(call_->http, std::move(call_->http.body), route, context_.options));
  if (form.request.num_unknown_fields > 0) context_.metrics.count_unknown_fields(form.request.num_unknown_fields);
  if (context_.options.log_prompts) context_.log.log_prompt(call_->http.request_id, form.fields.dump());
  return form;
}

// Its length by the header; 0: it does not say. What is no audio, too short or too long by
// its header is refused here, before anything is computed.
StatusOr<double> Transcription::look_at(const AudioBytes& audio) const {
  const int32_t rate = context_.speech->audio->sampling_rate();
  const double most = context_.options.max_audio_seconds;
  const StatusOr<std::unique_ptr<AudioReader>> reader = AudioReader::open(audio, {rate, most});
  if (!reader.ok()) return as_form_error(reader.status());
  std::vector<float> beginning(static_cast<size_t>(kMinSeconds * rate));
  const StatusOr<size_t> count = (*reader)->read(beginning);
  if (!count.ok()) return as_form_error(count.status());
  if (*count < beginning.size()) {
    return field_error(
        "file", str_cat("file: lasts ", static_cast<double>(*count) / rate, " s; the least is ", kMinSeconds, " s"));
  }
  return std::clamp((*reader)->info().duration_seconds, 0.0, most);
}

// Charges the stated length, or the most that there may be where none is stated (a browser's WebM); transcribe() puts
// right what the first pass finds.
Status Transcription::take_charge(double stated_seconds) {
  const bool is_stated = stated_seconds > 0;
  const double seconds = is_stated ? stated_seconds : context_.options.max_audio_seconds;
  const auto latest = std::chrono::steady_clock::now() + kWaitForBudget;
  StatusOr<Admission::Charge> charge = context_.admission.take_budget(0, seconds);
  while (!charge.ok() && !is_stated && std::chrono::steady_clock::now() < latest) {
    std::this_thread::sleep_for(kBetweenLooks);
    RETURN_IF_ERROR(limits_.check(context_.clock));
    charge = context_.admission.take_budget(0, seconds);
  }
  if (!charge.ok()) context_.metrics.count_refused("budget");
  ASSIGN_OR_RETURN(call_->charge, std::move(charge));
  return ok_status();
}

StatusOr<TranscribeResult> Transcription::transcribe(const AudioBytes& audio, const TranscribeOptions& options) {
  TranscribeObserver observer;
  observer.on_duration = [this](double seconds) { context_.admission.charge_audio(call_->charge, seconds); };
  if (stream_.has_value()) {
    observer.on_language = [this](const std::vector<LanguageGuess>&) { stream_->begin(); };
    observer.on_segment = [this](const Segment& segment) { stream_->add(segment); };
    observer.on_progress = [this](double done, double all) { stream_->progress(done, all); };
  }
  StatusOr<TranscribeResult> result =
      Transcriber(*context_.speech).transcribe(AudioSource(audio), options, observer, limits_);
  if (!result.ok()) return as_form_error(result.status());
  return result;
}

// One request, as its caller sees it: the engine's are as many as its windows took.
void Transcription::count(const TranscribeResult& result) const {
  const TranscribeTimes& times = result.times;
  context_.metrics.count_audio_seconds(result.transcript.duration);
  context_.admission.note_answer();
  FinishedRequest request{.total_s = seconds(context_.clock.now() - call_->arrival)};
  request.queue_s = seconds(begin_ - call_->arrival) + std::max(0.0, times.queue_s);
  if (times.first_token.has_value()) request.first_token_s = seconds(*times.first_token - call_->arrival);
  request.num_prompt_tokens = result.counts.num_encoder_tokens + result.counts.num_prompt_tokens;
  request.num_generated_tokens = result.counts.num_generated_tokens;
  request.num_intervals = times.num_intervals;
  request.interval_seconds = times.interval_seconds;
  request.finish_reasons = {FinishReason::kStop};
  context_.metrics.count_request(request);
}

}  // namespace

void handle_transcription(const ServerContext& context, const ApiCallPtr& call, bool translate) {
  call->places.release();  // it waits no longer; the engine counts its windows
  if (call->responder->is_gone()) return;
  Transcription(context, call, translate).run();
}

}  // namespace transept
