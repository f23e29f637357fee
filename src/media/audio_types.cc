#include "media/audio_types.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace transept {

StatusOr<AudioBytes> AudioBytes::from_file(const std::string& path) {
  AudioBytes audio;
  ASSIGN_OR_RETURN(audio.file_, InputFile::open(path));
  return audio;
}

AudioBytes AudioBytes::from_string(std::string content) {
  const auto owner = std::make_shared<const std::string>(std::move(content));
  return {owner, {reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}};
}

size_t AudioBytes::size() const { return file_ != nullptr ? file_->size() : bytes_.size(); }

Status AudioBytes::read(size_t offset, std::span<uint8_t> out) const {
  if (file_ != nullptr) return file_->read(offset, std::as_writable_bytes(out));
  CHECK(offset <= bytes_.size() && out.size() <= bytes_.size() - offset);
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return ok_status();
}

}  // namespace transept
