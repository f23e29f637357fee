#include "disagg/instance_book.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

Status check_address(std::string_view what, std::string_view address) {
  if (address.size() > kMaxEcAddressBytes) {
    return field_error(what, str_cat("has ", address.size(), " bytes; at most ", kMaxEcAddressBytes, " are allowed"));
  }
  const bool is_plain = std::ranges::all_of(address, [](char c) { return c >= '!' && c <= '~'; });
  return is_plain ? ok_status() : field_error(what, "has a character that is no printable ASCII");
}

size_t index_of(EcChannel channel) {
  const auto index = static_cast<size_t>(channel);
  CHECK(index < kNumBrokerChannels, "a broker carries channels 0 to 2");
  return index;
}

}  // namespace

Status check_instance_record(const InstanceRecord& record) {
  RETURN_IF_ERROR(check_ec_name("name", record.id.name));
  RETURN_IF_ERROR(check_address("url", record.url));
  RETURN_IF_ERROR(check_address("bulk_address", record.bulk_address));
  if (record.secret_mark.size() > InstanceRecord::kMaxMarkBytes) {
    return field_error("secret_mark", str_cat("has ", record.secret_mark.size(), " bytes"));
  }
  if (record.last_error.size() <= InstanceRecord::kMaxErrorBytes) return ok_status();
  return field_error("last_error", str_cat("has ", record.last_error.size(), " bytes"));
}

Status InstanceBook::announce(const InstanceRecord& record, Duration ttl, TimePoint now) {
  RETURN_IF_ERROR(check_instance_record(record));
  ASSIGN_OR_RETURN(Instance* const instance, find_or_add(record.id, now));
  instance->record = record;
  instance->record_until = now + ttl;
  return ok_status();
}

Status InstanceBook::keep(const InstanceId& id, TimePoint until, TimePoint now, bool takes_over) {
  RETURN_IF_ERROR(check_ec_name("name", id.name));
  drop_late(now);
  if (!takes_over && find(id) == nullptr && instances_.contains(id.name)) {
    return absl::FailedPreconditionError(str_cat(id.name, " has started again, as another incarnation"));
  }
  ASSIGN_OR_RETURN(Instance* const instance, find_or_add(id, now));
  instance->kept_until = until;
  return ok_status();
}

void InstanceBook::leave(const InstanceId& id) {
  if (find(id) != nullptr) instances_.erase(id.name);
}

std::vector<InstanceRecord> InstanceBook::peers(TimePoint now) {
  drop_late(now);
  std::vector<InstanceRecord> records;
  for (const auto& [name, instance] : instances_) {
    if (instance.record.has_value()) records.push_back(*instance.record);
  }
  return records;
}

Status InstanceBook::publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame, TimePoint now) {
  if (frame.size() > kMaxBrokerFrameBytes) {
    return invalid_argument("a frame of ", frame.size(), " bytes; at most ", kMaxBrokerFrameBytes, " are allowed");
  }
  drop_late(now);
  Instance* const instance = find(to);
  if (instance == nullptr) {
    return not_found("no instance ", to.name, " of incarnation ", to.incarnation, " is known");
  }
  Mailbox& mailbox = instance->mailboxes[index_of(channel)];
  if (mailbox.letters.size() >= options_.max_frames || mailbox.num_bytes + frame.size() > options_.max_frame_bytes) {
    return resource_exhausted(mailbox.letters.size(), " frames of ", mailbox.num_bytes, " bytes wait for ", to.name,
                              "; at most ", options_.max_frames, " of ", options_.max_frame_bytes, " bytes may");
  }
  mailbox.num_bytes += frame.size();
  auto kept = std::make_shared<const std::vector<std::byte>>(frame.begin(), frame.end());
  mailbox.letters.push_back({{++num_letters_, std::move(kept)}});
  return ok_status();
}

std::optional<InstanceBook::Delivery> InstanceBook::next(const InstanceId& self, EcChannel channel, TimePoint now) {
  Instance* const instance = find(self);
  if (instance == nullptr) return std::nullopt;
  auto& letters = instance->mailboxes[index_of(channel)].letters;
  const size_t window = std::min(letters.size(), options_.max_in_flight);
  for (size_t i = 0; i < window; ++i) {
    if (letters[i].again_at > now) continue;
    letters[i].again_at = now + options_.give_again;
    return letters[i].delivery;
  }
  return std::nullopt;
}

void InstanceBook::acknowledge(const InstanceId& self, EcChannel channel, uint64_t id) {
  Instance* const instance = find(self);
  if (instance == nullptr) return;
  Mailbox& mailbox = instance->mailboxes[index_of(channel)];
  const auto end =
      mailbox.letters.begin() + static_cast<std::ptrdiff_t>(std::min(mailbox.letters.size(), options_.max_in_flight));
  const auto found =
      std::find_if(mailbox.letters.begin(), end, [id](const Letter& letter) { return letter.delivery.id == id; });
  if (found == end) return;
  mailbox.num_bytes -= found->delivery.frame->size();
  mailbox.letters.erase(found);
}

void InstanceBook::drop_late(TimePoint now) {
  for (auto at = instances_.begin(); at != instances_.end();) {
    Instance& instance = at->second;
    if (instance.record_until <= now) instance.record.reset();
    const bool is_known = instance.record.has_value() || instance.kept_until > now;
    at = is_known ? std::next(at) : instances_.erase(at);
  }
}

InstanceBook::Instance* InstanceBook::find(const InstanceId& id) {
  const auto found = instances_.find(id.name);
  return found != instances_.end() && found->second.incarnation == id.incarnation ? &found->second : nullptr;
}

StatusOr<InstanceBook::Instance*> InstanceBook::find_or_add(const InstanceId& id, TimePoint now) {
  drop_late(now);
  const auto found = instances_.find(id.name);
  if (found == instances_.end() && instances_.size() >= options_.max_instances) {
    return resource_exhausted(instances_.size(), " instances are known; at most ", options_.max_instances, " may be");
  }
  Instance& instance = instances_[id.name];
  if (found == instances_.end() || instance.incarnation != id.incarnation) {
    instance = Instance{};
    instance.incarnation = id.incarnation;
  }
  return &instance;
}

}  // namespace transept
