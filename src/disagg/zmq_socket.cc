#include "disagg/zmq_socket.h"

#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

namespace transept {
namespace {

constexpr std::string_view kIpc = "ipc://", kTcp = "tcp://";
constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;  // a zero byte ends it

std::string last_error() { return zmq().zmq_strerror(zmq().zmq_errno()); }

// What the library calls when it no longer needs bytes.
void let_go(void* /*bytes*/, void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

// libzmq ends the process where it cannot start the threads that it makes with the first socket.
Status try_threads() {
  constexpr int kThreads = 2;  // one for connections, one that reaps closed sockets
  std::latch all_are_there(1);
  std::vector<std::jthread> threads;
  Status status;
  try {
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { all_are_there.wait(); });
  } catch (const std::system_error& error) {
    status = resource_exhausted("libzmq's threads cannot be started (", error.what(),
                                "): the limit of processes (ulimit -u) or of the control group (pids.max) is reached");
  }
  all_are_there.count_down();
  return status;
}

}  // namespace

Status check_zmq_address(std::string_view address) {
  if (address.starts_with(kIpc)) {
    const size_t size = address.size() - kIpc.size();
    if (size == 0) return invalid_argument("address ", address, ": names no path");
    if (size <= kMaxPathBytes) return ok_status();
    return invalid_argument("address ", address, ": its path has ", size, " bytes; sockets allow ", kMaxPathBytes);
  }
  if (address.starts_with(kTcp) && address.rfind(':') > kTcp.size()) return ok_status();
  return invalid_argument("address ", address, ": is neither ipc://PATH nor tcp://HOST:PORT");
}

StatusOr<std::unique_ptr<ZmqContext>> ZmqContext::create() {
  RETURN_IF_ERROR(load_zmq());
  RETURN_IF_ERROR(try_threads());
  void* const context = zmq().zmq_ctx_new();
  if (context == nullptr) return resource_exhausted("libzmq: ", last_error());
  return std::unique_ptr<ZmqContext>(new ZmqContext(context));
}

// Sockets are closed and linger for nothing, so it does not wait for a peer.
ZmqContext::~ZmqContext() { zmq().zmq_ctx_term(context_); }

StatusOr<ZmqSocket> ZmqSocket::open(const ZmqContext& context, int type) {
  void* const socket = zmq().zmq_socket(context.get(), type);
  if (socket == nullptr) return resource_exhausted("libzmq: no socket: ", last_error());
  ZmqSocket opened(socket);
  opened.set(ZMQ_LINGER, 0);
  opened.set(ZMQ_IMMEDIATE, 1);
  return opened;
}

ZmqSocket::~ZmqSocket() {
  if (socket_ != nullptr) zmq().zmq_close(socket_);
}

void ZmqSocket::set(int option, int value) {
  CHECK(zmq().zmq_setsockopt(socket_, option, &value, sizeof value) == 0, "an option that libzmq lacks");
}

void ZmqSocket::set(int option, std::string_view bytes) {
  CHECK(zmq().zmq_setsockopt(socket_, option, bytes.data(), bytes.size()) == 0, "an option that libzmq lacks");
}

void ZmqSocket::set_max_message_bytes(int64_t size) {
  CHECK(zmq().zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &size, sizeof size) == 0, "an option that libzmq lacks");
}

StatusOr<std::string> ZmqSocket::bind(const std::string& address) {
  RETURN_IF_ERROR(check_zmq_address(address));
  if (zmq().zmq_bind(socket_, address.c_str()) != 0) {
    return absl::UnavailableError(str_cat("address ", address, ": ", last_error()));
  }
  std::array<char, 512> bound{};
  size_t size = bound.size();
  if (zmq().zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound.data(), &size) != 0) return address;
  return std::string(bound.data());
}

Status ZmqSocket::connect(const std::string& address) {
  RETURN_IF_ERROR(check_zmq_address(address));
  if (zmq().zmq_connect(socket_, address.c_str()) == 0) return ok_status();
  return absl::UnavailableError(str_cat("address ", address, ": ", last_error()));
}

bool ZmqSocket::try_send(std::span<const std::byte> bytes, bool has_more) {
  zmq_msg_t message;
  if (zmq().zmq_msg_init_size(&message, bytes.size()) != 0) return false;
  if (!bytes.empty()) std::memcpy(zmq().zmq_msg_data(&message), bytes.data(), bytes.size());
  if (zmq().zmq_msg_send(&message, socket_, ZMQ_DONTWAIT | (has_more ? ZMQ_SNDMORE : 0)) >= 0) return true;
  zmq().zmq_msg_close(&message);
  return false;
}

bool ZmqSocket::try_send_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  zmq_msg_t message;
  auto* const held = new std::shared_ptr<const void>(std::move(owner));
  // The library reads the bytes only.
  if (zmq().zmq_msg_init_data(&message, const_cast<std::byte*>(bytes.data()), bytes.size(), let_go, held) != 0) {
    delete held;
    return false;
  }
  if (zmq().zmq_msg_send(&message, socket_, ZMQ_DONTWAIT) >= 0) return true;
  zmq().zmq_msg_close(&message);
  return false;
}

bool ZmqSocket::try_receive(ZmqMessage& message) {
  return zmq().zmq_msg_recv(message.get(), socket_, ZMQ_DONTWAIT) >= 0;
}

ZmqWaker::ZmqWaker() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

ZmqWaker::~ZmqWaker() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ZmqWaker::wake() {
  const uint64_t one = 1;
  static_cast<void>(!::write(descriptor_, &one, sizeof one));  // a full counter is awake already
}

void ZmqWaker::clear() {
  uint64_t count = 0;
  static_cast<void>(!::read(descriptor_, &count, sizeof count));
}

}  // namespace transept
