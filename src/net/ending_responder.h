// A responder that says when its answer ends, before the client can know.
//
// Owned as the responder that it wraps; thread-safe, as that is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/http_service.h"

namespace transept {

class EndingResponder final : public Responder {
 public:
  // `on_end` is called once: before the last bytes of the answer are passed on, or by the destructor.
  EndingResponder(std::shared_ptr<Responder> to, std::function<void()> on_end)
      : to_(std::move(to)), on_end_(std::move(on_end)) {}
  ~EndingResponder() override { end(); }

  void respond(HttpResponse response) override {
    end();
    to_->respond(std::move(response));
  }
  void start_stream(HttpResponse head) override { to_->start_stream(std::move(head)); }
  void write(std::string piece) override { to_->write(std::move(piece)); }
  void finish() override {
    end();
    to_->finish();
  }
  void abandon() override {
    end();
    to_->abandon();
  }
  void start_tunnel(Tunnel tunnel) override {
    end();
    to_->start_tunnel(std::move(tunnel));
  }
  bool is_gone() const override { return to_->is_gone(); }
  bool was_too_slow() const override { return to_->was_too_slow(); }
  size_t num_unsent_bytes() const override { return to_->num_unsent_bytes(); }
  void on_gone(std::function<void()> callback) override { to_->on_gone(std::move(callback)); }
  double seconds() const override { return to_->seconds(); }

 private:
  void end() {
    if (!has_ended_.exchange(true)) on_end_();
  }

  const std::shared_ptr<Responder> to_;
  const std::function<void()> on_end_;
  std::atomic<bool> has_ended_{false};
};

}  // namespace transept
