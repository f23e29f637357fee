#include "server/realtime_live.h"

#include <utility>

namespace transept {
namespace {

class Session final : public RealtimeSession {
 public:
  explicit Session(std::unique_ptr<LiveSession> session) : session_(std::move(session)) {}

  Status append(std::span<const int16_t> samples) override { return session_->append_pcm16(samples); }
  Status commit() override { return session_->commit(); }
  void clear() override { session_->clear(); }
  Status update(const LiveOptions& options) override { return session_->update(options); }
  void finish() override { session_->finish(); }
  double num_waiting_seconds() const override { return session_->num_waiting_seconds(); }

 private:
  const std::unique_ptr<LiveSession> session_;
};

class Speech final : public RealtimeSpeech {
 public:
  explicit Speech(std::unique_ptr<LiveHost> host) : host_(std::move(host)) {}

  Status check(const LiveOptions& options) const override { return check_live_options(options, host_->model()); }
  StatusOr<std::unique_ptr<RealtimeSession>> create(const LiveOptions& options,
                                                    std::shared_ptr<LiveObserver> observer) override {
    ASSIGN_OR_RETURN(std::unique_ptr<LiveSession> session, LiveSession::create(*host_, options, std::move(observer)));
    return std::make_unique<Session>(std::move(session));
  }
  LiveCounts counts() const override { return host_->counts(); }

 private:
  const std::unique_ptr<LiveHost> host_;
};

}  // namespace

StatusOr<std::unique_ptr<RealtimeSpeech>> make_live_speech(const SpeechModel& model, const LiveHost::Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<LiveHost> host, LiveHost::create(model, options));
  return std::make_unique<Speech>(std::move(host));
}

}  // namespace transept
