#include "comm/gloo_transport.h"

#ifdef TRANSEPT_GLOO

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/function_ref.h"
#include "comm/gloo_library.h"

namespace transept {

bool has_gloo() { return true; }

namespace {

// Gloo waits five times as long for a first connection.
constexpr std::chrono::milliseconds kConnectTimeout = std::chrono::seconds(6);
constexpr std::chrono::milliseconds kDays = std::chrono::hours(24 * 365);
constexpr size_t kAddressBytes = gloo::transport::Address::kMaxByteSize;

// Gloo throws; no exception passes this file.
Status guarded(FunctionRef<void()> work) {
  try {
    work();
    return ok_status();
  } catch (const std::exception& error) {
    // "[./gloo/transport/tcp/pair.cc:589] Connection closed by peer [127.0.0.1]:4711": the place is of no use.
    const std::string_view text = error.what();
    const size_t end_of_place = text.starts_with("[") ? text.find("] ") : std::string_view::npos;
    return absl::UnavailableError(
        str_cat("Gloo: ", end_of_place == std::string_view::npos ? text : text.substr(end_of_place + 2)));
  }
}

uint64_t slot_of(uint32_t tag, size_t bytes) { return static_cast<uint64_t>(bytes) << 16 | tag; }

class GlooBuffer final : public TransportBuffer {
 public:
  GlooBuffer(std::unique_ptr<gloo::transport::UnboundBuffer> buffer) : buffer_(std::move(buffer)) {}

  Status send(int to, uint32_t tag, size_t bytes) override {
    return guarded([&] { buffer_->send(to, slot_of(tag, bytes), 0, bytes); });
  }
  Status recv(int from, uint32_t tag, size_t bytes) override {
    return guarded([&] { buffer_->recv(from, slot_of(tag, bytes), 0, bytes); });
  }
  Status wait_sent(std::optional<Duration> timeout) override {
    return wait(timeout, [&](std::chrono::milliseconds time) { return buffer_->waitSend(nullptr, time); });
  }
  Status wait_received(std::optional<Duration> timeout) override {
    return wait(timeout, [&](std::chrono::milliseconds time) { return buffer_->waitRecv(nullptr, time); });
  }
  void abort() override {
    guarded([&] {
      buffer_->abortWaitRecv();
      buffer_->abortWaitSend();
    }).IgnoreError();
  }

 private:
  static Status wait(std::optional<Duration> timeout, FunctionRef<bool(std::chrono::milliseconds)> wait) {
    const TimePoint begin = std::chrono::steady_clock::now();
    const auto time = timeout.has_value() ? std::chrono::ceil<std::chrono::milliseconds>(*timeout) : kDays;
    bool is_over = false;
    Status waited = guarded([&] { is_over = wait(std::clamp(time, std::chrono::milliseconds(1), kDays)); });
    if (!waited.ok() && timeout.has_value() && std::chrono::steady_clock::now() - begin >= *timeout) {
      return absl::DeadlineExceededError("no answer in time");
    }
    if (waited.ok() && !is_over) return absl::CancelledError("given up");
    return waited;
  }

  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class GlooTransport final : public Transport {
 public:
  GlooTransport(std::shared_ptr<gloo::transport::Device> device, int rank, int size)
      : rank_(rank), size_(size), device_(std::move(device)), context_(device_->createContext(rank, size)) {
    context_->setTimeout(kConnectTimeout);
    for (int other = 0; other < size_; ++other) {
      if (other != rank_) context_->createPair(other);
    }
  }

  // kAddressBytes for each rank: the first byte of each is its size.
  std::vector<std::byte> addresses() const override {
    std::vector<std::byte> all((kAddressBytes + 1) * static_cast<size_t>(size_));
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const std::vector<char> address = context_->getPair(other)->address().bytes();
      std::byte* to = all.data() + place_of(other);
      *to = static_cast<std::byte>(address.size());
      std::memcpy(to + 1, address.data(), std::min(address.size(), kAddressBytes));
    }
    return all;
  }

  Status connect(const std::vector<std::vector<std::byte>>& of_ranks) override {
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const std::vector<std::byte>& theirs = of_ranks[static_cast<size_t>(other)];
      if (theirs.size() != (kAddressBytes + 1) * static_cast<size_t>(size_)) {
        return invalid_argument("rank ", other, " has addresses of ", theirs.size(), " bytes");
      }
      const std::byte* from = theirs.data() + place_of(rank_);
      // It is read as a structure of the system's sockets.
      const auto bytes = static_cast<size_t>(*from);
      if (bytes < sizeof(sockaddr_storage) || bytes > kAddressBytes) {
        return invalid_argument("rank ", other, " has an address of ", bytes, " bytes");
      }
      const std::vector<char> address(reinterpret_cast<const char*>(from) + 1,
                                      reinterpret_cast<const char*>(from) + 1 + bytes);
      if (const Status connected = guarded([&] { context_->getPair(other)->connect(address); }); !connected.ok()) {
        return with_prefix(connected, str_cat("rank ", other));
      }
    }
    return ok_status();
  }

  // Pair::close() would reset the connection, and what the other has not read would be lost with it.
  void close() override {
    for (int other = 0; other < size_; ++other) {
      if (other != rank_) guarded([&] { context_->getPair(other).reset(); }).IgnoreError();
    }
  }

  std::unique_ptr<TransportBuffer> buffer(std::byte* data, size_t bytes) override {
    return std::make_unique<GlooBuffer>(context_->createUnboundBuffer(data, bytes));
  }

 private:
  static size_t place_of(int rank) { return (kAddressBytes + 1) * static_cast<size_t>(rank); }

  const int rank_, size_;
  const std::shared_ptr<gloo::transport::Device> device_;
  const std::shared_ptr<gloo::transport::Context> context_;
};

}  // namespace

StatusOr<std::unique_ptr<Transport>> create_gloo_transport(int rank, int size, const std::string& address) {
  ASSIGN_OR_RETURN(CreateGlooDevice* const create_device, load_gloo());
  std::unique_ptr<Transport> transport;
  const Status created = guarded([&] {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    transport = std::make_unique<GlooTransport>(create_device(attributes), rank, size);
  });
  if (!created.ok()) return with_prefix(created, address);
  return transport;
}

}  // namespace transept

#else

namespace transept {

bool has_gloo() { return false; }

StatusOr<std::unique_ptr<Transport>> create_gloo_transport(int /*rank*/, int /*size*/, const std::string& /*address*/) {
  return unimplemented("this build has no Gloo: its headers (Debian: libgloo-dev) were not there");
}

}  // namespace transept

#endif
