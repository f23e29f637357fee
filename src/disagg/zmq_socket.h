// libzmq's contexts, sockets and messages as values that close themselves. Errors of the library are Status. A socket
// is used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "disagg/zmq_library.h"

namespace transept {

// Thread-safe. REQUIRES: outlives its sockets.
class ZmqContext final {
 public:
  // Errors: as load_zmq(); kResourceExhausted, the process has too few descriptors.
  static StatusOr<std::unique_ptr<ZmqContext>> create();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  void* get() const { return context_; }

 private:
  explicit ZmqContext(void* context) : context_(context) {}
  void* context_;
};

// One part of a message that came.
class ZmqMessage final {
 public:
  ZmqMessage() { zmq().zmq_msg_init(&message_); }
  ~ZmqMessage() { zmq().zmq_msg_close(&message_); }
  ZmqMessage(const ZmqMessage&) = delete;
  ZmqMessage& operator=(const ZmqMessage&) = delete;

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(zmq().zmq_msg_data(&message_)), zmq().zmq_msg_size(&message_)};
  }
  bool has_more() const { return zmq().zmq_msg_more(&message_) != 0; }
  zmq_msg_t* get() { return &message_; }

 private:
  mutable zmq_msg_t message_;
};

class ZmqSocket final {
 public:
  // `type`: ZMQ_ROUTER, .. Nothing lingers when it closes, and connections wait for their other side. Errors:
  // kResourceExhausted, too many sockets or descriptors.
  static StatusOr<ZmqSocket> open(const ZmqContext& context, int type);
  ZmqSocket(ZmqSocket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&&) = delete;
  ~ZmqSocket();

  // REQUIRES: the option exists, and is an int.
  void set(int option, int value);
  void set(int option, std::string_view bytes);
  void set_max_message_bytes(int64_t size);  // larger ones end their connection before they are kept
  // Errors: kInvalidArgument, no address, or one that is too long for a socket of the file system; kUnavailable, the
  // address cannot be had. The address that it has, ports filled in, is returned.
  StatusOr<std::string> bind(const std::string& address);
  Status connect(const std::string& address);

  // Whether the part was queued; false: the queue is full, or there is no connection.
  bool try_send(std::span<const std::byte> bytes, bool has_more = false);
  // The same without a copy: `owner` holds the bytes, and is let go of by a thread of the library.
  bool try_send_shared(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  // Whether there was a part.
  bool try_receive(ZmqMessage& message);

  void* get() const { return socket_; }

 private:
  explicit ZmqSocket(void* socket) : socket_(socket) {}
  void* socket_;
};

// Checks the form of an address that a peer or a flag names: ipc://PATH, or tcp://HOST:PORT. Errors: kInvalidArgument.
Status check_zmq_address(std::string_view address);

// Wakes a thread that waits in zmq_poll(). Thread-safe.
class ZmqWaker final {
 public:
  ZmqWaker();
  ~ZmqWaker();
  ZmqWaker(const ZmqWaker&) = delete;
  ZmqWaker& operator=(const ZmqWaker&) = delete;

  bool is_valid() const { return descriptor_ >= 0; }
  void wake();
  void clear();
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace transept
