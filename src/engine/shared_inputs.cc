#include "engine/shared_inputs.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace transept {

// What handles leave when they are dropped, on whatever thread. Outlives the engine if they do.
struct EncodedInput::DroppedPins {
  Mutex mutex;
  std::vector<ContentDigest> digests ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const std::function<void()>> on_drop ABSL_GUARDED_BY(mutex);

  void add(const ContentDigest& digest) {
    std::shared_ptr<const std::function<void()>> tell;
    {
      const MutexLock lock(mutex);
      digests.push_back(digest);
      tell = on_drop;
    }
    if (tell != nullptr) (*tell)();
  }
};

struct EncodedInput::Pin {
  std::shared_ptr<DroppedPins> dropped;
  ContentDigest digest;
  std::shared_ptr<const EncoderContent> content;
  std::optional<std::string> text;

  Pin(std::shared_ptr<DroppedPins> list, const ContentDigest& input,
      std::shared_ptr<const EncoderContent> input_content, std::optional<std::string> input_text)
      : dropped(std::move(list)), digest(input), content(std::move(input_content)), text(std::move(input_text)) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { dropped->add(digest); }
};

const EncoderContent& EncodedInput::content() const {
  CHECK(has_value(), "an empty handle");
  return *pin_->content;
}

const std::optional<std::string>& EncodedInput::text() const {
  CHECK(has_value(), "an empty handle");
  return pin_->text;
}

const void* EncodedInput::owner() const {
  CHECK(has_value(), "an empty handle");
  return pin_->dropped.get();
}

SharedInputs::SharedInputs(Scheduler& scheduler, bool share_identical)
    : scheduler_(scheduler),
      share_identical_(share_identical),
      dropped_(std::make_shared<EncodedInput::DroppedPins>()) {}

SharedInputs::~SharedInputs() = default;

// The input's digest; it is known from now on, though nobody uses it yet.
ContentDigest SharedInputs::intern(const EncoderContent& content) {
  const ContentDigest digest = content.digest.has_value() ? *content.digest : content_digest(content);
  if (!inputs_.contains(digest)) add(digest, content);
  return digest;
}

// A digest that nobody else has, of no content: SHA-256 gives none that ends in 24 zeros.
ContentDigest SharedInputs::intern_alone(const EncoderContent& content) {
  ContentDigest digest;
  const uint64_t number = ++next_alone_;
  std::memcpy(digest.bytes.data(), &number, sizeof number);
  add(digest, content);
  return digest;
}

void SharedInputs::add(const ContentDigest& digest, const EncoderContent& content) {
  inputs_[digest].content = std::make_shared<const EncoderContent>(content);
  scheduler_.pin_input(digest);
}

std::optional<ContentDigest> SharedInputs::attach(GroupId group_id, const EncoderContent& content) {
  if (!share_identical_ || content.num_positions() == 0) return std::nullopt;
  return attach(group_id, intern(content));
}

ContentDigest SharedInputs::attach(GroupId group_id, const EncodedInput& handle) {
  CHECK(owns(handle), "a handle of another engine");
  return attach(group_id, handle.pin_->digest);
}

ContentDigest SharedInputs::attach(GroupId group_id, const ContentDigest& digest) {
  CHECK(groups_.emplace(group_id, digest).second, "group ", group_id.value(), " has an input already");
  ++inputs_.at(digest).num_users;
  return digest;
}

void SharedInputs::detach(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return;
  const ContentDigest digest = entry->second;
  groups_.erase(entry);
  leave(digest);
}

EncodedInput SharedInputs::hold(const EncoderContent& content, std::optional<std::string> text) {
  const ContentDigest digest = share_identical_ ? intern(content) : intern_alone(content);
  Input& input = inputs_.at(digest);
  ++input.num_users;
  return EncodedInput(std::make_shared<const EncodedInput::Pin>(dropped_, digest, input.content, std::move(text)));
}

void SharedInputs::collect_dropped() {
  std::vector<ContentDigest> digests;
  {
    const MutexLock lock(dropped_->mutex);
    digests.swap(dropped_->digests);
  }
  for (const ContentDigest& digest : digests) leave(digest);
}

void SharedInputs::set_on_drop(std::shared_ptr<const std::function<void()>> on_drop) {
  const MutexLock lock(dropped_->mutex);
  dropped_->on_drop.swap(on_drop);
}

bool SharedInputs::count_encode(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  return entry != groups_.end() && std::exchange(inputs_.at(entry->second).was_encoded, true);
}

void SharedInputs::leave(const ContentDigest& digest) {
  const auto entry = inputs_.find(digest);
  if (--entry->second.num_users > 0) return;
  inputs_.erase(entry);
  scheduler_.unpin_input(digest);
}

}  // namespace transept
