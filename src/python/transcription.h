// A running transcription: a thread that waits for the engine, and segments that are taken one by one.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "capi/transept.hpp"
#include "python/handles.h"

namespace transept::python {

struct WordCopy {
  std::string word;
  double start = 0, end = 0, probability = 0;
};

// A segment that outlives its callback.
struct SegmentCopy {
  explicit SegmentCopy(const transept::Segment& segment);

  std::int32_t id, seek;
  double start, end;
  std::string text;
  std::vector<std::int32_t> token_ids;
  std::vector<WordCopy> words;
  double temperature, avg_logprob, compression_ratio, no_speech_prob;
};

struct Guess {
  std::string code;
  double probability = 0;
};

// Its thread runs ahead of the reader by one segment, takes no GIL, and ends within a step of cancel(). Every member
// function REQUIRES the GIL, and lets signal handlers run while it waits. After a fork, the child's calls throw
// transept::Error (FORKED).
class Transcription final {
 public:
  // `audio`: a path (str), a file's bytes, or samples at 16 kHz (an array of float32), which is not copied: the caller
  // does not write to it until the transcription has ended. Throws TypeError.
  Transcription(ModelPointer model, nanobind::object audio, std::string language, std::string task, std::string json);
  // Cancels, and waits for the thread.
  ~Transcription();
  Transcription(const Transcription&) = delete;
  Transcription& operator=(const Transcription&) = delete;

  // Each waits until it is known, or the transcription has ended: then it is absent. Throw what ended it.
  std::optional<double> duration();
  std::vector<Guess> languages();  // only if the language is detected
  std::optional<SegmentCopy> next();
  // nullopt: has not ended, or not well. "": no language was found.
  std::optional<std::string> language();
  double done_seconds();
  void cancel();

 private:
  // What the thread and the readers share. In a fork it is never freed: its mutex may be held by no one.
  struct State {
    Mutex mutex;
    CondVar changed;
    bool is_cancelled ABSL_GUARDED_BY(mutex) = false;
    bool has_ended ABSL_GUARDED_BY(mutex) = false;
    std::exception_ptr error ABSL_GUARDED_BY(mutex);
    std::optional<double> duration ABSL_GUARDED_BY(mutex);
    double done_seconds ABSL_GUARDED_BY(mutex) = 0;
    bool has_languages ABSL_GUARDED_BY(mutex) = false;
    std::vector<Guess> languages ABSL_GUARDED_BY(mutex);
    std::deque<SegmentCopy> segments ABSL_GUARDED_BY(mutex);
    std::optional<std::string> language ABSL_GUARDED_BY(mutex);

    // Callbacks of the thread; false ends the transcription.
    bool add(SegmentCopy segment);
    template <typename Change>
    bool change(const Change& change_it);
  };
  void run(const transept::Audio& audio, const transept::TranscribeOptions& options);
  void check_process() const;
  // Waits until `is_there(state)`, or the end. Throws what ended it unless `is_there`.
  template <typename Predicate>
  void wait_for(const Predicate& is_there);

  const pid_t process_;
  const ModelPointer model_;
  const nanobind::object audio_;  // keeps the samples or bytes
  State* const state_;
  transept::Cancellation* const cancellation_;
  std::thread* thread_ = nullptr;
};

}  // namespace transept::python
