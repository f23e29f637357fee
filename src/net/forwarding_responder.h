// A responder that passes everything on to another one: what a responder that changes a part of it derives from.
//
// Owns its part of the other. Thread-safe, as the other is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/http_service.h"

namespace transept {

class ForwardingResponder : public Responder {
 public:
  explicit ForwardingResponder(std::shared_ptr<Responder> to) : to_(std::move(to)) {}

  void respond(HttpResponse response) override { to_->respond(std::move(response)); }
  void start_stream(HttpResponse head) override { to_->start_stream(std::move(head)); }
  void write(std::string piece) override { to_->write(std::move(piece)); }
  void finish() override { to_->finish(); }
  void abandon() override { to_->abandon(); }
  void start_tunnel(Tunnel tunnel) override { to_->start_tunnel(std::move(tunnel)); }
  bool is_gone() const override { return to_->is_gone(); }
  bool was_too_slow() const override { return to_->was_too_slow(); }
  size_t num_unsent_bytes() const override { return to_->num_unsent_bytes(); }
  void on_gone(std::function<void()> callback) override { to_->on_gone(std::move(callback)); }
  double seconds() const override { return to_->seconds(); }

 private:
  const std::shared_ptr<Responder> to_;
};

}  // namespace transept
