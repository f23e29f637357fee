#include "encoder_cache/encoder_cache_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace transept {

EncoderCacheManager::EncoderCacheManager(BlockSpaceManager& blocks, int32_t spec) : blocks_(blocks), spec_(spec) {
  CHECK(blocks.keeps_unused(spec), "spec ", spec, " is not of items that stay unused");
}

BlockSpaceManager::SharedRequest EncoderCacheManager::request_of(const ContentDigest& digest,
                                                                 int32_t num_positions) const {
  CHECK(num_positions > 0, "an output of no positions");
  return {.spec = spec_, .num_tokens = num_positions, .digest = digest};
}

const EncoderCacheManager::Use* EncoderCacheManager::find(const EcInput& input) const {
  return const_cast<EncoderCacheManager*>(this)->find(input);
}

EncoderCacheManager::Use* EncoderCacheManager::find(const EcInput& input) {
  const auto entry = requests_.find(input.request_id);
  if (entry == requests_.end()) return nullptr;
  const auto use = std::find_if(entry->second.begin(), entry->second.end(),
                                [&input](const Use& candidate) { return candidate.input_id == input.input_id; });
  return use == entry->second.end() ? nullptr : &*use;
}

ReservationId EncoderCacheManager::begin_use(const EcInput& input, const ContentDigest& digest, int32_t num_positions) {
  CHECK(!has_use(input), "input ", input.input_id, " of ", input.request_id, " has room already");
  const ReservationId reservation = blocks_.reserve(request_of(digest, num_positions));
  const int64_t num_slots =
      blocks_.is_written(reservation) ? 0 : slots_of(blocks_.num_blocks_for(spec_, num_positions));
  requests_[input.request_id].push_back({input.input_id, reservation, num_slots});
  num_unwritten_slots_ += num_slots;
  ++num_uses_;
  return reservation;
}

// ---- Own encodes

bool EncoderCacheManager::check_and_update_cache(const EcUse& use) {
  if (has_use(use.input)) return is_written(use.input);
  if (blocks_.find_written(use.digest, spec_) != use.num_positions) return false;
  if (blocks_.can_reserve(request_of(use.digest, use.num_positions)) != AllocStatus::kOk) return false;
  begin_use(use.input, use.digest, use.num_positions);
  return true;
}

AllocStatus EncoderCacheManager::can_allocate(int32_t num_positions) const {
  return blocks_.can_reserve_blocks(blocks_.num_blocks_for(spec_, num_positions));
}

ReservationId EncoderCacheManager::allocate(const EcUse& use) {
  return begin_use(use.input, use.digest, use.num_positions);
}

// ---- What a peer announced

bool EncoderCacheManager::contradicts(const EcMeta& meta) const {
  const int32_t written = blocks_.find_written(meta.digest, spec_);
  return written > 0 && written != meta.num_positions;
}

AllocStatus EncoderCacheManager::can_allocate_disag(const EcMeta& meta) const {
  if (has_use(input_of(meta.key))) return AllocStatus::kOk;
  return blocks_.can_reserve(request_of(meta.digest, meta.num_positions));
}

ReservationId EncoderCacheManager::allocate_disag(const EcMeta& meta) {
  const Use* use = find(input_of(meta.key));
  if (use != nullptr) return use->reservation;
  return begin_use(input_of(meta.key), meta.digest, meta.num_positions);
}

// ---- Uses

bool EncoderCacheManager::mark_written(const EcInput& input) {
  Use* use = find(input);
  CHECK(use != nullptr, "input ", input.input_id, " of ", input.request_id, " has no room");
  if (!blocks_.finish_reservation(use->reservation)) return false;
  num_unwritten_slots_ -= std::exchange(use->num_unwritten_slots, 0);
  return true;
}

bool EncoderCacheManager::has_use(const EcInput& input) const { return find(input) != nullptr; }

bool EncoderCacheManager::is_written(const EcInput& input) const {
  const Use* use = find(input);
  return use != nullptr && blocks_.is_written(use->reservation);
}

std::vector<uint32_t> EncoderCacheManager::inputs_of(const std::string& request_id) const {
  std::vector<uint32_t> inputs;
  const auto entry = requests_.find(request_id);
  if (entry == requests_.end()) return inputs;
  for (const Use& use : entry->second) inputs.push_back(use.input_id);
  return inputs;
}

bool EncoderCacheManager::has_cached_inputs(const std::string& request_id, int32_t num_inputs) const {
  for (int32_t i = 0; i < num_inputs; ++i) {
    if (!is_written({request_id, static_cast<uint32_t>(i)})) return false;
  }
  return true;
}

std::span<const BlockId> EncoderCacheManager::blocks_of(const EcInput& input) const {
  const Use* use = find(input);
  return use == nullptr ? std::span<const BlockId>() : blocks_.get_reserved_table(use->reservation);
}

void EncoderCacheManager::free_encoder_input(const EcInput& input) {
  const Use* use = find(input);
  if (use == nullptr) return;
  blocks_.free(use->reservation);
  num_unwritten_slots_ -= use->num_unwritten_slots;
  const auto entry = requests_.find(input.request_id);
  entry->second.erase(entry->second.begin() + (use - entry->second.data()));
  if (entry->second.empty()) requests_.erase(entry);
  --num_uses_;
}

void EncoderCacheManager::free(const std::string& request_id) {
  const auto entry = requests_.find(request_id);
  if (entry == requests_.end()) return;
  for (const Use& use : entry->second) {
    blocks_.free(use.reservation);
    num_unwritten_slots_ -= use.num_unwritten_slots;
  }
  num_uses_ -= std::ssize(entry->second);
  requests_.erase(entry);
}

// ---- Slots

int64_t EncoderCacheManager::slots_of(int32_t num_blocks) const {
  return int64_t{std::max(num_blocks, 0)} * blocks_.tokens_per_block(spec_);
}

int64_t EncoderCacheManager::num_slots_for(int32_t num_positions) const {
  return slots_of(blocks_.num_blocks_for(spec_, num_positions));
}

int64_t EncoderCacheManager::num_free_slots() const {
  return std::min(num_freeable_slots(), slots_of(blocks_.get_num_free_device_blocks() - blocks_.watermark_blocks()));
}

int64_t EncoderCacheManager::num_freeable_slots() const {
  return slots_of(std::min(blocks_.max_reserved_blocks() - blocks_.num_reserved_blocks(),
                           blocks_.num_available_device_blocks() - blocks_.watermark_blocks()));
}

int64_t EncoderCacheManager::num_used_slots() const { return slots_of(blocks_.num_reserved_blocks()); }

int64_t EncoderCacheManager::max_slots() const { return slots_of(blocks_.max_reserved_blocks()); }

}  // namespace transept
