#include "disagg/peer_names.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace transept {
namespace {

constexpr Duration kAskAgain = std::chrono::milliseconds(10);

}  // namespace

std::optional<InstanceId> PeerNames::known(uint64_t incarnation) {
  const MutexLock lock(mutex_);
  const auto found = names_.find(incarnation);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

std::optional<InstanceId> PeerNames::find(uint64_t incarnation) {
  if (auto id = known(incarnation)) return id;
  {
    const MutexLock lock(mutex_);
    if (asked_at_ != TimePoint::min() && steady_now() - asked_at_ < kAskAgain) return std::nullopt;
  }
  std::vector<InstanceId> gone = refresh();
  {
    const MutexLock lock(mutex_);
    gone_.insert(gone_.end(), gone.begin(), gone.end());
  }
  return known(incarnation);
}

std::vector<InstanceId> PeerNames::refresh() {
  {
    const MutexLock lock(mutex_);
    asked_at_ = steady_now();
  }
  const auto records = broker_.peers();
  const MutexLock lock(mutex_);
  std::vector<InstanceId> gone = std::exchange(gone_, {});
  if (!records.ok() || is_away_) return gone;
  absl::flat_hash_map<std::string, uint64_t> here;
  for (const InstanceRecord& record : *records) {
    here[record.id.name] = record.id.incarnation;
    names_[record.id.incarnation] = record.id;
  }
  const bool may_be_lost = steady_now() < grace_until_;
  for (auto at = names_.begin(); at != names_.end();) {
    const auto record = here.find(at->second.name);
    const bool is_here = record != here.end() && record->second == at->first;
    if (is_here || (record == here.end() && may_be_lost)) {
      ++at;
      continue;
    }
    gone.push_back(at->second);
    names_.erase(at++);
  }
  return gone;
}

void PeerNames::on_path(bool is_away) {
  const MutexLock lock(mutex_);
  is_away_ = is_away;
  grace_until_ = steady_now() + grace_;
}

}  // namespace transept
