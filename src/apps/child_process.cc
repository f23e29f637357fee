#include "apps/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace transept {
namespace {

constexpr size_t kReadBytes = 64 << 10;  // a call: one child that writes all the time must not hold others up

class Descriptor final {
 public:
  Descriptor() = default;
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void set(int fd) { fd_ = fd; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end, write_end;

  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end.set(ends[0]);
    write_end.set(ends[1]);
    return true;
  }
};

// Signals of this thread wait while it exists: between fork() and exec() the child has our handlers.
class BlockedSignals final {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// What the child needs between fork() and exec(), where nothing may allocate or lock.
struct Start {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int input, output, failure;  // `failure` hears errno
  int inherited;               // becomes kInherited; -1: none
  int max_descriptors;         // below which all are
  pid_t parent;
};

void close_from(int first, int max_descriptors) {
  if (::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  for (int fd = first; fd < max_descriptors; ++fd) ::close(fd);  // Linux before 5.9
}

constexpr int kFailure = STDERR_FILENO + 1;
static_assert(ChildProcess::kInherited == kFailure + 1);

// Async-signal-safe functions alone: other threads of the parent may have held any lock.
[[noreturn]] void become(const Start& start) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != start.parent) ::_exit(127);  // it ended before it could be told to
  // Out of the way of those that the others become.
  const int inherited = start.inherited < 0 ? -1 : ::fcntl(start.inherited, F_DUPFD, kFailure + 2);
  bool is_ready = start.inherited < 0 || inherited >= 0;
  is_ready = is_ready && ::dup2(start.input, STDIN_FILENO) >= 0 && ::dup2(start.output, STDERR_FILENO) >= 0;
  is_ready = is_ready && (start.failure == kFailure || ::dup3(start.failure, kFailure, O_CLOEXEC) >= 0);
  is_ready = is_ready && (inherited < 0 || ::dup2(inherited, ChildProcess::kInherited) >= 0);
  if (is_ready) {
    close_from(kFailure + (inherited < 0 ? 1 : 2), start.max_descriptors);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(start.program, start.arguments, start.environment);
  }
  const int error = errno;
  const ssize_t written = ::write(is_ready ? kFailure : start.failure, &error, sizeof(error));
  ::_exit(written == sizeof(error) ? 127 : 126);
}

// The error of exec(); 0: the program runs.
int read_failure(int descriptor) {
  int error = 0;
  ssize_t size;
  do {
    size = ::read(descriptor, &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  return size == sizeof(error) ? error : 0;
}

void wait_for(pid_t pid, siginfo_t* info) {
  while (::waitid(P_PID, static_cast<id_t>(pid), info, WEXITED) != 0 && errno == EINTR) {
  }
}

int max_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
}

Status no_start(const std::string& program, int error) {
  return absl::Status(absl::ErrnoToStatusCode(error), str_cat(program, ": cannot be started: ", std::strerror(error)));
}

}  // namespace

std::string ChildEnd::text() const {
  if (!is_signal) return str_cat("ended with code ", code);
  const char* description = sigdescr_np(code);
  return str_cat("was ended by signal ", code, description == nullptr ? "" : str_cat(" (", description, ")"));
}

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::start(const Command& command) {
  Pipe output, failure;
  Descriptor input;
  input.set(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (input.get() < 0 || !output.open() || !failure.open()) {
    return resource_exhausted(command.program, ": cannot be started: ", std::strerror(errno));
  }
  const std::vector<char*> arguments = pointers(command.arguments), environment = pointers(command.environment);
  const Start start = {.program = command.program.c_str(),
                       .arguments = arguments.data(),
                       .environment = environment.data(),
                       .input = input.get(),
                       .output = output.write_end.get(),
                       .failure = failure.write_end.get(),
                       .inherited = command.inherited,
                       .max_descriptors = max_descriptors(),
                       .parent = ::getpid()};
  pid_t pid;
  {
    const BlockedSignals blocked;
    pid = ::fork();
    if (pid == 0) become(start);
  }
  if (pid < 0) return resource_exhausted(command.program, ": cannot be started: ", std::strerror(errno));
  ::setpgid(pid, pid);  // whoever of both comes first: a signal to the group must find it
  output.write_end.close();
  failure.write_end.close();
  if (const int error = read_failure(failure.read_end.get()); error != 0) {
    siginfo_t ignored{};
    wait_for(pid, &ignored);
    return no_start(command.program, error);
  }
  ::fcntl(output.read_end.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, output.read_end.release()));
}

ChildProcess::~ChildProcess() {
  if (!end_.has_value()) reap();
  if (output_ >= 0) ::close(output_);
}

const std::optional<ChildEnd>& ChildProcess::poll() {
  if (end_.has_value()) return end_;
  siginfo_t info{};
  const bool is_known = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (is_known && info.si_pid == 0) return end_;
  if (is_known || errno == ECHILD) reap();
  return end_;
}

// While the child is not waited for, its number, which is its group's, is nobody else's.
void ChildProcess::reap() {
  ::kill(-pid_, SIGKILL);
  siginfo_t info{};
  info.si_code = CLD_EXITED;
  info.si_status = 255;  // if somebody else waited for it
  wait_for(pid_, &info);
  end_ = ChildEnd{.is_signal = info.si_code != CLD_EXITED, .code = info.si_status};
}

void ChildProcess::send_signal(int signal) {
  if (!end_.has_value()) ::kill(-pid_, signal);
}

void ChildProcess::take_pieces(std::vector<std::string>& lines) {
  size_t begin = 0;
  while (begin < rest_.size()) {
    const size_t end = std::min(rest_.find('\n', begin), rest_.size());
    const bool is_whole = end < rest_.size();
    if (!is_whole && end - begin <= kMaxLineBytes) break;  // its end may come next, and is no line of its own
    const size_t size = std::min(end - begin, kMaxLineBytes);
    lines.push_back(rest_.substr(begin, size));
    begin += size;
    if (begin == end && is_whole) ++begin;
  }
  rest_.erase(0, begin);
}

std::vector<std::string> ChildProcess::read_lines() {
  std::vector<std::string> lines;
  bool is_drained = output_ < 0;
  char bytes[4096];
  for (size_t total = 0; !is_drained && total < kReadBytes;) {
    const ssize_t size = ::read(output_, bytes, sizeof(bytes));
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) ::close(std::exchange(output_, -1));
    is_drained = size <= 0;
    if (size > 0) {
      rest_.append(bytes, static_cast<size_t>(size));
      total += static_cast<size_t>(size);
    }
  }
  take_pieces(lines);
  const bool is_last = is_drained && (output_ < 0 || end_.has_value());
  if (is_last && !rest_.empty()) lines.push_back(std::exchange(rest_, {}));
  return lines;
}

}  // namespace transept
