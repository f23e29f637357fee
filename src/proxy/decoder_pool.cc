#include "proxy/decoder_pool.h"

#include <algorithm>
#include <utility>

namespace transept {

void DecoderPool::set_records(std::span<const InstanceRecord> records) {
  const MutexLock lock(mutex_);
  std::map<std::string, Instance> kept;
  for (const InstanceRecord& record : records) {
    if (record.role == InstanceRole::kEncode || record.url.empty()) continue;
    Instance& instance = kept[record.id.name];
    const auto known = instances_.find(record.id.name);
    if (known != instances_.end() && known->second.record.id == record.id) instance = std::move(known->second);
    instance.record = record;
    instance.most_free = std::max(instance.most_free, record.load.num_free_slots);
  }
  instances_ = std::move(kept);
}

bool DecoderPool::is_ready(const Instance& instance, TimePoint now) {
  if (instance.record.is_draining) return false;
  return instance.pause == Duration::zero() || now >= std::max(instance.out_until, instance.probed_until);
}

std::optional<DecoderPool::Choice> DecoderPool::begin(std::span<const InstanceId> tried, TimePoint now) {
  const MutexLock lock(mutex_);
  std::vector<Instance*> ready;
  for (auto& [name, instance] : instances_) {
    const bool was_tried = std::ranges::find(tried, instance.record.id) != tried.end();
    if (!was_tried && is_ready(instance, now)) ready.push_back(&instance);
  }
  if (ready.empty()) return std::nullopt;
  const auto busy = [](const Instance& instance) {
    return std::max(instance.num_begun, instance.record.load.num_queued + instance.record.load.num_running);
  };
  const size_t first = std::uniform_int_distribution<size_t>(0, ready.size() - 1)(random_);
  Instance* chosen = ready[first];
  if (ready.size() > 1) {
    const size_t other = std::uniform_int_distribution<size_t>(1, ready.size() - 1)(random_);
    Instance* const second = ready[(first + other) % ready.size()];
    if (busy(*second) < busy(*chosen)) chosen = second;
  }
  ++chosen->num_begun;
  if (chosen->pause != Duration::zero()) chosen->probed_until = now + chosen->pause;
  return Choice{chosen->record.id, chosen->record.url, chosen->record.model};
}

void DecoderPool::end(const InstanceId& id, Outcome outcome, TimePoint now, std::string_view words) {
  const MutexLock lock(mutex_);
  Instance* const found = find(id);
  if (found == nullptr) return;
  Instance& instance = *found;
  instance.num_begun = std::max<int64_t>(0, instance.num_begun - 1);  // it may have been away in between
  switch (outcome) {
    case Outcome::kAnswered: be_well(instance); break;
    case Outcome::kRefused:
      // Without words, those from before may still be why.
      if (!words.empty()) {
        instance.refusal = words.substr(0, kMaxWordsBytes);
        instance.refused_at = now;
      }
      if (++instance.num_refusals >= options_.max_refusals || instance.pause != Duration::zero())
        leave_out(instance, now, options_.refusal_pause);
      break;
    case Outcome::kBroken:
      instance.refusal.clear();
      leave_out(instance, now, longer_pause(instance));
      break;
    case Outcome::kGivenUp: break;
  }
  instance.probed_until = TimePoint::min();
}

void DecoderPool::begin_answer(const InstanceId& id) {
  const MutexLock lock(mutex_);
  if (Instance* const instance = find(id); instance != nullptr) be_well(*instance);
}

void DecoderPool::be_well(Instance& instance) {
  instance.pause = Duration::zero();
  instance.num_refusals = 0;
  instance.refusal.clear();
  instance.probed_until = TimePoint::min();
}

std::string DecoderPool::last_refusal() const {
  const MutexLock lock(mutex_);
  const Instance* last = nullptr;
  for (const auto& [name, instance] : instances_) {
    if (instance.refusal.empty() || instance.pause == Duration::zero() || instance.record.is_draining) continue;
    if (last == nullptr || instance.refused_at > last->refused_at) last = &instance;
  }
  return last == nullptr ? "" : last->refusal;
}

Duration DecoderPool::longer_pause(const Instance& instance) const {
  return std::clamp(2 * instance.pause, options_.first_pause, options_.max_pause);
}

// Of several that break at once, the first counts.
void DecoderPool::leave_out(Instance& instance, TimePoint now, Duration pause) const {
  if (instance.pause != Duration::zero() && now < instance.out_until) return;
  instance.pause = pause;
  instance.out_until = now + instance.pause;
  instance.num_refusals = 0;
}

DecoderPool::States DecoderPool::states(TimePoint now) const {
  const MutexLock lock(mutex_);
  States states;
  for (const auto& [name, instance] : instances_) {
    ++(instance.record.is_draining ? states.num_draining
       : is_ready(instance, now)   ? states.num_ready
                                   : states.num_left_out);
  }
  return states;
}

// Null: it has gone, or is another incarnation.
DecoderPool::Instance* DecoderPool::find(const InstanceId& id) {
  const auto found = instances_.find(id.name);
  return found == instances_.end() || found->second.record.id != id ? nullptr : &found->second;
}

bool DecoderPool::begin_hold(const InstanceId& id, int64_t num_positions) {
  const MutexLock lock(mutex_);
  Instance* const instance = find(id);
  if (instance == nullptr) return false;
  const int64_t free = instance->record.load.num_free_slots - instance->num_held - num_positions;
  if (free < (instance->most_free + 1) / 2) return false;
  instance->num_held += num_positions;
  return true;
}

void DecoderPool::end_hold(const InstanceId& id, int64_t num_positions) {
  const MutexLock lock(mutex_);
  if (Instance* const instance = find(id); instance != nullptr) {
    instance->num_held = std::max<int64_t>(0, instance->num_held - num_positions);  // it may have been away in between
  }
}

bool DecoderPool::is_well(const InstanceId& id, TimePoint now) const {
  const MutexLock lock(mutex_);
  const auto found = instances_.find(id.name);
  return found != instances_.end() && found->second.record.id == id && found->second.out_until <= now;
}

std::set<std::string> DecoderPool::urls() const {
  const MutexLock lock(mutex_);
  std::set<std::string> urls;
  for (const auto& [name, instance] : instances_) urls.insert(instance.record.url);
  return urls;
}

size_t DecoderPool::num_ready(TimePoint now) const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(instances_, [&](const auto& entry) { return is_ready(entry.second, now); }));
}

}  // namespace transept
