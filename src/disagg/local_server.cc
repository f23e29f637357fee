#include "disagg/local_server.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

using Request = LocalRequest::Kind;

constexpr int kMaxAtOnce = 256;       // messages that are read before others are sent
constexpr int kMaxQueued = 1024;      // messages, of a client
constexpr int64_t kServerLook = 200;  // milliseconds: expired records, frames that are given again
constexpr Duration kSubscribed = std::chrono::seconds(10);  // clients renew it every second

}  // namespace

StatusOr<std::unique_ptr<LocalServer>> LocalServer::start(const std::string& path, uint64_t id,
                                                          const Options& options) {
  ASSIGN_OR_RETURN(auto context, ZmqContext::create());
  ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::open(*context, ZMQ_ROUTER));
  socket.set(ZMQ_ROUTER_MANDATORY, 1);  // a client that has gone is an error of its message
  socket.set(ZMQ_ROUTER_HANDOVER, 1);   // a client that comes back has its name again
  socket.set(ZMQ_SNDHWM, kMaxQueued);
  socket.set(ZMQ_RCVHWM, kMaxQueued);
  socket.set_max_message_bytes(static_cast<int64_t>(2 * kMaxBrokerFrameBytes));
  RETURN_IF_ERROR(socket.bind("ipc://" + path).status());
  std::unique_ptr<LocalServer> server(new LocalServer(std::move(context), std::move(socket), id, options));
  if (!server->waker_.is_valid()) return resource_exhausted("the process has too few descriptors");
  server->thread_ = std::thread([raw = server.get()] { raw->run(); });
  return server;
}

LocalServer::LocalServer(std::unique_ptr<ZmqContext> context, ZmqSocket socket, uint64_t id, const Options& options)
    : id_(id),
      options_(options),
      context_(std::move(context)),
      socket_(std::move(socket)),
      instances_(options.instances),
      tickets_(options.max_tickets) {}

LocalServer::~LocalServer() {
  is_stopped_ = true;
  waker_.wake();
  if (thread_.joinable()) thread_.join();
}

void LocalServer::run() {
  while (!is_stopped_) {
    zmq_pollitem_t items[] = {{socket_.get(), 0, ZMQ_POLLIN, 0}, {nullptr, waker_.descriptor(), ZMQ_POLLIN, 0}};
    zmq().zmq_poll(items, 2, milliseconds_to_wait(steady_now()));
    const TimePoint now = steady_now();
    receive(now);
    serve_takers(now);
    deliver(now);
  }
}

int64_t LocalServer::milliseconds_to_wait(TimePoint now) const {
  if (takers_.empty()) return kServerLook;
  TimePoint next = TimePoint::max();
  for (const Taker& taker : takers_) next = std::min({next, taker.end, tickets_.next_time(taker.model)});
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return std::clamp<int64_t>(wait, 0, kServerLook);
}

void LocalServer::receive(TimePoint now) {
  for (int i = 0; i < kMaxAtOnce; ++i) {
    ZmqMessage name;
    if (!socket_.try_receive(name)) return;
    const Client client(reinterpret_cast<const char*>(name.bytes().data()), name.bytes().size());
    ZmqMessage body;
    bool is_whole = name.has_more() && socket_.try_receive(body);
    for (bool has_more = is_whole && body.has_more(); has_more;) {  // one part is allowed
      is_whole = false;
      ZmqMessage rest;
      has_more = socket_.try_receive(rest) && rest.has_more();
    }
    const auto request = is_whole ? decode_local_request(body.bytes()) : invalid_argument("of several parts");
    if (request.ok()) {
      handle(client, *request, now);
    } else {
      ++num_refused_;
    }
  }
}

void LocalServer::handle(const Client& client, const LocalRequest& request, TimePoint now) {
  if (request.kind == Request::kAcknowledge) {
    return instances_.acknowledge(request.instance, request.channel, request.delivery);
  }
  if (request.kind == Request::kTake && takers_.size() < options_.max_takers) {
    takers_.push_back({client, request.id, request.instance, request.model, now + request.duration});
    return;
  }
  LocalReply reply = answer(client, request, now);
  reply.id = request.id;
  send(client, std::move(reply));  // a client that does not read asks again
}

LocalReply LocalServer::answer(const Client& client, const LocalRequest& request, TimePoint now) {
  LocalReply reply;
  switch (request.kind) {
    case Request::kPing:
    case Request::kAcknowledge: break;
    case Request::kPublish:
      reply.status = instances_.publish(request.instance, request.channel, request.frame, now);
      break;
    case Request::kSubscribe: reply.status = subscribe(client, request, now); break;
    case Request::kOffer: reply.status = tickets_.offer(request.ticket, now); break;
    case Request::kTake: reply.status = resource_exhausted("too many instances wait for tickets"); break;
    case Request::kRenew: reply.status = tickets_.renew(request.instance, request.key, now); break;
    case Request::kDone: reply.status = tickets_.done(request.instance, request.key, now); break;
    case Request::kWithdraw: tickets_.withdraw(input_of(request.key)); break;
    case Request::kNumTickets: reply.number = tickets_.num_waiting(now); break;
    case Request::kAnnounce: reply.status = instances_.announce(request.record, request.duration, now); break;
    case Request::kLeave: instances_.leave(request.instance); break;
    case Request::kPeers: reply.records = instances_.peers(now); break;
  }
  return reply;
}

Status LocalServer::subscribe(const Client& client, const LocalRequest& request, TimePoint now) {
  RETURN_IF_ERROR(instances_.keep(request.instance, now + kSubscribed, now, request.takes_over));
  auto& subscription = subscriptions_[{request.instance.name, request.channel}];
  if (!request.takes_over && subscription.until > now && subscription.client != client) {
    return absl::FailedPreconditionError(str_cat(request.instance.name, " is subscribed elsewhere"));
  }
  subscription = {client, request.instance, request.channel, now + kSubscribed};
  return ok_status();
}

void LocalServer::serve_takers(TimePoint now) {
  for (auto taker = takers_.begin(); taker != takers_.end();) {
    LocalReply reply;
    reply.id = taker->request;
    reply.ticket = tickets_.take(taker->self, taker->model, now);
    if (!reply.ticket.has_value() && taker->end > now) {
      ++taker;
      continue;
    }
    send(taker->client, std::move(reply));  // a ticket that does not reach its taker is idle, and goes to the next
    taker = takers_.erase(taker);
  }
}

void LocalServer::deliver(TimePoint now) {
  std::erase_if(subscriptions_, [now](const auto& entry) { return entry.second.until <= now; });
  for (const auto& [name, subscription] : subscriptions_) {
    while (const auto next = instances_.next(subscription.self, subscription.channel, now)) {
      LocalReply reply;
      reply.kind = LocalReply::Kind::kDelivery;
      reply.id = next->id;
      reply.channel = subscription.channel;
      reply.frame = *next->frame;
      if (!send(subscription.client, std::move(reply))) break;  // it is given again
    }
  }
}

bool LocalServer::send(const Client& client, LocalReply reply) {
  reply.server = id_;
  encode_local_reply(reply, bytes_);
  return socket_.try_send(std::as_bytes(std::span(client)), true) && socket_.try_send(bytes_);
}

}  // namespace transept
