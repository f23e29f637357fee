#include "disagg/local_broker.h"

#include <algorithm>

#include "base/clock.h"

namespace transept {
namespace {

using Request = LocalRequest::Kind;
using std::chrono::milliseconds;

constexpr Duration kAnswer = std::chrono::seconds(1);  // the longest time that a server needs
constexpr Duration kPing = milliseconds(250);
constexpr Duration kRenewSubscriptions = std::chrono::seconds(1);
constexpr int kMaxQueued = 1024;       // messages
constexpr size_t kMaxOutgoing = 4096;  // before those
constexpr size_t kMaxFrames = 256;     // of a subscription; the server gives 64 out
constexpr int64_t kBrokerLook = 50;    // milliseconds

// A request without its fields. Not a designated initialiser: GCC 12 takes the rest of it for uninitialised.
LocalRequest request_of(Request kind, const InstanceId& instance = {}, EcChannel channel = EcChannel::kAllocation) {
  LocalRequest request;
  request.kind = kind;
  request.instance = instance;
  request.channel = channel;
  return request;
}

Status away() { return absl::UnavailableError("the broker is away"); }

}  // namespace

StatusOr<std::unique_ptr<LocalBroker>> LocalBroker::connect(const std::string& path) {
  ASSIGN_OR_RETURN(auto context, ZmqContext::create());
  ASSIGN_OR_RETURN(ZmqSocket socket, ZmqSocket::open(*context, ZMQ_DEALER));
  socket.set(ZMQ_SNDHWM, kMaxQueued);
  socket.set(ZMQ_RCVHWM, kMaxQueued);
  socket.set_max_message_bytes(static_cast<int64_t>(kMaxLocalMessageBytes));
  RETURN_IF_ERROR(socket.connect("ipc://" + path));
  std::unique_ptr<LocalBroker> broker(new LocalBroker(std::move(context), std::move(socket)));
  if (!broker->waker_.is_valid()) return resource_exhausted("the process has too few descriptors");
  broker->thread_ = std::thread([raw = broker.get()] { raw->run(); });
  return broker;
}

LocalBroker::LocalBroker(std::unique_ptr<ZmqContext> context, ZmqSocket socket)
    : context_(std::move(context)), socket_(std::move(socket)), heard_(steady_now()) {}

LocalBroker::~LocalBroker() {
  std::vector<std::unique_ptr<Subscription>> subscriptions;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }
  waker_.wake();
  if (thread_.joinable()) thread_.join();
  {
    const MutexLock lock(mutex_);
    subscriptions.swap(subscriptions_);
  }
  for (const auto& subscription : subscriptions) subscription->thread.join();
}

// ---- What other threads ask

void LocalBroker::push(const LocalRequest& request) const {
  if (outgoing_.size() >= kMaxOutgoing) return;  // its caller, or the server, asks again
  encode_local_request(request, outgoing_.emplace_back());
  waker_.wake();
}

// `wait`: how long the server may wait before it answers.
StatusOr<LocalReply> LocalBroker::call(LocalRequest request, Duration wait) const {
  const TimePoint end = steady_now() + kAnswer + wait;
  Pending pending;
  const MutexLock lock(mutex_);
  if (is_away_ || is_stopped_) return away();
  request.id = ++num_requests_;
  pending_.emplace(request.id, &pending);
  push(request);
  while (!pending.is_over && !is_stopped_) {
    if (!changed_.wait_until(mutex_, end) && !pending.is_over && steady_now() >= end) break;
  }
  pending_.erase(request.id);
  if (!pending.is_over) return absl::UnavailableError("the broker does not answer");
  RETURN_IF_ERROR(pending.reply.status);
  return std::move(pending.reply);
}

Status LocalBroker::publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) {
  if (frame.size() > kMaxBrokerFrameBytes) return invalid_argument("a frame of ", frame.size(), " bytes is too large");
  LocalRequest request = request_of(Request::kPublish, to, channel);
  request.frame = frame;
  return ask(request);
}

Status LocalBroker::subscribe(const InstanceId& self, EcChannel channel,
                              std::function<void(std::span<const std::byte> frame)> take) {
  auto subscription = std::make_unique<Subscription>();
  subscription->self = self;
  subscription->channel = channel;
  subscription->take = std::move(take);
  {
    // Before the server knows of it: frames may come at once.
    const MutexLock lock(mutex_);
    subscriptions_.push_back(std::move(subscription));
    Subscription& added = *subscriptions_.back();
    added.thread = std::thread([this, &added] { deliver(added); });
  }
  LocalRequest request = request_of(Request::kSubscribe, self, channel);
  request.takes_over = true;
  Status status = ask(request);
  return absl::IsUnavailable(status) ? ok_status() : status;  // it is renewed every second
}

Status LocalBroker::offer(const Ticket& ticket) {
  LocalRequest request = request_of(Request::kOffer);
  request.ticket = ticket;
  return ask(request);
}

StatusOr<std::optional<Ticket>> LocalBroker::take(const InstanceId& self, const ModelFingerprint& model,
                                                  Duration wait) {
  LocalRequest request = request_of(Request::kTake, self);
  request.duration = wait;
  request.model = model;
  ASSIGN_OR_RETURN(LocalReply reply, call(std::move(request), wait));
  return std::move(reply.ticket);
}

Status LocalBroker::renew(const InstanceId& self, const EcKey& key) {
  LocalRequest request = request_of(Request::kRenew, self);
  request.key = key;
  return ask(request);
}

Status LocalBroker::done(const InstanceId& self, const EcKey& key) {
  LocalRequest request = request_of(Request::kDone, self);
  request.key = key;
  return ask(request);
}

Status LocalBroker::withdraw(const EcInput& input) {
  LocalRequest request = request_of(Request::kWithdraw);
  request.key = {input.request_id, input.input_id, 0};
  return ask(request);
}

StatusOr<int64_t> LocalBroker::num_tickets() const {
  ASSIGN_OR_RETURN(const LocalReply reply, call(request_of(Request::kNumTickets)));
  return reply.number;
}

Status LocalBroker::announce(const InstanceRecord& record, Duration ttl) {
  RETURN_IF_ERROR(check_instance_record(record));
  LocalRequest request = request_of(Request::kAnnounce);
  request.record = record;
  request.duration = ttl;
  return ask(request);
}

Status LocalBroker::leave(const InstanceId& self) { return ask(request_of(Request::kLeave, self)); }

StatusOr<std::vector<InstanceRecord>> LocalBroker::peers() const {
  ASSIGN_OR_RETURN(LocalReply reply, call(request_of(Request::kPeers)));
  return std::move(reply.records);
}

void LocalBroker::on_path(std::function<void(bool is_away)> tell) {
  const MutexLock lock(mutex_);
  tell_ = std::move(tell);
}

// ---- The socket's thread

void LocalBroker::run() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (is_stopped_) return;
    }
    send_queued();
    zmq_pollitem_t items[] = {{socket_.get(), 0, ZMQ_POLLIN, 0}, {nullptr, waker_.descriptor(), ZMQ_POLLIN, 0}};
    zmq().zmq_poll(items, 2, kBrokerLook);
    waker_.clear();
    receive();
    look_after(steady_now());
  }
}

void LocalBroker::send_queued() {
  const MutexLock lock(mutex_);
  while (!outgoing_.empty() && socket_.try_send(outgoing_.front())) outgoing_.pop_front();
}

void LocalBroker::receive() {
  for (int i = 0; i < kMaxQueued; ++i) {
    ZmqMessage message;
    if (!socket_.try_receive(message)) return;
    auto reply = decode_local_reply(message.bytes());
    if (reply.ok()) on_message(*std::move(reply), steady_now());
  }
}

void LocalBroker::on_message(LocalReply message, TimePoint now) {
  std::vector<bool> told;
  std::function<void(bool)> tell;
  {
    const MutexLock lock(mutex_);
    heard_ = now;
    // One that has started again was away, however short.
    const bool is_another = server_ != 0 && server_ != message.server;
    if (is_another && !is_away_) told.push_back(true);
    if (is_another || is_away_) {
      told.push_back(false);
      is_away_ = false;
      renew_subscriptions();
    }
    server_ = message.server;
    tell = tell_;
    if (message.kind == LocalReply::Kind::kDelivery) {
      for (const auto& subscription : subscriptions_) {
        if (subscription->channel != message.channel || subscription->frames.size() >= kMaxFrames) continue;
        subscription->frames.try_emplace(message.id, message.frame.begin(), message.frame.end());
      }
      changed_.notify_all();
    } else if (const auto found = pending_.find(message.id); found != pending_.end()) {
      message.frame = {};
      found->second->reply = std::move(message);
      found->second->is_over = true;
      changed_.notify_all();
    }
  }
  for (const bool is_away : told) {
    if (tell) tell(is_away);
  }
}

void LocalBroker::look_after(TimePoint now) {
  std::function<void(bool)> tell;
  {
    const MutexLock lock(mutex_);
    if (!is_away_ && now - heard_ > kAnswer) {
      is_away_ = true;
      outgoing_.clear();
      for (auto& [id, pending] : pending_) {
        pending->reply.status = away();
        pending->is_over = true;
      }
      changed_.notify_all();
      tell = tell_;
    }
    if (pinged_ == TimePoint::min() || now - pinged_ > kPing) {
      // A ping that could not be sent is there still.
      if (!is_away_ || outgoing_.empty()) push(request_of(Request::kPing));
      const bool renews = pinged_ != TimePoint::min() && now.time_since_epoch() / kRenewSubscriptions !=
                                                             pinged_.time_since_epoch() / kRenewSubscriptions;
      if (renews && !is_away_) renew_subscriptions();
      pinged_ = now;
    }
  }
  if (tell) tell(true);
}

void LocalBroker::renew_subscriptions() {
  for (const auto& subscription : subscriptions_) {
    push(request_of(Request::kSubscribe, subscription->self, subscription->channel));
  }
}

// ---- A subscription's thread

void LocalBroker::deliver(Subscription& subscription) {
  while (true) {
    uint64_t id = 0;
    std::vector<std::byte> frame;
    {
      const MutexLock lock(mutex_);
      while (!is_stopped_ && subscription.frames.empty()) changed_.wait(mutex_);
      if (is_stopped_) return;
      id = subscription.frames.begin()->first;
      frame = subscription.frames.begin()->second;  // it stays there, so that it is not taken twice meanwhile
    }
    subscription.take(frame);
    const MutexLock lock(mutex_);
    subscription.frames.erase(id);
    LocalRequest request = request_of(Request::kAcknowledge, subscription.self, subscription.channel);
    request.delivery = id;
    push(request);
  }
}

}  // namespace transept
