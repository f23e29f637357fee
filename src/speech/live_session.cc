#include "speech/live_session.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "speech/audio_windows.h"
#include "speech/live_listener.h"
#include "speech/live_workers.h"

namespace transept {
namespace {

constexpr double kSoonSeconds = 0.25;  // of audio that waits: less may wait a little longer

}  // namespace

// Shared with sessions, whose last tasks may run after they are destroyed.
class LiveHost::Impl final {
 public:
  Impl(const SpeechModel& speech, const Options& asked, LogMel mel)
      : model(speech),
        options(asked),
        voice_mel(std::move(mel)),
        listeners(asked.num_threads),
        transcribers(asked.num_transcribe_threads) {}

  const SpeechModel model;
  const Options options;
  const LogMel voice_mel;
  LiveTally tally;
  std::atomic<int> num_sessions{0};
  LiveWorkers listeners, transcribers;
};

StatusOr<std::unique_ptr<LiveHost>> LiveHost::create(const SpeechModel& model, const Options& options) {
  constexpr int kMostThreads = 1024;
  const auto check = [](std::string_view name, int value, int max) {
    if (value >= 1 && value <= max) return ok_status();
    return field_error(name, str_cat(name, " must be a number from 1 to ", max, ", not ", value));
  };
  RETURN_IF_ERROR(check("num_threads", options.num_threads, kMostThreads));
  RETURN_IF_ERROR(check("num_transcribe_threads", options.num_transcribe_threads, kMostThreads));
  RETURN_IF_ERROR(check("max_sessions", options.max_sessions, 1 << 20));
  RETURN_IF_ERROR(check_transcribe_options(options.transcribe));
  RETURN_IF_ERROR(check_frames(*model.audio));
  ASSIGN_OR_RETURN(LogMel mel, voice_log_mel(*model.audio));
  return std::unique_ptr<LiveHost>(new LiveHost(std::make_shared<Impl>(model, options, std::move(mel))));
}

LiveHost::LiveHost(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

LiveHost::~LiveHost() {
  CHECK(impl_->num_sessions == 0, impl_->num_sessions.load(), " live sessions outlive their host");
  // The first hand tasks to the second, and these notify the first: which drop it.
  impl_->listeners.stop();
  impl_->transcribers.stop();
}

const SpeechModel& LiveHost::model() const { return impl_->model; }
int LiveHost::num_sessions() const { return impl_->num_sessions; }
LiveCounts LiveHost::counts() const { return impl_->tally.counts(); }

// What the caller asks for waits in a queue; one task at a time, on the host's threads, does it. mutex_ is never held
// while the observer, the engine or the listener are called; strand_ is, by the task alone.
class LiveSession::Core final : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<LiveHost::Impl> host, const LiveOptions& options, std::shared_ptr<LiveObserver> observer)
      : host_(std::move(host)), observer_(std::move(observer)), options_(options) {}

  Status begin() ABSL_LOCKS_EXCLUDED(strand_);
  void close() ABSL_LOCKS_EXCLUDED(mutex_, strand_);

  Status append(std::vector<int16_t> samples) ABSL_LOCKS_EXCLUDED(mutex_);
  Status commit() ABSL_LOCKS_EXCLUDED(mutex_);
  void clear() ABSL_LOCKS_EXCLUDED(mutex_);
  Status update(const LiveOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);
  void finish() ABSL_LOCKS_EXCLUDED(mutex_);
  LiveOptions options() const ABSL_LOCKS_EXCLUDED(mutex_);
  double num_waiting_seconds() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t num_open_finals() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Audio {
    std::vector<int16_t> samples;
  };
  struct Commit {};
  struct Clear {};
  struct Update {
    LiveOptions options;
    std::unique_ptr<WindowDecoder> decoder;
  };
  struct Finish {};
  using Command = std::variant<Audio, Commit, Clear, Update, Finish>;

  LiveListener::House house();
  int64_t num_open_samples() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void push(Command command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool may_wait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void schedule(bool may_wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void on_ready() ABSL_LOCKS_EXCLUDED(mutex_);
  void run() ABSL_LOCKS_EXCLUDED(mutex_, strand_);
  bool step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(strand_) ABSL_LOCKS_EXCLUDED(mutex_);
  void obey(Command command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(strand_);
  void settle(const Command& done, size_t num_samples) ABSL_EXCLUSIVE_LOCKS_REQUIRED(strand_)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<LiveHost::Impl> host_;
  std::atomic<int64_t> num_open_finals_{0};  // of the listener

  Mutex strand_;
  std::atomic<std::thread::id> strand_thread_{};  // that runs a task
  std::shared_ptr<LiveObserver> observer_ ABSL_GUARDED_BY(strand_);
  std::unique_ptr<LiveListener> listener_ ABSL_GUARDED_BY(strand_);  // null: closed

  mutable Mutex mutex_ ABSL_ACQUIRED_AFTER(strand_);
  LiveOptions options_ ABSL_GUARDED_BY(mutex_);
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  int64_t num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // samples in commands_, or in the command that runs
  // Samples since the last commit or clear that the queue has not done yet; how many of these there are; and what the
  // listener holds of the open item.
  int64_t num_since_boundary_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_boundaries_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_held_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_commits_ ABSL_GUARDED_BY(mutex_) = 0;  // in commands_
  bool is_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_for_soon_ ABSL_GUARDED_BY(mutex_) = false;  // scheduled for it
  bool has_answers_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_attempt_running_ ABSL_GUARDED_BY(mutex_) = false;  // of the listener
  bool has_finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_high_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

LiveListener::House LiveSession::Core::house() {
  LiveListener::House house;
  house.model = &host_->model;
  house.transcribe = &host_->options.transcribe;
  house.voice_mel = &host_->voice_mel;
  house.tally = &host_->tally;
  house.num_open_finals = &num_open_finals_;
  house.on_ready = [weak = weak_from_this()] {
    if (const std::shared_ptr<Core> core = weak.lock()) core->on_ready();
  };
  house.post = [host = host_.get()](std::function<void()> task) { host->transcribers.post(std::move(task)); };
  return house;
}

Status LiveSession::Core::begin() {
  const MutexLock strand(strand_);
  const LiveOptions options = this->options();
  LiveListener::House house = this->house();
  ASSIGN_OR_RETURN(std::unique_ptr<WindowDecoder> decoder, LiveListener::make_decoder(house, options));
  listener_ = std::make_unique<LiveListener>(std::move(house), *observer_, options, std::move(decoder));
  return ok_status();
}

void LiveSession::Core::close() {
  {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    commands_.clear();
  }
  host_->num_sessions.fetch_sub(1);
  // From a call of the observer: the task does the rest when that returns.
  if (strand_thread_ == std::this_thread::get_id()) return;
  const MutexLock strand(strand_);
  if (listener_ != nullptr) listener_->stop();
  listener_.reset();
  observer_.reset();
}

// ---- The caller's side

// What a commit would take.
int64_t LiveSession::Core::num_open_samples() const {
  return num_boundaries_ == 0 ? num_held_ + num_waiting_ : num_since_boundary_;
}

void LiveSession::Core::push(Command command) {
  if (is_closed_) return;
  const bool is_audio = std::holds_alternative<Audio>(command);
  commands_.push_back(std::move(command));
  schedule(is_audio && may_wait());
}

Status LiveSession::Core::append(std::vector<int16_t> samples) {
  if (samples.empty()) return ok_status();
  const MutexLock lock(mutex_);
  if (has_finished_) return absl::FailedPreconditionError("the session has been told that no more audio comes");
  const auto count = std::ssize(samples);
  if (!options_.turn_detection.has_value()) {
    const double seconds = static_cast<double>(num_open_samples() + count) / options_.sampling_rate;
    if (seconds > options_.max_item_seconds) {
      return absl::OutOfRangeError(str_cat("the item would last ", seconds, " s, and ", options_.max_item_seconds,
                                           " s is the most without a commit"));
    }
  }
  num_waiting_ += count;
  num_since_boundary_ += count;
  if (static_cast<double>(num_waiting_) / options_.sampling_rate > kLiveHighSeconds) was_high_ = true;
  // A second at a time, so that other sessions have their turns.
  const auto piece = static_cast<std::ptrdiff_t>(options_.sampling_rate);
  // What waits is joined: a client that sends a sample at a time costs its samples, and no more.
  if (Audio* last = commands_.empty() ? nullptr : std::get_if<Audio>(&commands_.back());
      last != nullptr && std::ssize(last->samples) + count <= piece) {
    last->samples.insert(last->samples.end(), samples.begin(), samples.end());
    if (!may_wait()) schedule(false);
    return ok_status();
  }
  if (count <= piece) {
    push(Audio{std::move(samples)});
    return ok_status();
  }
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = first + std::min(piece, samples.end() - first);
    push(Audio{{first, last}});
    first = last;
  }
  return ok_status();
}

Status LiveSession::Core::commit() {
  const MutexLock lock(mutex_);
  if (has_finished_) return absl::FailedPreconditionError("the session has been told that no more audio comes");
  const int64_t ms = num_open_samples() * 1000 / options_.sampling_rate;
  if (ms < kMinCommitMs) {
    return absl::FailedPreconditionError(
        str_cat("the buffer holds ", ms, " ms of audio, and a commit needs ", kMinCommitMs, " ms"));
  }
  num_since_boundary_ = 0;
  ++num_boundaries_;
  ++num_commits_;
  push(Commit{});
  return ok_status();
}

void LiveSession::Core::clear() {
  const MutexLock lock(mutex_);
  if (has_finished_) return;
  // What waits behind the last commit is dropped unheard.
  while (!commands_.empty() && std::holds_alternative<Audio>(commands_.back())) {
    num_waiting_ -= std::ssize(std::get<Audio>(commands_.back()).samples);
    commands_.pop_back();
  }
  num_since_boundary_ = 0;
  ++num_boundaries_;
  push(Clear{});
}

Status LiveSession::Core::update(const LiveOptions& options) {
  RETURN_IF_ERROR(check_live_options(options, host_->model));
  ASSIGN_OR_RETURN(std::unique_ptr<WindowDecoder> decoder, LiveListener::make_decoder(house(), options));
  const MutexLock lock(mutex_);
  if (options.sampling_rate != options_.sampling_rate && num_open_samples() > 0) {
    return with_param(absl::FailedPreconditionError(str_cat("sampling_rate cannot change from ", options_.sampling_rate,
                                                            " to ", options.sampling_rate,
                                                            " while the buffer holds audio: commit or clear it first")),
                      "sampling_rate");
  }
  options_ = options;
  push(Update{options, std::move(decoder)});
  return ok_status();
}

void LiveSession::Core::finish() {
  const MutexLock lock(mutex_);
  if (std::exchange(has_finished_, true)) return;
  push(Finish{});
}

LiveOptions LiveSession::Core::options() const {
  const MutexLock lock(mutex_);
  return options_;
}

double LiveSession::Core::num_waiting_seconds() const {
  const MutexLock lock(mutex_);
  return static_cast<double>(num_waiting_) / options_.sampling_rate;
}

int64_t LiveSession::Core::num_open_finals() const {
  const MutexLock lock(mutex_);
  return num_open_finals_ + num_commits_;
}

bool LiveSession::Core::is_idle() const {
  const MutexLock lock(mutex_);
  return commands_.empty() && !is_scheduled_ && !is_attempt_running_ && num_open_finals_ == 0;
}

// ---- The task's side

// Audio as it is spoken waits a little for that of other sessions. A file that is pushed does not.
bool LiveSession::Core::may_wait() const {
  return static_cast<double>(num_waiting_) < kSoonSeconds * options_.sampling_rate;
}

void LiveSession::Core::schedule(bool may_wait) {
  if (std::exchange(is_scheduled_, true)) {
    if (!may_wait && std::exchange(is_for_soon_, false)) host_->listeners.hurry();
    return;
  }
  is_for_soon_ = may_wait;
  auto task = [core = shared_from_this()] { core->run(); };
  may_wait ? host_->listeners.post_soon(std::move(task)) : host_->listeners.post(std::move(task));
}

// From the engine's thread, or that of a final: holds no lock while a stream is destroyed.
void LiveSession::Core::on_ready() {
  const MutexLock lock(mutex_);
  has_answers_ = true;
  if (!is_closed_) schedule(false);
}

void LiveSession::Core::run() {
  const MutexLock strand(strand_);
  strand_thread_ = std::this_thread::get_id();
  bool is_closed = false;
  try {
    is_closed = !step();
  } catch (const std::exception& exception) {  // no memory, say: a session that has lost its place hears no more
    log_error("a live session was given up: ", exception.what());
    const MutexLock lock(mutex_);
    is_closed = is_closed_ = true;
  }
  strand_thread_ = std::thread::id();
  if (!is_closed) return;
  if (listener_ != nullptr) listener_->stop();
  listener_.reset();
  observer_.reset();
}

// One turn of the session: what has come, and one command. False: it is closed.
bool LiveSession::Core::step() {
  if (listener_ == nullptr) return false;
  bool has_answers = false;
  {
    const MutexLock lock(mutex_);
    if (is_closed_) return false;
    has_answers = std::exchange(has_answers_, false);
  }
  if (has_answers) listener_->take_answers();
  std::optional<Command> command;
  {
    const MutexLock lock(mutex_);
    if (is_closed_) return false;
    // Audio waits while much of what was heard does.
    const bool must_wait =
        !commands_.empty() && std::holds_alternative<Audio>(commands_.front()) && listener_->is_full();
    if (!commands_.empty() && !must_wait) {
      command = std::move(commands_.front());
      commands_.pop_front();
    }
  }
  if (command.has_value()) obey(*std::move(command));
  const MutexLock lock(mutex_);
  is_attempt_running_ = listener_->is_attempt_running();
  is_scheduled_ = false;
  const bool has_more =
      !commands_.empty() && !(std::holds_alternative<Audio>(commands_.front()) && listener_->is_full());
  if (!is_closed_ && (has_more || has_answers_)) schedule(false);
  return !is_closed_;
}

void LiveSession::Core::obey(Command command) {
  size_t num_samples = 0;
  if (Audio* audio = std::get_if<Audio>(&command)) {
    num_samples = audio->samples.size();
    listener_->hear(audio->samples);
  } else if (std::holds_alternative<Commit>(command)) {
    listener_->commit();
  } else if (std::holds_alternative<Clear>(command)) {
    listener_->clear();
  } else if (Update* update = std::get_if<Update>(&command)) {
    listener_->set_options(update->options, std::move(update->decoder));
  } else {
    listener_->finish();
  }
  settle(command, num_samples);
}

void LiveSession::Core::settle(const Command& done, size_t num_samples) {
  bool was_taken = false;
  {
    const MutexLock lock(mutex_);
    num_waiting_ -= static_cast<int64_t>(num_samples);
    if (std::holds_alternative<Commit>(done)) --num_commits_;
    if (std::holds_alternative<Commit>(done) || std::holds_alternative<Clear>(done)) --num_boundaries_;
    num_held_ = listener_->num_held_samples();
    const double seconds = static_cast<double>(num_waiting_) / options_.sampling_rate;
    if (seconds < kLiveLowSeconds) was_taken = std::exchange(was_high_, false);
    if (is_closed_) return;
  }
  if (was_taken) observer_->on_audio_taken();
}

// ---- LiveSession

StatusOr<std::unique_ptr<LiveSession>> LiveSession::create(LiveHost& host, const LiveOptions& options,
                                                           std::shared_ptr<LiveObserver> observer) {
  LiveHost::Impl& impl = *host.impl_;
  RETURN_IF_ERROR(check_live_options(options, impl.model));
  if (impl.num_sessions.fetch_add(1) >= impl.options.max_sessions) {
    const int others = impl.num_sessions.fetch_sub(1) - 1;
    return resource_exhausted(others, " live sessions are open, and ", impl.options.max_sessions, " is the most");
  }
  auto core = std::make_shared<Core>(host.impl_, options, std::move(observer));
  if (const Status status = core->begin(); !status.ok()) {
    impl.num_sessions.fetch_sub(1);
    return status;
  }
  impl.tally[LiveCount::kSessions] += 1;
  return std::unique_ptr<LiveSession>(new LiveSession(std::move(core)));
}

LiveSession::LiveSession(std::shared_ptr<Core> core) : core_(std::move(core)) {}

LiveSession::~LiveSession() { core_->close(); }

Status LiveSession::append_pcm16(std::span<const int16_t> samples) {
  return core_->append(std::vector<int16_t>(samples.begin(), samples.end()));
}

Status LiveSession::append(std::span<const float> samples) {
  std::vector<int16_t> rounded;
  rounded.reserve(samples.size());
  for (const float sample : samples) {
    const float value = std::isnan(sample) ? 0.0f : std::clamp(std::round(sample * 32768.0f), -32768.0f, 32767.0f);
    rounded.push_back(static_cast<int16_t>(value));
  }
  return core_->append(std::move(rounded));
}

Status LiveSession::commit() { return core_->commit(); }
void LiveSession::clear() { core_->clear(); }
Status LiveSession::update(const LiveOptions& options) { return core_->update(options); }
LiveOptions LiveSession::options() const { return core_->options(); }
void LiveSession::finish() { core_->finish(); }
double LiveSession::num_waiting_seconds() const { return core_->num_waiting_seconds(); }
int64_t LiveSession::num_open_finals() const { return core_->num_open_finals(); }
bool LiveSession::is_idle() const { return core_->is_idle(); }

}  // namespace transept
