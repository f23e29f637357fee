#include "net/http_exchange.h"

#include <array>
#include <charconv>
#include <utility>

#include "net/http_response_head.h"

namespace transept {
namespace {

class ExchangeResponder final : public Responder {
 public:
  explicit ExchangeResponder(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeResponder() override { exchange_->let_go(); }
  ExchangeResponder(const ExchangeResponder&) = delete;
  ExchangeResponder& operator=(const ExchangeResponder&) = delete;

  void respond(HttpResponse response) override { exchange_->respond(response); }
  void start_stream(HttpResponse head) override { exchange_->start_stream(head); }
  void write(std::string piece) override { exchange_->write(piece); }
  void finish() override { exchange_->finish(); }
  void abandon() override { exchange_->abandon(); }
  void start_tunnel(Tunnel tunnel) override { exchange_->start_tunnel(std::move(tunnel)); }
  bool is_gone() const override { return exchange_->is_gone(); }
  bool was_too_slow() const override { return exchange_->was_too_slow(); }
  size_t num_unsent_bytes() const override { return exchange_->num_unsent_bytes(); }
  void on_gone(std::function<void()> callback) override { exchange_->on_gone(std::move(callback)); }
  double seconds() const override { return exchange_->seconds(); }

 private:
  const std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace

std::shared_ptr<Responder> make_responder(std::shared_ptr<HttpExchange> exchange) {
  return std::make_shared<ExchangeResponder>(std::move(exchange));
}

void HttpExchange::respond(const HttpResponse& response) {
  std::function<void()> dropped;  // is destroyed without the lock: it may hold what calls us
  const MutexLock lock(mutex_);
  if (has_begun_ || has_ended_ || is_gone_) return;
  begin(response, false);
  if (has_body_) unsent_.append(response.body);
  dropped = std::move(on_gone_);
  end();
}

void HttpExchange::start_stream(const HttpResponse& head) {
  const MutexLock lock(mutex_);
  if (has_begun_ || has_ended_ || is_gone_) return;
  begin(head, true);
  append_piece(head.body);
  wake(false);
}

void HttpExchange::write(std::string_view piece) {
  const MutexLock lock(mutex_);
  if (!has_begun_ || has_ended_ || is_gone_) return;
  const size_t num_waiting = unsent_.size() + in_flight_bytes_;
  // One large piece alone is no sign of a slow client.
  if (num_waiting > 0 && num_waiting + piece.size() > options_.max_unsent_bytes) {
    is_gone_ = was_too_slow_ = true;
    unsent_ = {};
    return wake(true);
  }
  append_piece(piece);
  wake(false);
}

void HttpExchange::finish() {
  std::function<void()> dropped;
  const MutexLock lock(mutex_);
  if (!has_begun_ || has_ended_ || is_gone_) return;
  if (is_chunked_ && has_body_) unsent_.append("0\r\n\r\n");
  dropped = std::move(on_gone_);
  end();
}

void HttpExchange::abandon() {
  std::function<void()> dropped;
  const MutexLock lock(mutex_);
  if (!has_begun_ || has_ended_ || is_gone_) return;
  was_abandoned_ = true;
  keep_alive_ = false;
  dropped = std::move(on_gone_);
  end();
}

void HttpExchange::start_tunnel(Tunnel tunnel) {
  std::function<void()> dropped;
  const MutexLock lock(mutex_);
  if (has_begun_ || has_ended_ || is_gone_) return;
  HttpResponse head{.status = 101, .content_type = "", .headers = std::move(tunnel.headers)};
  head.headers.emplace_back("Upgrade", "websocket");
  begin(head, false);
  keep_alive_ = false;
  tunnel_.emplace(std::move(tunnel));
  dropped = std::move(on_gone_);
  end();
}

std::optional<Tunnel> HttpExchange::take_tunnel() {
  const MutexLock lock(mutex_);
  std::optional<Tunnel> taken(std::move(tunnel_));
  tunnel_.reset();
  return taken;
}

bool HttpExchange::is_gone() const {
  const MutexLock lock(mutex_);
  return is_gone_;
}

bool HttpExchange::was_too_slow() const {
  const MutexLock lock(mutex_);
  return was_too_slow_;
}

size_t HttpExchange::num_unsent_bytes() const {
  const MutexLock lock(mutex_);
  return is_gone_ ? 0 : unsent_.size() + in_flight_bytes_;
}

void HttpExchange::on_gone(std::function<void()> callback) {
  {
    const MutexLock lock(mutex_);
    if (has_ended_) return;
    if (!was_notified_) {
      std::swap(on_gone_, callback);
      return;
    }
  }
  if (callback) callback();
}

void HttpExchange::let_go() {
  bool has_begun = false;
  {
    const MutexLock lock(mutex_);
    has_begun = has_begun_;
    was_let_go_ = true;
    if (!has_begun && !is_gone_) wake(false);
  }
  if (has_begun) abandon();
}

HttpExchange::Outgoing HttpExchange::take() {
  const MutexLock lock(mutex_);
  is_awake_ = false;
  in_flight_bytes_ += unsent_.size();
  return {std::exchange(unsent_, {}), has_ended_, was_let_go_ && !has_begun_ && !is_gone_};
}

void HttpExchange::note_sent(size_t num_bytes) {
  const MutexLock lock(mutex_);
  in_flight_bytes_ -= num_bytes;
  sent_bytes_ += num_bytes;
}

void HttpExchange::close_after() {
  const MutexLock lock(mutex_);
  keep_alive_ = false;
}

void HttpExchange::go(bool too_slow) {
  const MutexLock lock(mutex_);
  if (is_gone_) return;
  is_gone_ = true;
  was_too_slow_ = too_slow;
  unsent_ = {};
}

void HttpExchange::notify_gone() {
  std::function<void()> callback;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(was_notified_, true)) return;
    callback = std::exchange(on_gone_, nullptr);
    if (has_ended_) return;
  }
  if (callback) callback();
}

void HttpExchange::detach() {
  std::function<void()> wake;
  const MutexLock lock(mutex_);
  wake = std::exchange(wake_, nullptr);
}

bool HttpExchange::has_ended() const {
  const MutexLock lock(mutex_);
  return has_ended_;
}

bool HttpExchange::closes() const {
  const MutexLock lock(mutex_);
  return !keep_alive_;
}

bool HttpExchange::was_abandoned() const {
  const MutexLock lock(mutex_);
  return was_abandoned_;
}

int HttpExchange::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

uint64_t HttpExchange::num_sent_bytes() const {
  const MutexLock lock(mutex_);
  return sent_bytes_;
}

void HttpExchange::begin(const HttpResponse& response, bool is_stream) {
  has_begun_ = true;
  status_ = response.status;
  is_chunked_ = is_stream && options_.minor_version >= 1;
  keep_alive_ = keep_alive_ && !options_.draining->load() && (is_chunked_ || !is_stream);
  has_body_ = !options_.is_head && status_has_body(status_);
  HttpResponseFraming framing{.minor_version = options_.minor_version,
                              .keep_alive = keep_alive_,
                              .is_chunked = is_chunked_,
                              .request_id = options_.request_id};
  if (!is_stream) framing.content_length = response.body.size();
  unsent_ = response_head(response, framing);
}

void HttpExchange::append_piece(std::string_view piece) {
  if (!has_body_ || piece.empty()) return;  // an empty chunk would be the last
  if (!is_chunked_) {
    unsent_.append(piece);
    return;
  }
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16).ptr;
  unsent_.append(digits.data(), end);
  unsent_.append("\r\n").append(piece).append("\r\n");
}

void HttpExchange::end() {
  has_ended_ = true;
  wake(false);
}

// A connection that was woken and has not looked since need not be woken again, unless a write is in its way.
void HttpExchange::wake(bool is_urgent) {
  if (!wake_ || (is_awake_ && !is_urgent)) return;
  is_awake_ = true;
  wake_();
}

}  // namespace transept
