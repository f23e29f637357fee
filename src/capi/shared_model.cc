#include "capi/shared_model.h"

#include <unistd.h>

#include <utility>

#include "capi/border.h"

namespace transept {

StatusOr<std::shared_ptr<SharedModel>> SharedModel::load(const EngineConfig& config,
                                                         const AsyncEngine::Options& options) {
  auto clock = std::make_unique<const SteadyClock>();
  ASSIGN_OR_RETURN(LoadedModel model, load_engine(config, *clock));
  return std::make_shared<SharedModel>(std::move(model), options, std::move(clock));
}

SharedModel::SharedModel(LoadedModel model, const AsyncEngine::Options& options, std::unique_ptr<const Clock> clock)
    : process_(::getpid()),
      clock_(std::move(clock)),
      model_(std::move(model)),
      engine_(std::make_unique<AsyncEngine>(model_.take_engines(), options, *clock_)),
      speech_(SpeechModel::of(model_, *engine_)) {
  tokenizer_ = std::move(model_.tokenizer);  // after speech_, which asks whether there is one
}

bool SharedModel::is_forked() const { return ::getpid() != process_; }

Status SharedModel::check_process() const {
  if (!is_forked()) return ok_status();
  return forked_error(str_cat(model_.config.model, ": the model was loaded in process ", static_cast<int64_t>(process_),
                              ", and this is process ", static_cast<int64_t>(::getpid()),
                              ", a fork of it, which has none of its threads; load models after the fork"));
}

void SharedModel::stop() {
  const MutexLock lock(stopping_);
  if (std::exchange(is_stopped_, true)) return;
  engine_->stop_all();  // the engines end here, and weights and KV with them
}

void SharedModel::let_go() {
  stop();
  const MutexLock lock(mutex_);
  while (num_calls_ > 0) calls_ended_.wait(mutex_);
}

SharedModel::Call::Call(std::shared_ptr<SharedModel> model) : model_(std::move(model)) {
  const MutexLock lock(model_->mutex_);
  ++model_->num_calls_;
}

SharedModel::Call::~Call() {
  const MutexLock lock(model_->mutex_);
  if (--model_->num_calls_ == 0) model_->calls_ended_.notify_all();
}

}  // namespace transept
