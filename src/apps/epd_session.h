// The fleet behind a verb that runs once (`transept transcribe --epd 1E1D`): encode instances are children, and this
// process is the decode instance.
//
//   ASSIGN_OR_RETURN(const auto session, EpdSession::start(flags, config));      null without --epd
//   ASSIGN_OR_RETURN(LoadedModel model, EpdSession::load(session.get(), config, clock));
//   AsyncEngine engine(..);
//   if (session) RETURN_IF_ERROR(session->begin(engine, model));
//   ... if (session) session->end_work(); model.engine = engine.stop(); session.reset();
//
// Used by one thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "apps/epd_broker.h"
#include "apps/epd_flags.h"
#include "apps/flags.h"
#include "base/mutex.h"
#include "net/http_server.h"
#include "server/input_service.h"
#include "startup/instance.h"
#include "startup/load_engine.h"

namespace transept {

class EpdSession final {
 public:
  // Starts the encode instances. Sets what the shape gives this process of the machine in `config`. Null: no --epd.
  // Errors: those of epd_plan(); no folder, no broker; of Instance::connect().
  static StatusOr<std::unique_ptr<EpdSession>> start(const Flags& flags, EngineConfig& config);
  // Ends the encode instances. REQUIRES: the engine's thread has ended, and its memory is still there.
  ~EpdSession();
  EpdSession(const EpdSession&) = delete;
  EpdSession& operator=(const EpdSession&) = delete;

  // As load_engine(): the whole model if `session` is null.
  static StatusOr<LoadedModel> load(EpdSession* session, const EngineConfig& config, const Clock& clock);

  // Waits until all encode instances are there. Errors: one cannot be started.
  Status begin(AsyncEngine& engine, const LoadedModel& model);
  void end_work() { instance_->end_work(); }

 private:
  EpdSession(EpdPlan plan, EpdBroker broker) : plan_(std::move(plan)), broker_(std::move(broker)) {}
  const EpdInstance& self() const { return plan_.instances.back(); }
  Status connect();
  void run_children(const Flags& flags, const std::string& model);
  std::optional<std::string> ready_line();

  const EpdPlan plan_;
  const EpdBroker broker_;
  std::unique_ptr<InputService> inputs_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Instance> instance_;
  std::atomic<bool> is_ending_{false};
  Mutex mutex_;
  CondVar changed_;
  bool are_ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Status> ended_ ABSL_GUARDED_BY(mutex_);  // of the children
  std::thread children_;
};

}  // namespace transept
