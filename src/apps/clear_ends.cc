#include "apps/clear_ends.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "apps/verbs.h"
#include "base/mapped_ranges.h"

namespace transept {
namespace {

// By hand: there may be no memory to put a line together in.
void say(std::string_view text) {
  // If it cannot be said, the exit code still tells.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void end(std::string_view reason) {
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set()) ::pause();  // threads that lack the same: one of them tells
  say("transept: ");
  say(reason);
  say("\n");
  ::_exit(kExitUsage);
}

[[noreturn]] void end_by_exception() {
  try {
    if (const std::exception_ptr current = std::current_exception(); current != nullptr) {
      std::rethrow_exception(current);
    }
  } catch (const std::bad_alloc&) {
    end("out of memory: the system gives this process no more (ulimit -v, or its control group's limit); lower "
        "--kv-cache-memory, --max-num-batched-tokens or --max-num-encoder-tokens");
  } catch (const std::system_error& error) {
    // Of all that throws these, threads alone can be had too many of.
    if (error.code() == std::errc::resource_unavailable_try_again) {
      end("a thread cannot be started: the limit of processes (ulimit -u) or of the control group (pids.max) is "
          "reached, or there is no memory for its stack (ulimit -v); lower --threads");
    }
    end(error.what());
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void prepare_clear_ends() {
  catch_cut_files();
  std::set_terminate(end_by_exception);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace transept
