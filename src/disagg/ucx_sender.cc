#include "disagg/ucx_sender.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

constexpr Duration kIdle = std::chrono::seconds(5);
constexpr Duration kSenderLook = std::chrono::milliseconds(500), kTryAgain = std::chrono::milliseconds(200);

// The receiver hears who speaks, by the connection.
void* send_message(ucp_ep_h endpoint, std::span<const std::byte> header, std::span<const std::byte> bytes,
                   uint32_t flags) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_REPLY | flags;
  return ucx().ucp_am_send_nbx(endpoint, kUcxChunk, header.data(), header.size(), bytes.data(), bytes.size(), &param);
}

}  // namespace

UcxSender::UcxSender(std::unique_ptr<UcxWorker> worker, std::shared_ptr<FrameWriter> writer)
    : worker_(std::move(worker)), writer_(std::move(writer)) {
  thread_ = std::thread([this] { run(); });
}

UcxSender::~UcxSender() {
  is_stopped_ = true;
  worker_->wake();
  thread_.join();
}

void UcxSender::send(std::string_view to, BulkTransport::Sending sending) {
  queue_.add(to, std::move(sending));
  worker_->wake();
}

void UcxSender::run() {
  while (!is_stopped_) {
    bool is_any = false;
    while (worker_->progress()) is_any = true;
    const std::vector<std::string> destinations = queue_.destinations();
    close_idle(destinations);
    for (const auto& [to, peer] : peers_) end_flights(*peer);
    for (const std::string& to : destinations) is_any = send_one(to) || is_any;
    if (!is_any) worker_->wait(destinations.empty() ? kSenderLook : kTryAgain);
  }
  for (const auto& [to, peer] : peers_) close(*peer);
  peers_.clear();
}

// A peer for whom there is something keeps its connection, unless it is broken.
void UcxSender::close_idle(const std::vector<std::string>& destinations) {
  std::erase_if(peers_, [&, time = steady_now()](const auto& entry) {
    Peer& peer = *entry.second;
    if (peer.is_broken) {
      close(peer);
      peer.again_at = time + kTryAgain;
    }
    if (time - peer.used < kIdle || std::ranges::binary_search(destinations, entry.first)) return false;
    close(peer);
    return true;
  });
}

// Whether a chunk was handed over, or its output has failed.
bool UcxSender::send_one(const std::string& to) {
  const auto piece = queue_.begin(to);
  if (!piece.has_value()) return false;
  auto& peer = peers_[to];
  if (peer == nullptr) peer = std::make_unique<Peer>();
  peer->used = steady_now();
  StatusOr<bool> is_sent = is_connected(*peer, to);
  if (is_sent.ok() && *is_sent) is_sent = hand_over(*peer, *piece);
  if (!is_sent.ok()) {
    queue_.fail(is_sent.status());
    return true;
  }
  *is_sent ? queue_.advance() : queue_.keep();
  return *is_sent;
}

// Errors: the address is none.
StatusOr<bool> UcxSender::is_connected(Peer& peer, const std::string& to) {
  if (peer.is_broken || steady_now() < peer.again_at) return false;
  if (peer.endpoint == nullptr) RETURN_IF_ERROR(connect(peer, to));
  if (peer.is_ready || peer.endpoint == nullptr) return peer.is_ready;
  ucs_status_t status = UCS_OK;
  if (!UcxWorker::is_over(peer.hello, status)) return false;
  peer.is_ready = status == UCS_OK;
  peer.is_broken = !peer.is_ready;
  return peer.is_ready;
}

Status UcxSender::connect(Peer& peer, const std::string& to) {
  ASSIGN_OR_RETURN(const UcxAddress address, UcxAddress::parse(to));
  if (address.port == 0) return invalid_argument("address ", to, ": has no port");
  const StatusOr<sockaddr_storage> place = address.resolve();
  peer.again_at = steady_now() + kTryAgain;
  if (!place.ok()) return ok_status();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&*place), sizeof(sockaddr_storage)};
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = [](void* broken, ucp_ep_h, ucs_status_t) { static_cast<Peer*>(broken)->is_broken = true; };
  params.err_handler.arg = &peer;
  if (ucx().ucp_ep_create(worker_->get(), &params, &peer.endpoint) != UCS_OK) {
    peer.endpoint = nullptr;
    return ok_status();
  }
  peer.again_at = TimePoint::min();
  void* const hello = send_message(peer.endpoint, {}, {}, UCP_AM_SEND_FLAG_EAGER);
  if (UCS_PTR_IS_ERR(hello)) {
    peer.is_broken = true;
  } else {
    peer.hello = hello;
  }
  return ok_status();
}

StatusOr<bool> UcxSender::hand_over(Peer& peer, const SendQueue::Piece& piece) {
  if (peer.flights.size() >= kMaxInFlight) return false;
  Flight& flight = peer.flights.emplace_back(Flight{nullptr, {}, piece.rows});
  if (const Status written = writer_->write_front(piece.chunk, flight.front); !written.ok()) {
    peer.flights.pop_back();
    return written;
  }
  void* const request = send_message(peer.endpoint, flight.front, piece.chunk.bytes, UCP_AM_SEND_FLAG_RNDV);
  if (UCS_PTR_IS_ERR(request)) {
    peer.flights.pop_back();
    peer.is_broken = true;
    return false;
  }
  flight.request = request;
  return true;
}

// What was sent and has not come is the handshake's matter.
void UcxSender::end_flights(Peer& peer) {
  ucs_status_t status = UCS_OK;
  std::erase_if(peer.flights, [&](Flight& flight) { return UcxWorker::is_over(flight.request, status); });
}

void UcxSender::close(Peer& peer) {
  if (peer.endpoint != nullptr) worker_->close(std::exchange(peer.endpoint, nullptr));
  end_flights(peer);
  std::ranges::move(peer.flights, std::back_inserter(stuck_));
  peer.flights.clear();
  if (peer.hello != nullptr) stuck_.push_back({std::exchange(peer.hello, nullptr), {}, nullptr});
  std::erase_if(stuck_, [](Flight& flight) {
    ucs_status_t status = UCS_OK;
    return UcxWorker::is_over(flight.request, status);
  });
  peer.is_ready = peer.is_broken = false;
}

}  // namespace transept
