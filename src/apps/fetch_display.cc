#include "apps/fetch_display.h"

#include <semaphore.h>
#include <unistd.h>

#include "apps/exit_codes.h"
#include "base/log.h"
#include "base/strings.h"

namespace transept {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);

// A signal handler can reach nothing but a global, and of what wakes a thread only this.
sem_t wake_up;

void note_interrupt(int) { ::sem_post(&wake_up); }

// What a caller has the process ignore (nohup, a shell's background) stays ignored.
void catch_signal(int signal, struct sigaction& old) {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, &old);
  if (old.sa_handler == SIG_IGN) ::sigaction(signal, &old, nullptr);
}

}  // namespace

FetchDisplay::FetchDisplay(std::string name, bool is_quiet)
    : name_(std::move(name)),
      is_quiet_(is_quiet || log_level() < LogLevel::kWarning),
      progress_("bytes"),
      next_line_(std::chrono::steady_clock::now() + kBetweenLines) {
  ::sem_init(&wake_up, 0, 0);
  watcher_ = std::thread([this] { watch(); });
  catch_signal(SIGINT, old_int_);
  catch_signal(SIGTERM, old_term_);
}

FetchDisplay::~FetchDisplay() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
  is_over_ = true;
  ::sem_post(&wake_up);
  watcher_.join();
}

void FetchDisplay::watch() {
  while (::sem_wait(&wake_up) != 0) {
  }
  if (!is_over_) end_interrupted();
}

// Not by the ends of main(): transfers that wait for a server would be waited for.
void FetchDisplay::end_interrupted() {
  const MutexLock lock(mutex_);
  progress_.clear();
  const auto size = [](int64_t bytes) { return format_bytes(static_cast<uint64_t>(bytes)); };
  const std::string came = total_ == 0 ? "nothing" : str_cat(size(done_), " of ", size(total_));
  log_error(name_, ": interrupted: ", came, " came", total_ == 0 ? "" : "; the same command goes on from there");
  ::_exit(kExitInterrupted);
}

void FetchDisplay::show(int64_t done, int64_t total) {
  const MutexLock lock(mutex_);
  done_ = done;
  total_ = total;
  if (is_quiet_) return;
  const TimePoint now = std::chrono::steady_clock::now();
  rate_.add(now, done);
  const bool is_line_due = !progress_.is_terminal() && now >= next_line_;
  if (!is_line_due && !progress_.is_due()) return;
  const std::string text = str_cat(name_, "  ", progress_text(done, total, rate_.bytes_per_second()));
  progress_.draw(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0, text);
  if (!is_line_due) return;
  log_info(text);
  next_line_ = now + kBetweenLines;
}

void FetchDisplay::clear() {
  const MutexLock lock(mutex_);
  progress_.clear();
}

}  // namespace transept
