#include "server/realtime_socket.h"

#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "base/log.h"
#include "server/realtime_output.h"

namespace transept {
namespace {

// The buffer of samples is kept for the next event up to this size.
constexpr size_t kMaxKeptSamples = size_t{1} << 16;

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// All but the handler itself, which the connection owns: the hub looks after it, too. Thread-safe. No call of the
// session's observer takes `mutex_`.
class Conversation final : public RealtimeHub::Session, public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(RealtimeHub& hub, RealtimeSocketOptions options)
      : hub_(hub),
        options_(std::move(options)),
        output_(std::make_shared<RealtimeOutput>(*options_.dialect, RealtimeIds(), hub.counts(), hub.metrics(),
                                                 hub.clock())),
        dialect_(options_.dialect),
        config_(options_.config) {}

  void open(std::shared_ptr<WebSocket> socket);
  // In the order of the calls, here or on another thread.
  void on_message(std::string message, bool is_text);
  void drain();
  void close();
  void look() override;

 private:
  struct Message {
    std::string bytes;
    bool is_text = false;
  };

  // Whose turn a message is: at once; it is in the queue; it is the first there.
  enum class Turn { kAtOnce, kQueued, kFirst };

  Turn turn_of(Message& message, bool is_long);
  void take(const Message& message);
  void take_queued();
  std::optional<Message> next_queued();
  void take_text(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RealtimeFailure choose(const RealtimeMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RealtimeFailure obey(const RealtimeMessage& message, ClientEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RealtimeFailure append(std::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RealtimeFailure commit(bool may_be_empty) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RealtimeFailure update(const RealtimeMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LiveOptions live_options(const RealtimeConfig& config) const;
  RealtimeError told(const Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void answer(const RealtimeFailure& error, const std::string& event_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes nothing further, and closes once what is owed is sent.
  void end(const RealtimeError& why, uint16_t code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RealtimeHub& hub_;
  const RealtimeSocketOptions options_;
  const std::shared_ptr<RealtimeOutput> output_;

  Mutex queue_mutex_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(queue_mutex_);  // two at most, as the socket is not read
  bool is_taking_ ABSL_GUARDED_BY(queue_mutex_) = false;     // elsewhere

  Mutex mutex_;
  const RealtimeDialect* dialect_ ABSL_GUARDED_BY(mutex_);
  RealtimeConfig config_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RealtimeSession> session_ ABSL_GUARDED_BY(mutex_);  // null: not open, or closed
  RealtimeAudio audio_ ABSL_GUARDED_BY(mutex_);
  std::vector<int16_t> samples_ ABSL_GUARDED_BY(mutex_);
  bool has_audio_ ABSL_GUARDED_BY(mutex_) = false;  // since the last commit or clear
  bool knows_dialect_ ABSL_GUARDED_BY(mutex_) = false;
  int num_errors_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  TimePoint expiry_ ABSL_GUARDED_BY(mutex_){};
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
};

LiveOptions Conversation::live_options(const RealtimeConfig& config) const {
  LiveOptions options = config.live_options();
  options.max_item_seconds = hub_.options().max_item_seconds;
  options.cache_salt = options_.cache_salt;
  return options;
}

void Conversation::open(std::shared_ptr<WebSocket> socket) {
  const MutexLock lock(mutex_);
  const int64_t now = unix_seconds();
  const double length = hub_.options().session_seconds;
  expiry_ = hub_.clock().now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(length));
  StatusOr<std::unique_ptr<RealtimeSession>> session = hub_.speech().create(live_options(config_), output_);
  RealtimeView view;
  view.created_at = now;
  view.expires_at = now + static_cast<int64_t>(length);
  view.config = config_;
  output_->open(std::move(socket), std::move(view));
  if (session.ok()) {
    session_ = std::move(session).value();
    return;
  }
  log_error("live session, request ", options_.request_id, ": ", error_message(session.status()));
  output_->error(realtime_error(session.status()), "");
  output_->close(WebSocketCode::kInternal, "there is no session");
}

void Conversation::on_message(std::string message, bool is_text) {
  Message taken{.bytes = std::move(message), .is_text = is_text};
  const bool is_long = options_.long_workers != nullptr && taken.bytes.size() > kLongMessageBytes;
  switch (turn_of(taken, is_long)) {
    case Turn::kAtOnce: return take(taken);
    case Turn::kQueued: return;
    case Turn::kFirst: break;
  }
  output_->set_busy(true);
  options_.long_workers->post([self = shared_from_this()] { self->take_queued(); });
}

Conversation::Turn Conversation::turn_of(Message& message, bool is_long) {
  const MutexLock lock(queue_mutex_);
  if (!is_taking_ && !is_long) return Turn::kAtOnce;
  const Turn turn = is_taking_ ? Turn::kQueued : Turn::kFirst;
  is_taking_ = true;
  queue_.push_back(std::move(message));
  return turn;
}

void Conversation::take_queued() {
  while (const std::optional<Message> message = next_queued()) take(*message);
}

// The last one lets the socket be read again, with the queue locked: what comes then finds nothing before it.
std::optional<Conversation::Message> Conversation::next_queued() {
  const MutexLock lock(queue_mutex_);
  if (queue_.empty()) {
    is_taking_ = false;
    output_->set_busy(false);
    return std::nullopt;
  }
  Message message = std::move(queue_.front());
  queue_.pop_front();
  return message;
}

void Conversation::take(const Message& message) {
  const MutexLock lock(mutex_);
  if (session_ == nullptr || is_ending_) return;
  if (message.is_text) return take_text(message.bytes);
  ++hub_.counts().in[RealtimeCounts::kBinary];
  answer(append(message.bytes), "");
}

void Conversation::take_text(const std::string& text) {
  RealtimeMessage message;
  RealtimeFailure error = parse_message(text, options_.json, message);
  ClientEvent event;
  if (!error.has_value()) {
    if (!std::exchange(knows_dialect_, true)) error = choose(message);
  }
  if (!error.has_value()) error = dialect_->read(message, event);
  if (!error.has_value()) error = obey(message, event);
  answer(error, message.event_id);
}

// By its first event.
RealtimeFailure Conversation::choose(const RealtimeMessage& message) {
  const RealtimeDialect& chosen = choose_dialect(message, *dialect_);
  if (&chosen == dialect_) return std::nullopt;
  dialect_ = &chosen;
  output_->set_dialect(chosen);
  RealtimeConfig config = config_;
  chosen.begin(config);
  if (const Status status = session_->update(live_options(config)); !status.ok()) return told(status);
  config_ = std::move(config);
  return std::nullopt;
}

RealtimeFailure Conversation::obey(const RealtimeMessage& message, ClientEvent& event) {
  RealtimeCounts& counts = hub_.counts();
  switch (event.kind) {
    case ClientEvent::Kind::kUpdate: ++counts.in[RealtimeCounts::kUpdate]; return update(message);
    case ClientEvent::Kind::kAppend: ++counts.in[RealtimeCounts::kAppend]; return append(event.audio);
    case ClientEvent::Kind::kCommit: ++counts.in[RealtimeCounts::kCommit]; return commit(event.may_be_empty);
    case ClientEvent::Kind::kClear:
      ++counts.in[RealtimeCounts::kClear];
      clear();
      break;
    case ClientEvent::Kind::kNothing: ++counts.in[RealtimeCounts::kCommit]; break;
  }
  return std::nullopt;
}

RealtimeFailure Conversation::append(std::string_view bytes) {
  samples_.clear();
  audio_.read(config_.format, bytes, samples_);
  if (samples_.empty()) return std::nullopt;
  const Status status = session_->append(samples_);
  if (samples_.capacity() > kMaxKeptSamples) samples_ = {};
  if (absl::IsOutOfRange(status)) {
    RealtimeError error = told(status);
    error.code = "input_audio_buffer_too_long";
    return error;
  }
  if (!status.ok()) return told(status);
  has_audio_ = true;
  output_->on_audio(config_.turn_detection.has_value());
  if (session_->num_waiting_seconds() <= kLiveHighSeconds) return std::nullopt;
  output_->pause();
  // If it was heard before the pause, that was told before the pause.
  if (session_->num_waiting_seconds() < kLiveLowSeconds) output_->on_audio_taken();
  return std::nullopt;
}

RealtimeFailure Conversation::commit(bool may_be_empty) {
  output_->expect_transcript();
  const Status status = session_->commit();
  if (!status.ok()) output_->expect_no_transcript();
  const bool is_empty = absl::IsFailedPrecondition(status);
  if (is_empty && !may_be_empty) {
    return RealtimeError{.code = "input_audio_buffer_commit_empty", .message = error_message(status)};
  }
  if (!status.ok() && !is_empty) return told(status);
  if (is_empty) {
    session_->clear();
    output_->completed_empty();
  }
  audio_.reset();
  has_audio_ = false;
  return std::nullopt;
}

void Conversation::clear() {
  session_->clear();
  audio_.reset();
  has_audio_ = false;
}

RealtimeFailure Conversation::update(const RealtimeMessage& message) {
  RealtimeConfig config = config_;
  if (RealtimeFailure error = dialect_->read_update(message, options_.served, config)) return error;
  if (config.model.empty()) config.model = options_.served.models.front();
  if (config.format != config_.format && (has_audio_ || audio_.has_half_sample())) {
    return field_failure(dialect_->path_of("sampling_rate"),
                         "the format cannot change while the buffer holds audio: commit or clear it before");
  }
  const LiveOptions options = live_options(config);
  if (const Status status = hub_.speech().check(options); !status.ok()) return told(status);
  if (const Status status = session_->update(options); !status.ok()) return told(status);
  config_ = std::move(config);
  output_->updated(config_);
  return std::nullopt;
}

RealtimeError Conversation::told(const Status& status) const {
  RealtimeError error = realtime_error(absl::IsFailedPrecondition(status)
                                           ? with_param(invalid_argument(error_message(status)), error_param(status))
                                           : status);
  if (error.code == kInternalError) {
    log_error("live session, request ", options_.request_id, ": ", error_message(status));
  }
  if (!error.param.empty()) error.param = dialect_->path_of(error.param);
  return error;
}

void Conversation::answer(const RealtimeFailure& error, const std::string& event_id) {
  if (!error.has_value()) {
    num_errors_ = 0;
    return;
  }
  ++hub_.counts().in[RealtimeCounts::kInError];
  output_->error(*error, event_id);
  if (++num_errors_ < kMaxErrorsInRow) return;
  end({.code = "too_many_errors", .message = str_cat(kMaxErrorsInRow, " errors, one after the other")},
      WebSocketCode::kPolicy);
}

void Conversation::end(const RealtimeError& why, uint16_t code) {
  if (session_ == nullptr || std::exchange(is_ending_, true)) return;
  output_->error(why, "");
  output_->close_when_finished(code, why.message);
  session_->finish();
}

void Conversation::drain() {
  const MutexLock lock(mutex_);
  if (session_ == nullptr) return output_->close(WebSocketCode::kGoingAway, "the server is shutting down");
  end({.type = "server_error", .code = "server_draining", .message = "the server is shutting down"},
      WebSocketCode::kGoingAway);
}

void Conversation::look() {
  const MutexLock lock(mutex_);
  if (session_ == nullptr) return;
  output_->flush();
  if (hub_.clock().now() < expiry_ || is_ending_) return;
  ++hub_.counts().num_expired;
  end({.code = "session_expired",
       .message = str_cat("the session has lasted ", hub_.options().session_seconds,
                          " s, as long as one may (--live-session-seconds)")},
      WebSocketCode::kNormal);
}

// The session waits for calls of the output that run, which take other mutexes than this one.
void Conversation::close() {
  const MutexLock lock(mutex_);
  session_.reset();
}

class Handler final : public WebSocketHandler {
 public:
  Handler(RealtimeHub& hub, RealtimeHub::Place place, RealtimeSocketOptions options)
      : hub_(hub), place_(std::move(place)), conversation_(std::make_shared<Conversation>(hub, std::move(options))) {}

  void on_open(std::shared_ptr<WebSocket> socket) override {
    conversation_->open(std::move(socket));
    hub_.add(conversation_);
  }
  void on_message(std::string message, bool is_text) override {
    conversation_->on_message(std::move(message), is_text);
  }
  void on_drain() override { conversation_->drain(); }
  void on_closed(uint16_t) override {
    hub_.remove(conversation_.get());
    conversation_->close();
  }

 private:
  RealtimeHub& hub_;
  const RealtimeHub::Place place_;
  const std::shared_ptr<Conversation> conversation_;
};

}  // namespace

std::unique_ptr<WebSocketHandler> make_realtime_socket(RealtimeHub& hub, RealtimeHub::Place place,
                                                       RealtimeSocketOptions options) {
  return std::make_unique<Handler>(hub, std::move(place), std::move(options));
}

}  // namespace transept
