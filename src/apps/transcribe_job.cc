#include "apps/transcribe_job.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/interrupt.h"
#include "apps/stats_json.h"
#include "base/log.h"
#include "core/speech_languages.h"

namespace transept {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string counted(int64_t count, std::string_view one) { return str_cat(count, " ", one, count == 1 ? "" : "s"); }

std::string_view mode_name(TranscribeMode mode) {
  return mode == TranscribeMode::kSequential ? "sequential" : "batched";
}

std::string shown_path(const FoundFile& input) { return input.path == "-" ? "standard input" : input.path; }

}  // namespace

TranscribeJob::TranscribeJob(Transcribe transcribe, std::function<Status()> engine_failure,
                             const TranscribeSettings& settings, std::vector<FoundFile> inputs, OrderedConsole& console)
    : transcribe_(std::move(transcribe)),
      engine_failure_(std::move(engine_failure)),
      settings_(settings),
      console_(console),
      progress_(inputs.size()) {
  files_.reserve(inputs.size());
  for (FoundFile& input : inputs) files_.push_back({.input = std::move(input)});
}

Status TranscribeJob::run() {
  constexpr auto kPause = std::chrono::milliseconds(50);  // an interrupt reaches no condition variable
  begin_ = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  const size_t num_threads = std::min(files_.size(), static_cast<size_t>(settings_.num_workers));
  {
    const MutexLock lock(mutex_);
    num_working_ = num_threads;
  }
  threads.reserve(num_threads);
  for (size_t i = 0; i < num_threads; ++i) threads.emplace_back([this] { work(); });
  {
    const MutexLock lock(mutex_);
    while (num_working_ > 0) {
      changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kPause);
      if (interrupted() || !console_.is_ok()) stop_.request_stop();
      show_progress();
    }
  }
  for (std::thread& thread : threads) thread.join();
  elapsed_seconds_ = seconds_since(begin_);
  console_.end_all();
  const MutexLock lock(mutex_);
  if (failure_.ok() && !stop_.stop_requested()) report();
  return failure_;
}

void TranscribeJob::work() {
  while (!stop_.stop_requested()) {
    const size_t index = next_++;
    if (index >= files_.size()) break;
    const Status status = run_file(index);
    if (absl::IsCancelled(status) && stop_.stop_requested()) break;
    end(index, status);
  }
  const MutexLock lock(mutex_);
  --num_working_;
  changed_.notify_one();
}

Status TranscribeJob::run_file(size_t index) {
  const FoundFile& input = files_[index].input;
  RETURN_IF_ERROR(input.problem);
  ASSIGN_OR_RETURN(const AudioSource audio, read_audio(input.path, [this] { return stop_.stop_requested(); }));
  const Time begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TranscribeResult result,
                   transcribe_(audio, settings_.options, observe(index), {.stop_token = stop_.get_token()}));
  return deliver(index, result, seconds_since(begin));
}

TranscribeObserver TranscribeJob::observe(size_t index) {
  TranscribeObserver observer;
  const std::string path = shown_path(files_[index].input);
  observer.on_language = [this, index, path](const std::vector<LanguageGuess>& guesses) {
    if (guesses.empty() || !settings_.has_notes) return;
    console_.note(index, str_cat(path, ": language: ", title_case(speech_language_name(guesses.front().code)), " (",
                                 fixed(100 * guesses.front().probability, 1), " %)\n"));
  };
  observer.on_warning = [this, index, path](const std::string& warning) {
    if (log_level() >= LogLevel::kWarning) console_.note(index, str_cat("warning: ", path, ": ", warning, "\n"));
  };
  if (settings_.verbose && !settings_.to_stdout) {
    observer.on_segment = [this, index](const Segment& segment) { say_segment(index, segment); };
  }
  observer.on_progress = [this, index](double done, double all) {
    const MutexLock lock(mutex_);
    FileProgress& file = progress_[index];
    file.done_seconds = done;
    file.all_seconds = all;
    file.has_length = true;
  };
  return observer;
}

// Like head(1), which shows whose lines these are when there are several.
void TranscribeJob::say_segment(size_t index, const Segment& segment) {
  File& file = files_[index];
  std::string text = segment_line(segment) + "\n";
  if (!file.has_spoken && files_.size() > 1) text = str_cat("==> ", file.input.path, " <==\n", text);
  file.has_spoken = true;
  console_.result(index, std::move(text));
}

Status TranscribeJob::deliver(size_t index, const TranscribeResult& result, double seconds) {
  const FoundFile& input = files_[index].input;
  if (settings_.to_stdout) {
    const TranscriptFormat format = settings_.files.formats.front();
    std::string text = write_transcript(result.transcript, format, settings_.files.subtitles);
    if (format == TranscriptFormat::kJson) {
      if (settings_.shard.has_value()) text.insert(1, str_cat("\"index\": ", input.index, ", "));
      text += "\n";
    }
    console_.result(index, std::move(text));
  } else {
    RETURN_IF_ERROR(write_outputs(settings_.files, input, result.transcript));
  }
  if (settings_.has_notes) {
    console_.note(index, str_cat(shown_path(input), ": ", speed_text(result.transcript.duration, seconds), ", ",
                                 mode_name(result.mode), ", ", windows_text(result.counts), "\n"));
  }
  const MutexLock lock(mutex_);
  ++counts_.num_written;
  reports_.push_back({shown_path(input), result.transcript.duration, seconds, result.counts});
  counts_.audio_seconds += result.transcript.duration;
  counts_.windows += result.counts;
  progress_[index].all_seconds = result.transcript.duration;
  return ok_status();
}

void TranscribeJob::end(size_t index, const Status& status) {
  const Status engine = status.ok() ? ok_status() : engine_failure_();
  const Status fatal = !engine.ok() ? engine : is_option_error(status) ? status : ok_status();
  if (!status.ok() && fatal.ok()) {
    console_.note(index,
                  str_cat("transept transcribe: ", shown_path(files_[index].input), ": ", error_message(status), "\n"));
  }
  console_.end(index);
  const MutexLock lock(mutex_);
  FileProgress& file = progress_[index];
  file.has_ended = fatal.ok();
  file.has_length = true;
  if (!status.ok()) file.all_seconds = file.done_seconds;
  file.done_seconds = file.all_seconds;
  counts_.num_failed += status.ok() ? 0 : 1;
  failure_.Update(fatal);
  if (!fatal.ok()) stop_.request_stop();
  changed_.notify_one();
}

// Of files that are not begun nobody knows how long they are: the bar comes when all are.
void TranscribeJob::show_progress() {
  if (!settings_.has_progress) return;
  double done = 0, all = 0;
  bool has_all = true;
  size_t num_ended = 0;
  for (const FileProgress& file : progress_) {
    done += file.done_seconds;
    all += file.all_seconds;
    has_all &= file.has_length;
    num_ended += file.has_ended;
  }
  const double elapsed = std::max(seconds_since(begin_), 1e-9);
  std::string rate = str_cat(fixed(done / elapsed, 1), "x real time");
  if (files_.size() > 1) rate += str_cat(", ", num_ended, "/", files_.size(), " files");
  console_.show_progress(std::llround(done), has_all ? std::llround(all) : -1, rate);
}

void TranscribeJob::report() {
  if (!settings_.has_notes || files_.size() < 2) return;
  std::string text = str_cat(counted(counts_.num_written, "file"), ": ",
                             speed_text(counts_.audio_seconds, elapsed_seconds_), ", ", windows_text(counts_.windows));
  if (counts_.num_failed > 0) text += str_cat("; ", counts_.num_failed, " failed");
  console_.note(text + "\n");
}

TranscribeJob::Counts TranscribeJob::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

std::vector<TranscribeJob::Report> TranscribeJob::reports() const {
  const MutexLock lock(mutex_);
  return reports_;
}

std::vector<std::string> TranscribeJob::unfinished() const {
  std::vector<std::string> paths;
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < files_.size(); ++i) {
    if (!progress_[i].has_ended) paths.push_back(shown_path(files_[i].input));
  }
  return paths;
}

std::string title_case(std::string_view text) {
  std::string title(text);
  for (size_t i = 0; i < title.size(); ++i) {
    const bool begins = i == 0 || title[i - 1] == ' ';
    if (begins && title[i] >= 'a' && title[i] <= 'z') title[i] = static_cast<char>(title[i] - 'a' + 'A');
  }
  return title;
}

std::string speed_text(double audio_seconds, double seconds) {
  return str_cat(fixed(audio_seconds, 1), " s of audio in ", fixed(seconds, 1), " s (",
                 fixed(audio_seconds / std::max(seconds, 1e-3), 1), "x real time)");
}

std::string windows_text(const TranscribeCounts& counts) {
  return str_cat(counted(counts.num_windows, "window"), ", ", counted(counts.num_fallbacks, "fallback"));
}

}  // namespace transept
