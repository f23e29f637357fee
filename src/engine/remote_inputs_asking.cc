// What a decode instance asks for itself (decision 37): under which names, for which requests, and until when.
#include <algorithm>

#include "engine/remote_inputs.h"

namespace transept {

const std::string& RemoteInputs::name_of(const std::string& request_id) const {
  const auto asked = asked_.find(request_id);
  return asked == asked_.end() ? request_id : asked->second.name;
}

const std::string& RemoteInputs::request_of(const std::string& name) const {
  const auto asker = askers_.find(name);
  return asker == askers_.end() ? name : asker->second;
}

// Of an announcement that comes after its request has ended or has found its rows: what it brings would not be claimed,
// and hold room until it is unclaimed for too long.
bool RemoteInputs::is_withdrawn(const EcKey& key) const {
  if (!key.request_id.starts_with(asking_prefix_) || askers_.contains(key.request_id)) return false;
  const EcReceiver* receiver = table_.find_receiver(input_of(key));
  return receiver == nullptr || (receiver->is_over() && receiver->is_newer(key));
}

void RemoteInputs::refuse_withdrawn(const InstanceId& from, const EcKey& key) {
  EcReceiverOutput gone;
  gone.kind = EcReceiverOutput::Kind::kCancel;
  gone.to = from;
  gone.key = key;
  outputs_.push_back(std::move(gone));
}

void RemoteInputs::make_remote(std::vector<EncoderItem>& items) const {
  if (options_.asker == nullptr) return;
  if (std::ranges::any_of(items, [](const EncoderItem& item) { return item.remote.has_value(); })) return;
  for (size_t i = 0; i < items.size(); ++i) transept::make_remote(items[i], static_cast<uint32_t>(i));
}

// Whether the rows are here under the request's own id. If they are gone, or are others, what is left of them ends, and
// this instance asks.
bool RemoteInputs::take_held(const std::string& request_id, std::span<const EncoderItem> items) {
  if (table_.find_receiver({request_id, 0}) == nullptr) return false;
  has_uses_.insert(request_id);
  if (check_announced(request_id, items).ok() && claim(request_id, items)) return true;
  end(request_id);
  return false;
}

// A name of its own for each time: what an earlier one left, here and at encode instances, is none of its business.
RemoteInputs::Asked& RemoteInputs::begin_asking(const std::string& request_id) {
  Asked asked;
  asked.name = str_cat(asking_prefix_, num_asked_++);
  askers_.emplace(asked.name, request_id);
  return asked_.insert_or_assign(request_id, std::move(asked)).first->second;
}

void RemoteInputs::ask(const std::string& name, std::span<const EncoderItem> items, TimePoint deadline) {
  const auto trace = traces_.find(request_of(name));
  for (size_t i = 0; i < items.size(); ++i) {
    const RemoteInput& remote = *items[i].remote;
    const EcInput input{name, static_cast<uint32_t>(i)};
    if (cache_.is_written(input)) {
      table_.count_hits(1);
      continue;
    }
    EncodeAsk asked{
        input, remote.digest, options_.model, remote.num_positions, items[i].content, deadline - clock_.now()};
    if (trace != traces_.end()) asked.trace = *trace->second;
    options_.asker->ask(std::move(asked));
  }
}

bool RemoteInputs::ask_again(const std::string& request_id, std::span<const EncoderItem> items) {
  const auto known = asked_.find(request_id);
  if (known != asked_.end()) return !known->second.group_items.empty();
  if (options_.asker == nullptr || items.front().content == nullptr) return false;
  Asked& asked = begin_asking(request_id);
  has_uses_.insert(request_id);
  if (claim(asked.name, items)) return false;
  asked.group_items.assign(items.begin(), items.end());
  asked.deadline = clock_.now() + options_.max_wait;
  deadlines_.emplace(asked.deadline, request_id);
  ++num_asking_groups_;
  ask(asked.name, items, asked.deadline);
  return true;
}

bool RemoteInputs::may_fall_back(std::span<const EncoderItem> items) const {
  return options_.falls_back && !items.empty() && items.front().content != nullptr;
}

// What this instance has asked for is encoded here: a request that waits becomes an ordinary one, the engine does the
// same for a group. What has come of its rows is not needed any longer. False: it may not be, or nothing waits.
bool RemoteInputs::fall_back(const std::string& request_id, std::vector<InputStage::Request>& ready) {
  if (const auto waits = awaiting_inputs_.find(request_id); waits != awaiting_inputs_.end()) {
    if (!may_fall_back(waits->second.request.inputs.items)) return false;
    InputStage::Request request = remove(request_id);
    end(request_id);
    for (EncoderItem& item : request.inputs.items) make_local(item);
    ready.push_back(std::move(request));
    return true;
  }
  const auto asked = asked_.find(request_id);
  if (asked == asked_.end() || !may_fall_back(asked->second.group_items)) return false;
  stop_waiting(asked->second);
  lost_.push_back({.request_id = request_id, .falls_back = true});
  return true;
}

// REQUIRES: it was asked for.
void RemoteInputs::collect_group(const std::string& request_id, std::vector<RequestOutput>& ended) {
  Asked& asked = asked_.at(request_id);
  if (asked.group_items.empty()) return;
  // What is gone again ends at its deadline, or is encoded here then.
  const Status same = check_announced(asked.name, asked.group_items);
  if (!same.ok() && !absl::IsUnavailable(same)) return lose(request_id, same, ended);
  if (claim(asked.name, asked.group_items)) stop_waiting(asked);
}

// The group's rows are here, or it is over.
void RemoteInputs::stop_waiting(Asked& asked) {
  if (asked.group_items.empty()) return;
  deadlines_.erase({asked.deadline, request_of(asked.name)});
  for (size_t i = 0; i < asked.group_items.size(); ++i) {
    options_.asker->withdraw({asked.name, static_cast<uint32_t>(i)});
  }
  asked.group_items.clear();
  --num_asking_groups_;
}

void RemoteInputs::forget_asked(const std::string& request_id) {
  const auto asked = asked_.find(request_id);
  if (asked == asked_.end()) return;
  stop_waiting(asked->second);
  askers_.erase(asked->second.name);
  asked_.erase(asked);
}

}  // namespace transept
