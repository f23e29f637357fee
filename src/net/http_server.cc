#include "net/http_server.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "net/http_connection.h"

namespace transept {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// Connections that are told that there are too many; beyond them nobody is told anything.
constexpr size_t kMaxRefusals = 64;
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{50};

StatusOr<tcp::acceptor> listen_on(asio::io_context& io, const tcp::endpoint& endpoint) {
  error_code error;
  tcp::acceptor acceptor(asio::make_strand(io));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6()) {
    // "::" takes IPv4 as well.
    acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) return absl::AlreadyExistsError("the address is in use");
  if (error) return absl::UnavailableError(error.message());
  return acceptor;
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? str_cat("[", address, "]:", endpoint.port())
                                    : str_cat(address, ":", endpoint.port());
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Options& options, HttpService& service) : context_{.options = options, .service = service} {
    context_.on_closed = [this](const HttpConnection* connection) { forget(connection); };
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status listen();
  void run();
  void drain();
  void stop();

  OwedAnswers& owed() { return context_.owed; }
  const tcp::endpoint& endpoint() const { return endpoints_.front(); }
  bool is_loopback() const {
    return std::all_of(endpoints_.begin(), endpoints_.end(),
                       [](const tcp::endpoint& endpoint) { return endpoint.address().is_loopback(); });
  }
  size_t num_connections() const {
    const std::lock_guard lock(mutex_);
    return connections_.size();
  }

 private:
  Status listen_on_all(const tcp::resolver::results_type& addresses);
  asio::awaitable<void> accept(tcp::acceptor& acceptor);
  void take(tcp::socket socket);
  void forget(const HttpConnection* connection);

  HttpServerContext context_;
  asio::io_context io_;
  std::vector<tcp::acceptor> acceptors_;  // fixed before threads start
  std::vector<tcp::endpoint> endpoints_;
  std::vector<std::thread> threads_;
  std::mutex stop_mutex_;
  mutable std::mutex mutex_;
  // Both under mutex_.
  std::unordered_map<const HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  bool is_stopped_ = false;
};

Status HttpServer::Impl::listen() {
  const Options& options = context_.options;
  tcp::resolver resolver(io_);
  error_code error;
  const auto flags = tcp::resolver::passive | tcp::resolver::numeric_service;
  const auto addresses = resolver.resolve(options.host, str_cat(options.port), flags, error);
  Status status = error ? absl::UnavailableError(error.message()) : listen_on_all(addresses);
  if (status.ok()) return status;
  return with_prefix(status, str_cat("cannot listen on ", options.host, " port ", options.port));
}

// A name can have several addresses ("localhost": of IPv6 and IPv4). Those that this machine does not have are passed
// over if there is another; one that is taken is an error, since somebody else would be asked there.
Status HttpServer::Impl::listen_on_all(const tcp::resolver::results_type& addresses) {
  Status failure = absl::UnavailableError("the name has no address");
  for (const auto& entry : addresses) {
    tcp::endpoint endpoint = entry.endpoint();
    if (!endpoints_.empty()) endpoint.port(endpoints_.front().port());
    if (std::find(endpoints_.begin(), endpoints_.end(), endpoint) != endpoints_.end()) continue;
    auto acceptor = listen_on(io_, endpoint);
    if (acceptor.ok()) {
      endpoints_.push_back(acceptor->local_endpoint());
      acceptors_.push_back(std::move(acceptor).value());
    } else {
      failure = acceptor.status();
      if (absl::IsAlreadyExists(failure) && context_.options.port != 0) return failure;
    }
  }
  return acceptors_.empty() ? failure : ok_status();
}

void HttpServer::Impl::run() {
  for (tcp::acceptor& acceptor : acceptors_) {
    asio::co_spawn(acceptor.get_executor(), accept(acceptor), asio::detached);
  }
  for (int i = 0; i < std::max(1, context_.options.num_threads); ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
}

asio::awaitable<void> HttpServer::Impl::accept(tcp::acceptor& acceptor) {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    tcp::socket socket(asio::make_strand(io_));
    const auto [error] = co_await acceptor.async_accept(socket, kAsTuple);
    if (!error) {
      take(std::move(socket));
    } else if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
               error == asio::error::no_buffer_space) {
      pause.expires_after(kPauseWithoutDescriptors);
      [[maybe_unused]] const auto result = co_await pause.async_wait(kAsTuple);
    }
  }
}

void HttpServer::Impl::take(tcp::socket socket) {
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), context_);
  const std::lock_guard lock(mutex_);
  const size_t max_connections = context_.options.max_connections;
  if (is_stopped_ || connections_.size() >= max_connections + kMaxRefusals) return;
  const bool has_room = connections_.size() < max_connections;
  connections_.emplace(connection.get(), connection);
  if (has_room) {
    connection->start();
  } else {
    connection->refuse();
  }
}

void HttpServer::Impl::forget(const HttpConnection* connection) {
  std::shared_ptr<HttpConnection> last;  // is destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  last = std::move(found->second);
  connections_.erase(found);
}

void HttpServer::Impl::drain() {
  context_.draining->store(true);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, connection] : connections_) connection->drain();
}

// The threads end once nothing is left to do: every acceptor and connection is closed, so every wait fails.
void HttpServer::Impl::stop() {
  const std::lock_guard stop_lock(stop_mutex_);
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    for (const auto& [key, connection] : connections_) connection->stop();
  }
  for (tcp::acceptor& acceptor : acceptors_) {
    asio::post(acceptor.get_executor(), [&acceptor] {
      error_code ignored;
      acceptor.close(ignored);
    });
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const Options& options, HttpService& service) {
  auto impl = std::make_unique<Impl>(options, service);
  RETURN_IF_ERROR(impl->listen());
  impl->run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->endpoint().port(); }
std::string HttpServer::address() const { return text_of(impl_->endpoint()); }
bool HttpServer::is_loopback() const { return impl_->is_loopback(); }
size_t HttpServer::num_connections() const { return impl_->num_connections(); }
void HttpServer::drain() { impl_->drain(); }
bool HttpServer::wait_until_answered(std::chrono::milliseconds timeout) {
  return impl_->owed().wait_until_none(timeout);
}
void HttpServer::stop() { impl_->stop(); }

}  // namespace transept
