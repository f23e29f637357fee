#include "apps/live_job.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "apps/interrupt.h"

namespace transept {
namespace {

constexpr std::chrono::milliseconds kLook(50);  // at interrupts, completed turns, and audio that was taken

class Running final {
 public:
  Running(LiveHost& host, LiveJob job, std::shared_ptr<LiveTurns> turns)
      : host_(host), job_(std::move(job)), turns_(std::move(turns)) {}

  Status run() {
    while (!job_.interrupted()) {
      RETURN_IF_ERROR(keep_up());
      ASSIGN_OR_RETURN(const bool goes_on, read());
      if (!goes_on) break;
    }
    if (session_ == nullptr) {
      return job_.interrupted() ? ok_status() : invalid_argument("standard input: no audio came");
    }
    session_->finish();
    while (!turns_->is_finished()) {
      std::this_thread::sleep_for(kLook);
      RETURN_IF_ERROR(keep_up());
    }
    return keep_up();
  }

 private:
  // Writes what has been completed since. Errors: the engine has failed, or something cannot be written.
  Status keep_up() {
    RETURN_IF_ERROR(job_.engine_failure());
    if (!turns_->is_written()) return absl::DataLossError("standard output: not everything could be written");
    if (!job_.files.has_value() || turns_->num_segments() == written_.segments.size()) return ok_status();
    turns_->bring(written_);
    FoundFile input;
    input.path = "-";
    input.name = "live";
    return write_outputs(*job_.files, input, written_);
  }

  // Reads what is there, and waits a little if nothing is. False at the end.
  StatusOr<bool> read() {
    if (session_ != nullptr && must_wait()) {
      std::this_thread::sleep_for(kLook);
      return true;
    }
    pollfd waiting{.fd = job_.descriptor, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(kLook.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) return true;
    std::array<char, 16384> bytes;
    const ssize_t count = ::read(job_.descriptor, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count < 0) return invalid_argument("standard input: ", std::strerror(errno));
    if (count == 0) return false;
    samples_.clear();
    RETURN_IF_ERROR(job_.input.feed(std::string_view(bytes.data(), static_cast<size_t>(count)), samples_));
    if (!job_.input.sampling_rate().has_value()) return true;
    if (session_ == nullptr) {
      job_.options.sampling_rate = *job_.input.sampling_rate();
      ASSIGN_OR_RETURN(session_, LiveSession::create(host_, job_.options, turns_));
    }
    RETURN_IF_ERROR(session_->append_pcm16(samples_));
    return true;
  }

  // A file comes faster than it can be heard.
  bool must_wait() {
    const double seconds = session_->num_waiting_seconds();
    is_waiting_ = seconds > (is_waiting_ ? kLiveLowSeconds : kLiveHighSeconds);
    return is_waiting_;
  }

  LiveHost& host_;
  LiveJob job_;
  const std::shared_ptr<LiveTurns> turns_;
  std::unique_ptr<LiveSession> session_;  // from the first sample on
  std::vector<int16_t> samples_;
  bool is_waiting_ = false;
  Transcript written_;  // what is in the files
};

// 0: standard output is no terminal, or one that cannot overwrite.
int terminal_columns() {
  const char* const kind = std::getenv("TERM");
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || kind == nullptr || std::string_view(kind) == "dumb") return 0;
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Status run_live_job(LiveHost& host, LiveJob job, const std::shared_ptr<LiveTurns>& turns) {
  return Running(host, std::move(job), turns).run();
}

Status transcribe_live(const SpeechModel& speech, const LiveSettings& live, const TranscribeSettings& settings,
                       AsyncEngine& engine, LiveReport* report) {
  const auto begin = std::chrono::steady_clock::now();
  LiveHost::Options options;
  options.num_transcribe_threads = 1;  // a session's transcripts come one after another
  options.max_sessions = 1;
  options.transcribe = settings.options;
  ASSIGN_OR_RETURN(const std::unique_ptr<LiveHost> host, LiveHost::create(speech, options));
  LiveJob job{.descriptor = STDIN_FILENO,
              .input = live.input,
              .options = live_options(live, settings.options),
              .files = std::nullopt,
              .interrupted = interrupted,
              .engine_failure = [&] { return engine.failure(); }};
  if (live.has_files) job.files = settings.files;
  const auto turns = std::make_shared<LiveTurns>(LiveConsole(stdout, terminal_columns()));
  Status ran = run_live_job(*host, std::move(job), turns);
  report->turns = turns->result();
  report->elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ran;
}

}  // namespace transept
