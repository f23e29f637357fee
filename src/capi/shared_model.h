// A loaded model, its engine and who uses them: what the handles of transept.h share. It ends with the last of them.
//
// Thread-safe, but for `let_go`, which one thread calls once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/async_engine.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "speech/transcription.h"
#include "startup/load_engine.h"

namespace transept {

class SharedModel final {
 public:
  // Errors: load_engine's.
  static StatusOr<std::shared_ptr<SharedModel>> load(const EngineConfig& config, const AsyncEngine::Options& options);

  SharedModel(LoadedModel model, const AsyncEngine::Options& options, std::unique_ptr<const Clock> clock);

  // Without engine, more_engines and tokenizer.
  const LoadedModel& model() const { return model_; }
  // Null: the folder has none. Results keep it longer than the model.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  AsyncEngine& engine() const { return *engine_; }
  const Clock& clock() const { return *clock_; }
  const StatusOr<SpeechModel>& speech() const { return speech_; }

  // Whether this process was forked after loading: it has none of the engine's threads, and its locks may be held.
  bool is_forked() const;
  Status check_process() const;

  // Ends the engine after its current step, and frees its memory. Waits for that, also if another thread stops it.
  void stop();
  // Stops, and waits until all calls have ended.
  void let_go();

  // One call of the caller. REQUIRES: not forked.
  class Call final {
   public:
    explicit Call(std::shared_ptr<SharedModel> model);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    const std::shared_ptr<SharedModel> model_;
  };

 private:
  const pid_t process_;
  const std::unique_ptr<const Clock> clock_;
  LoadedModel model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<AsyncEngine> engine_;
  StatusOr<SpeechModel> speech_;

  Mutex stopping_;
  bool is_stopped_ ABSL_GUARDED_BY(stopping_) = false;
  Mutex mutex_;
  CondVar calls_ended_;
  int64_t num_calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace transept
