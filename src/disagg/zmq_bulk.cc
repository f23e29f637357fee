#include "disagg/zmq_bulk.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

constexpr int kMaxQueued = 8;  // messages, of a connection and on each side
constexpr int kSocketBytes = 1 << 20;
constexpr Duration kIdle = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kBulkLook{500};

}  // namespace

StatusOr<std::unique_ptr<ZmqBulk>> ZmqBulk::create(const std::string& address, std::shared_ptr<FrameWriter> writer) {
  ASSIGN_OR_RETURN(auto context, ZmqContext::create());
  ASSIGN_OR_RETURN(ZmqSocket in, ZmqSocket::open(*context, ZMQ_PULL));
  in.set(ZMQ_RCVHWM, kMaxQueued);
  in.set(ZMQ_RCVBUF, kSocketBytes);
  in.set_max_message_bytes(static_cast<int64_t>(kMaxEcFrameBytes));
  ASSIGN_OR_RETURN(std::string bound, in.bind(address));
  if (bound.size() > kMaxEcAddressBytes) {
    return invalid_argument("address ", bound, ": has ", bound.size(), " bytes; at most ", kMaxEcAddressBytes,
                            " are allowed");
  }
  std::unique_ptr<ZmqBulk> bulk(new ZmqBulk(std::move(context), std::move(in), std::move(bound), std::move(writer)));
  if (!bulk->wake_sender_.is_valid() || !bulk->wake_receiver_.is_valid()) {
    return resource_exhausted("the process has too few descriptors");
  }
  bulk->sender_ = std::thread([raw = bulk.get()] { raw->run_sender(); });
  return bulk;
}

ZmqBulk::ZmqBulk(std::unique_ptr<ZmqContext> context, ZmqSocket in, std::string address,
                 std::shared_ptr<FrameWriter> writer)
    : writer_(std::move(writer)), context_(std::move(context)), in_(std::move(in)), address_(std::move(address)) {}

ZmqBulk::~ZmqBulk() {
  is_stopped_ = true;
  wake_sender_.wake();
  wake_receiver_.wake();
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void ZmqBulk::send(std::string_view to, Sending sending) {
  queue_.add(to, std::move(sending));
  wake_sender_.wake();
}

void ZmqBulk::receive(std::function<void(std::span<const std::byte> frame)> take) {
  receiver_ = std::thread([this, take = std::move(take)] { run_receiver(take); });
}

void ZmqBulk::run_sender() {
  while (!is_stopped_) {
    bool any = false;
    std::vector<std::string> full;
    const std::vector<std::string> destinations = queue_.destinations();
    close_idle(destinations);
    for (const std::string& to : destinations) {
      if (send_one(to)) {
        any = true;
      } else {
        full.push_back(to);
      }
    }
    if (!any) wait_for_peers(full);
  }
  peers_.clear();
}

// A peer for whom there is something keeps its connection: the handshake says when it has waited long enough.
void ZmqBulk::close_idle(const std::vector<std::string>& destinations) {
  std::erase_if(peers_, [&, time = steady_now()](const auto& entry) {
    return time - entry.second.used > kIdle && !std::ranges::binary_search(destinations, entry.first);
  });
}

void ZmqBulk::wait_for_peers(const std::vector<std::string>& full) {
  std::vector<zmq_pollitem_t> items = {{nullptr, wake_sender_.descriptor(), ZMQ_POLLIN, 0}};
  for (const std::string& to : full) {
    const auto found = peers_.find(to);
    if (found != peers_.end()) items.push_back({found->second.socket.get(), 0, ZMQ_POLLOUT, 0});
  }
  zmq().zmq_poll(items.data(), static_cast<int>(items.size()), kBulkLook.count());
  wake_sender_.clear();
}

StatusOr<ZmqBulk::Peer*> ZmqBulk::peer(const std::string& to) {
  const auto found = peers_.find(to);
  if (found != peers_.end()) return &found->second;
  ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::open(*context_, ZMQ_PUSH));
  socket.set(ZMQ_SNDHWM, kMaxQueued);
  socket.set(ZMQ_SNDBUF, kSocketBytes);
  RETURN_IF_ERROR(socket.connect(to));
  return &peers_.emplace(to, Peer{std::move(socket), steady_now()}).first->second;
}

// Whether a chunk was handed over, or its output has failed.
bool ZmqBulk::send_one(const std::string& to) {
  const auto piece = queue_.begin(to);
  if (!piece.has_value()) return false;
  const StatusOr<Peer*> found = peer(to);
  if (!found.ok()) {
    queue_.fail(found.status());
    return true;
  }
  Peer& peer = **found;
  // Asked first, so that a full queue costs no checksum.
  zmq_pollitem_t item{peer.socket.get(), 0, ZMQ_POLLOUT, 0};
  if (zmq().zmq_poll(&item, 1, 0) <= 0) {
    queue_.keep();
    return false;
  }
  if (const Status written = writer_->write_front(piece->chunk, front_); !written.ok()) {
    queue_.fail(written);
    return true;
  }
  if (!peer.socket.try_send(front_, true) || !peer.socket.try_send_shared(piece->chunk.bytes, piece->rows)) {
    queue_.keep();
    return false;
  }
  peer.used = steady_now();
  queue_.advance();
  return true;
}

void ZmqBulk::run_receiver(const std::function<void(std::span<const std::byte> frame)>& take) {
  std::vector<std::byte> frame;
  while (!is_stopped_) {
    zmq_pollitem_t items[] = {{in_.get(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_receiver_.descriptor(), ZMQ_POLLIN, 0}};
    zmq().zmq_poll(items, 2, kBulkLook.count());
    wake_receiver_.clear();
    while (!is_stopped_) {
      // Parts of a message are there together.
      ZmqMessage part;
      if (!in_.try_receive(part)) break;
      frame.assign(part.bytes().begin(), part.bytes().end());
      bool has_more = part.has_more(), is_cut = false;
      while (has_more) {
        ZmqMessage next;
        if (!in_.try_receive(next)) break;
        has_more = next.has_more();
        is_cut = is_cut || frame.size() + next.bytes().size() > kMaxEcFrameBytes;
        if (!is_cut) frame.insert(frame.end(), next.bytes().begin(), next.bytes().end());
      }
      if (is_cut) {
        ++num_cut_;
      } else {
        take(frame);
      }
    }
  }
}

}  // namespace transept
