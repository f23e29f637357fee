#include "engine/shared_inputs.h"

#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace transept {

// What handles leave when they are dropped, on whatever thread. Outlives the engine if they do.
struct EncodedInput::DroppedPins {
  Mutex mutex;
  std::vector<ContentHash> hashes ABSL_GUARDED_BY(mutex);
  std::shared_ptr<const std::function<void()>> on_drop ABSL_GUARDED_BY(mutex);

  void add(const ContentHash& hash) {
    std::shared_ptr<const std::function<void()>> tell;
    {
      const MutexLock lock(mutex);
      hashes.push_back(hash);
      tell = on_drop;
    }
    if (tell != nullptr) (*tell)();
  }
};

struct EncodedInput::Pin {
  std::shared_ptr<DroppedPins> dropped;
  ContentHash hash;
  std::shared_ptr<const EncoderContent> content;
  std::optional<std::string> text;

  Pin(std::shared_ptr<DroppedPins> list, const ContentHash& input, std::shared_ptr<const EncoderContent> input_content,
      std::optional<std::string> input_text)
      : dropped(std::move(list)), hash(input), content(std::move(input_content)), text(std::move(input_text)) {}
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() { dropped->add(hash); }
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
    : SharedInputs(scheduler, share_identical, [key = ContentHashKey::random()](const EncoderContent& content) {
        if (content.features != nullptr) return content_hash(key, std::as_bytes(std::span(content.features->values)));
        return content_hash(key, std::as_bytes(std::span(content.token_ids)));
      }) {}

SharedInputs::SharedInputs(Scheduler& scheduler, bool share_identical, HashContent hash)
    : scheduler_(scheduler),
      share_identical_(share_identical),
      hash_(std::move(hash)),
      dropped_(std::make_shared<EncodedInput::DroppedPins>()) {}

SharedInputs::~SharedInputs() = default;

// The input's hash; it is known from now on, though nobody uses it yet.
ContentHash SharedInputs::intern(const EncoderContent& content) {
  ContentHash hash = hash_(content);
  for (hash.words[3] = 0;; ++hash.words[3]) {
    const auto entry = inputs_.find(hash);
    if (entry == inputs_.end()) break;
    // The contents decide, never the hash alone.
    if (*entry->second.content == content) return hash;
  }
  add(hash, content);
  return hash;
}

// A hash that nobody else has, of no content.
ContentHash SharedInputs::intern_alone(const EncoderContent& content) {
  const ContentHash hash{{0, 0, 0, ++next_alone_}};
  add(hash, content);
  return hash;
}

void SharedInputs::add(const ContentHash& hash, const EncoderContent& content) {
  inputs_[hash].content = std::make_shared<const EncoderContent>(content);
  scheduler_.pin_input(hash);
}

std::optional<ContentHash> SharedInputs::attach(GroupId group_id, const EncoderContent& content) {
  if (!share_identical_ || content.num_positions() == 0) return std::nullopt;
  return attach(group_id, intern(content));
}

ContentHash SharedInputs::attach(GroupId group_id, const EncodedInput& handle) {
  CHECK(owns(handle), "a handle of another engine");
  return attach(group_id, handle.pin_->hash);
}

ContentHash SharedInputs::attach(GroupId group_id, const ContentHash& hash) {
  CHECK(groups_.emplace(group_id, hash).second, "group ", group_id.value(), " has an input already");
  ++inputs_.at(hash).num_users;
  return hash;
}

void SharedInputs::detach(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return;
  const ContentHash hash = entry->second;
  groups_.erase(entry);
  leave(hash);
}

EncodedInput SharedInputs::hold(const EncoderContent& content, std::optional<std::string> text) {
  const ContentHash hash = share_identical_ ? intern(content) : intern_alone(content);
  Input& input = inputs_.at(hash);
  ++input.num_users;
  return EncodedInput(std::make_shared<const EncodedInput::Pin>(dropped_, hash, input.content, std::move(text)));
}

void SharedInputs::collect_dropped() {
  std::vector<ContentHash> hashes;
  {
    const MutexLock lock(dropped_->mutex);
    hashes.swap(dropped_->hashes);
  }
  for (const ContentHash& hash : hashes) leave(hash);
}

void SharedInputs::set_on_drop(std::shared_ptr<const std::function<void()>> on_drop) {
  const MutexLock lock(dropped_->mutex);
  dropped_->on_drop.swap(on_drop);
}

bool SharedInputs::count_encode(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  return entry != groups_.end() && std::exchange(inputs_.at(entry->second).was_encoded, true);
}

void SharedInputs::leave(const ContentHash& hash) {
  const auto entry = inputs_.find(hash);
  if (--entry->second.num_users > 0) return;
  inputs_.erase(entry);
  scheduler_.unpin_input(hash);
}

}  // namespace transept
