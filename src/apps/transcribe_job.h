// The job of `transept transcribe`: processes several files concurrently. Each file has a thread that waits for the
// engine, and the files share its batch. Prints messages in the order of the files, and writes each file's results as
// soon as they are done. Used by one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "apps/audio_files.h"
#include "apps/ordered_console.h"
#include "apps/transcribe_flags.h"
#include "base/mutex.h"
#include "base/status.h"
#include "speech/transcriber.h"

namespace transept {

class TranscribeJob final {
 public:
  // Transcriber::transcribe, or a replacement. Called on several threads concurrently.
  using Transcribe = std::function<StatusOr<TranscribeResult>(const AudioSource&, const TranscribeOptions&,
                                                              const TranscribeObserver&, const TranscribeLimits&)>;

  struct Counts {
    int64_t num_written = 0, num_failed = 0;
    double audio_seconds = 0;  // of the files written
    TranscribeCounts windows;
  };

  // Of a file that was written.
  struct Report {
    std::string path;
    double audio_seconds = 0, seconds = 0;
    TranscribeCounts windows;
  };

  // `engine_failure` returns the error that made the engine fail, ok if none did. Borrows settings and console.
  TranscribeJob(Transcribe transcribe, std::function<Status()> engine_failure, const TranscribeSettings& settings,
                std::vector<FoundFile> inputs, OrderedConsole& console);

  // Runs until every file is done, the user interrupts, or the console cannot be written. A file that fails is reported
  // and counted. Errors: the engine failed; an option that the model does not support (is_option_error).
  Status run();

  Counts counts() const;
  std::vector<Report> reports() const;  // in the order of completion
  double elapsed_seconds() const { return elapsed_seconds_; }
  // The files that were not begun or not ended.
  std::vector<std::string> unfinished() const;
  size_t num_inputs() const { return files_.size(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  // Changed only by the worker of the file.
  struct File {
    FoundFile input;
    bool has_spoken = false;  // its first line of results is written
  };
  struct FileProgress {
    bool has_ended = false;
    bool has_length = false;  // `all_seconds` is known
    double done_seconds = 0, all_seconds = 0;
  };

  void work();
  Status run_file(size_t index);
  TranscribeObserver observe(size_t index);
  Status deliver(size_t index, const TranscribeResult& result, double seconds);
  void end(size_t index, const Status& status);
  void say_segment(size_t index, const Segment& segment);
  void show_progress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Transcribe transcribe_;
  std::function<Status()> engine_failure_;
  const TranscribeSettings& settings_;
  OrderedConsole& console_;
  Time begin_{};
  double elapsed_seconds_ = 0;
  std::stop_source stop_;
  std::atomic<size_t> next_ = 0;

  std::vector<File> files_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<FileProgress> progress_ ABSL_GUARDED_BY(mutex_);  // of each file
  size_t num_working_ ABSL_GUARDED_BY(mutex_) = 0;              // threads
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Report> reports_ ABSL_GUARDED_BY(mutex_);
  Status failure_ ABSL_GUARDED_BY(mutex_);
};

// "hebrew" -> "Hebrew", "haitian creole" -> "Haitian Creole".
std::string title_case(std::string_view text);

// "120.0 s of audio in 3.1 s (38.7x real time)".
std::string speed_text(double audio_seconds, double seconds);

// "5 windows, 1 fallback".
std::string windows_text(const TranscribeCounts& counts);

}  // namespace transept
