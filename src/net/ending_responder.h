// A responder that says when its answer ends, before the client can know.
//
// Owned as the responder that it wraps; thread-safe, as that is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "net/forwarding_responder.h"

namespace transept {

class EndingResponder final : public ForwardingResponder {
 public:
  // `on_end` is called once: before the last bytes of the answer are passed on, or by the destructor.
  EndingResponder(std::shared_ptr<Responder> to, std::function<void()> on_end)
      : ForwardingResponder(std::move(to)), on_end_(std::move(on_end)) {}
  ~EndingResponder() override { end(); }

  void respond(HttpResponse response) override {
    end();
    ForwardingResponder::respond(std::move(response));
  }
  void finish() override {
    end();
    ForwardingResponder::finish();
  }
  void abandon() override {
    end();
    ForwardingResponder::abandon();
  }
  void start_tunnel(Tunnel tunnel) override {
    end();
    ForwardingResponder::start_tunnel(std::move(tunnel));
  }

 private:
  void end() {
    if (!has_ended_.exchange(true)) on_end_();
  }

  const std::function<void()> on_end_;
  std::atomic<bool> has_ended_{false};
};

}  // namespace transept
