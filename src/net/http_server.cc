#include "net/http_server.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>
#include <new>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "net/as_tuple.h"
#include "net/http_connection.h"

namespace transept {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? str_cat("[", address, "]:", endpoint.port())
                                    : str_cat(address, ":", endpoint.port());
}

constexpr std::chrono::milliseconds kPauseAfterFailedAccept{50};
constexpr std::chrono::seconds kBetweenNotices{1};

bool is_out_of_descriptors(const error_code& error) {
  return error == asio::error::no_descriptors || error == boost::system::errc::too_many_files_open_in_system;
}

// A descriptor that is held for nothing, to be given up when there is no other.
class SpareDescriptor final {
 public:
  SpareDescriptor() { hold(); }
  ~SpareDescriptor() { release(); }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  // False: there is none to be had, and errno says why.
  bool hold() {
    if (fd_ < 0) fd_ = ::eventfd(0, EFD_CLOEXEC);
    return fd_ >= 0;
  }
  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// What of one address has failed, for the log.
class FailedAccepts final {
 public:
  void note(const tcp::endpoint& endpoint, const error_code& error) {
    ++count_;
    const auto now = std::chrono::steady_clock::now();
    if (said_.has_value() && now - *said_ < kBetweenNotices) return;
    log_warning("connections to ", text_of(endpoint), " cannot be accepted (", count_,
                " times since the last notice): ", error.message(),
                is_out_of_descriptors(error) ? "; raise ulimit -n or lower --max-connections" : "");
    said_ = now;
    count_ = 0;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> said_;
  int64_t count_ = 0;
};

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

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Options& options, HttpService& service) : context_{.options = options, .service = service} {
    context_.on_closed = [this](const HttpConnection* connection) { forget(connection); };
    context_.read_ticker = std::make_shared<ReadTicker>(io_.get_executor());
  }
  ~Impl() {
    stop();
    context_.read_ticker.reset();  // its timer is of io_, which goes first
  }
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
    const MutexLock lock(mutex_);
    return connections_.size();
  }

 private:
  Status listen_on_all(const tcp::resolver::results_type& addresses);
  asio::awaitable<void> accept(tcp::acceptor& acceptor);
  asio::awaitable<void> accept_next(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, SpareDescriptor& spare,
                                    FailedAccepts& failed);
  void take(tcp::socket socket, bool may_stay);
  void forget(const HttpConnection* connection);

  HttpServerContext context_;
  asio::io_context io_;
  std::vector<tcp::acceptor> acceptors_;  // fixed before threads start
  std::vector<tcp::endpoint> endpoints_;
  Mutex stop_mutex_;  // is taken before the other
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
  mutable Mutex mutex_;
  std::unordered_map<const HttpConnection*, std::shared_ptr<HttpConnection>> connections_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
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
  const MutexLock lock(stop_mutex_);
  for (int i = 0; i < std::max(1, context_.options.num_threads); ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
}

asio::awaitable<void> HttpServer::Impl::accept(tcp::acceptor& acceptor) {
  SpareDescriptor spare;
  FailedAccepts failed;
  error_code error;
  bool lacks_memory = false;
  const tcp::endpoint endpoint = acceptor.local_endpoint(error);
  acceptor.non_blocking(true, error);  // for the accept() of accept_next(): the client may have gone
  while (acceptor.is_open()) {
    try {
      if (std::exchange(lacks_memory, false)) failed.note(endpoint, asio::error::no_memory);
      co_await accept_next(acceptor, endpoint, spare, failed);
    } catch (const std::bad_alloc&) {  // it costs this client, and not all that come later
      lacks_memory = true;
      std::this_thread::sleep_for(kPauseAfterFailedAccept);
    }
  }
}

asio::awaitable<void> HttpServer::Impl::accept_next(tcp::acceptor& acceptor, const tcp::endpoint& endpoint,
                                                    SpareDescriptor& spare, FailedAccepts& failed) {
  tcp::socket socket(asio::make_strand(io_));
  error_code error;
  std::tie(error) = co_await acceptor.async_accept(socket, kAsTuple);
  if (!error) {
    const bool has_spare = spare.hold();  // else this one stands in its place
    if (!has_spare) failed.note(endpoint, error_code(errno, boost::system::system_category()));
    take(std::move(socket), has_spare);
    co_return;
  }
  if (error == asio::error::operation_aborted || error == asio::error::connection_aborted) co_return;
  failed.note(endpoint, error);
  // Without one, the client that it took last is still there.
  if (is_out_of_descriptors(error) && spare.hold()) {
    spare.release();
    acceptor.accept(socket, error);
    if (!error) take(std::move(socket), false);
  }
  asio::steady_timer pause(acceptor.get_executor());
  pause.expires_after(kPauseAfterFailedAccept);
  std::tie(error) = co_await pause.async_wait(kAsTuple);
}

// `may_stay`: false if there is no descriptor for it.
void HttpServer::Impl::take(tcp::socket socket, bool may_stay) {
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), context_);
  const MutexLock lock(mutex_);
  const size_t max_connections = context_.options.max_connections;
  if (is_stopped_ || connections_.size() >= max_connections + kMaxRefusals) return;
  const bool has_room = may_stay && connections_.size() < max_connections;
  const auto place = connections_.emplace(connection.get(), connection).first;
  try {
    if (has_room) {
      connection->start();
    } else {
      connection->refuse(!may_stay);
    }
  } catch (...) {  // nobody would ever take it out
    connections_.erase(place);
    throw;
  }
}

void HttpServer::Impl::forget(const HttpConnection* connection) {
  std::shared_ptr<HttpConnection> last;  // is destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  last = std::move(found->second);
  connections_.erase(found);
}

void HttpServer::Impl::drain() {
  context_.draining->store(true);
  const MutexLock lock(mutex_);
  for (const auto& [key, connection] : connections_) connection->drain();
}

// The threads end once nothing is left to do: every acceptor and connection is closed, so every wait fails.
void HttpServer::Impl::stop() {
  const MutexLock stop_lock(stop_mutex_);
  {
    const MutexLock lock(mutex_);
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
  try {
    auto impl = std::make_unique<Impl>(options, service);
    RETURN_IF_ERROR(impl->listen());
    impl->run();
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
  } catch (const boost::system::system_error& error) {  // Asio's reactor, without descriptors
    return absl::UnavailableError(str_cat("the server cannot start: ", error.what()));
  }
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
