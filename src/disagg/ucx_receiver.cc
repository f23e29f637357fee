#include "disagg/ucx_receiver.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "encoder_cache/ec_frame.h"

namespace transept {
namespace {

constexpr Duration kReceiverLook = std::chrono::milliseconds(500);
constexpr size_t kMaxArrived = 1024;      // of a connection: descriptors of some hundred bytes, or small messages
constexpr size_t kMaxConnections = 4096;  // more than a fleet has encode instances

uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

StatusOr<std::unique_ptr<UcxReceiver>> UcxReceiver::create(const UcxAddress& address) {
  ASSIGN_OR_RETURN(auto worker, UcxWorker::create());
  std::unique_ptr<UcxReceiver> receiver(new UcxReceiver(std::move(worker)));
  RETURN_IF_ERROR(receiver->listen(address));
  return receiver;
}

Status UcxReceiver::listen(const UcxAddress& address) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kUcxChunk;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = [](void* self, const void* header, size_t num_header_bytes, void* data, size_t num_bytes,
                  const ucp_am_recv_param_t* param) {
    return static_cast<UcxReceiver*>(self)->on_message({static_cast<const std::byte*>(header), num_header_bytes}, data,
                                                       num_bytes, *param);
  };
  handler.arg = this;
  ucs_status_t status = ucx().ucp_worker_set_am_recv_handler(worker_->get(), &handler);
  if (status != UCS_OK) return absl::UnavailableError(ucx_error(status));
  ASSIGN_OR_RETURN(const sockaddr_storage place, address.resolve());
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&place), sizeof place};
  params.conn_handler.cb = [](ucp_conn_request_h request, void* self) {
    static_cast<UcxReceiver*>(self)->asking_.push_back(request);
  };
  params.conn_handler.arg = this;
  status = ucx().ucp_listener_create(worker_->get(), &params, &listener_);
  if (status != UCS_OK) {
    return absl::UnavailableError(str_cat("address ", address.text(), ": ", ucx_error(status)));
  }
  ucp_listener_attr_t bound{};
  bound.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucx().ucp_listener_query(listener_, &bound);
  if (status != UCS_OK) return absl::UnavailableError(ucx_error(status));
  address_ = {address.host, port_of(bound.sockaddr)};
  return ok_status();
}

UcxReceiver::~UcxReceiver() {
  is_stopped_ = true;
  worker_->wake();
  if (thread_.joinable()) thread_.join();
  for (ucp_conn_request_h request : asking_) ucx().ucp_listener_reject(listener_, request);
  for (auto& [endpoint, connection] : connections_) close(endpoint, *connection);
  if (listener_ != nullptr) ucx().ucp_listener_destroy(listener_);
}

void UcxReceiver::start(Take take) {
  thread_ = std::thread([this, take = std::move(take)] { run(take); });
}

void UcxReceiver::run(const Take& take) {
  while (!is_stopped_) {
    bool is_any = false;
    while (!is_stopped_ && worker_->progress()) is_any = true;
    accept();
    for (auto& [endpoint, connection] : connections_) {
      if (!is_stopped_) is_any = move_on(*connection, take) || is_any;
    }
    std::erase_if(connections_, [&](const auto& entry) {
      if (!entry.second->is_broken) return false;
      close(entry.first, *entry.second);
      return true;
    });
    if (!is_any) worker_->wait(kReceiverLook);
  }
}

void UcxReceiver::accept() {
  for (ucp_conn_request_h request : std::exchange(asking_, {})) {
    if (connections_.size() >= kMaxConnections) {
      ucx().ucp_listener_reject(listener_, request);
      continue;
    }
    auto connection = std::make_unique<Connection>();
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.conn_request = request;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void* broken, ucp_ep_h, ucs_status_t) {
      static_cast<Connection*>(broken)->is_broken = true;
    };
    params.err_handler.arg = connection.get();
    ucp_ep_h endpoint = nullptr;
    if (ucx().ucp_ep_create(worker_->get(), &params, &endpoint) != UCS_OK) continue;
    connections_[endpoint] = std::move(connection);
  }
}

// Within progress(): a message is only put down.
ucs_status_t UcxReceiver::on_message(std::span<const std::byte> front, void* data, size_t num_bytes,
                                     const ucp_am_recv_param_t& param) {
  if (front.empty()) return UCS_OK;  // the first of a connection
  const bool has_sender = (param.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  const auto found = has_sender ? connections_.find(param.reply_ep) : connections_.end();
  if (found == connections_.end() || front.size() > kMaxEcFrameBytes || num_bytes > kMaxEcFrameBytes - front.size() ||
      found->second->arrived.size() >= kMaxArrived) {
    ++num_cut_;
    return UCS_OK;
  }
  Arrived& arrived = found->second->arrived.emplace_back();
  arrived.frame.assign(front.begin(), front.end());
  if ((param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    arrived.rest = data;
    arrived.num_rest_bytes = num_bytes;
    return UCS_INPROGRESS;
  }
  const auto* const bytes = static_cast<const std::byte*>(data);
  arrived.frame.insert(arrived.frame.end(), bytes, bytes + num_bytes);
  return UCS_OK;
}

// Whether anything was done.
bool UcxReceiver::move_on(Connection& connection, const Take& take) {
  if (!connection.fetch.has_value()) {
    if (connection.arrived.empty() || connection.is_broken) return false;
    Arrived arrived = std::move(connection.arrived.front());
    connection.arrived.pop_front();
    Fetch& fetch = connection.fetch.emplace(Fetch{std::move(arrived.frame), nullptr});
    if (arrived.rest != nullptr) {
      const size_t num_front_bytes = fetch.frame.size();
      fetch.frame.resize(num_front_bytes + arrived.num_rest_bytes);
      ucp_request_param_t param{};
      fetch.request = ucx().ucp_am_recv_data_nbx(worker_->get(), arrived.rest, fetch.frame.data() + num_front_bytes,
                                                 arrived.num_rest_bytes, &param);
      if (UCS_PTR_IS_ERR(fetch.request)) {
        connection.fetch.reset();
        ++num_cut_;
        return true;
      }
    }
  }
  ucs_status_t status = UCS_OK;
  if (!UcxWorker::is_over(connection.fetch->request, status)) return false;
  const Fetch done = *std::exchange(connection.fetch, std::nullopt);
  status == UCS_OK ? take(done.frame) : (void)++num_cut_;
  return true;
}

void UcxReceiver::close(ucp_ep_h endpoint, Connection& connection) {
  for (const Arrived& arrived : connection.arrived) {
    if (arrived.rest != nullptr) ucx().ucp_am_data_release(worker_->get(), arrived.rest);
  }
  connection.arrived.clear();
  worker_->close(endpoint);
  if (connection.fetch.has_value()) stuck_.push_back(std::move(*connection.fetch));
  std::erase_if(stuck_, [](Fetch& fetch) {
    ucs_status_t status = UCS_OK;
    return UcxWorker::is_over(fetch.request, status);
  });
}

}  // namespace transept
