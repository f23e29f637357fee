// The encoder's side of a request: a list of items, each of which is encoded once. A text or an audio window is the
// list of one. Values. The functions are thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/content_digest.h"
#include "core/encoder_features.h"

namespace transept {

// What the decoder does with an item's rows: a set of bits.
enum class Consumers : uint8_t {
  kNone = 0,
  kCross = 1,   // every layer that crosses projects them to its own K and V
  kSplice = 2,  // they take the place of the embeddings of tokens of the decoder prompt
};
constexpr Consumers operator|(Consumers a, Consumers b) {
  return static_cast<Consumers>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr Consumers operator&(Consumers a, Consumers b) {
  return static_cast<Consumers>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}
constexpr bool has(Consumers set, Consumers one) { return (set & one) != Consumers::kNone; }

// An item that another process encodes; its rows come from there (encoder_cache/). A content of its own: two of them
// are equal if their digests are, and one is never compared with ids or media.
struct RemoteInput {
  ContentDigest digest;            // item_digest() of what is encoded, with the salt of the model's fingerprint
  int32_t num_positions = 0;       // rows of the encoder's output
  uint32_t input_id = 0;           // EcKey::input_id: the item's index in its request
  int32_t num_last_positions = 0;  // EncoderFeatures'

  bool operator==(const RemoteInput& other) const { return digest == other.digest; }
};

// What is encoded: ids, media, or both (a family that splices media into its encoder's ids takes them as one item: each
// id has a position, and some ids' rows are the media's; decision 43).
struct EncoderItem {
  std::vector<int32_t> token_ids;
  std::shared_ptr<const EncoderFeatures> features;  // null: ids alone
  // It is encoded elsewhere: without media, and with ids only for those who read them here (edits of scores, results).
  std::optional<RemoteInput> remote;
  // What is encoded, of a remote item that this process asks for itself (engine/encode_asker.h). Null: another process
  // has asked.
  std::shared_ptr<const EncoderItem> content;
  std::optional<ContentDigest> digest;  // item_digest(), if it was computed already
  Consumers consumers = Consumers::kCross;
  // kSplice: row i takes the place of decoder prompt token splice_offset + i.
  int32_t splice_offset = 0;

  EncoderItem() = default;
  EncoderItem(std::vector<int32_t> ids, std::shared_ptr<const EncoderFeatures> media = nullptr)  // NOLINT: a value
      : token_ids(std::move(ids)), features(std::move(media)) {}

  explicit EncoderItem(const RemoteInput& input) : remote(input) {}

  // Rows of the encoder's output, which consumers get.
  int32_t num_positions() const {
    if (remote.has_value()) return remote->num_positions;
    return token_ids.empty() && features != nullptr ? features->num_positions : static_cast<int32_t>(token_ids.size());
  }
  // Of these, the last so many, which stand behind those of all items in the cross table.
  int32_t num_last_positions() const {
    if (remote.has_value()) return remote->num_last_positions;
    return token_ids.empty() && features != nullptr ? features->num_last_positions : 0;
  }
  // Rows of the encoder's widest layer, the tower's or another one: what step budgets count.
  int32_t num_rows() const { return std::max(features != nullptr ? features->num_rows : 0, num_positions()); }
};

// Positions of the cross table: of all items that are crossed, one behind another. 0: no item is.
int32_t num_cross_positions(std::span<const EncoderItem> items);

// Where an item's positions stand in the cross table of its request: first those that are no last positions, item by
// item, then the last positions of all items. Keys have no order, so that items are seen with or without their padding
// by one range of keys.
struct CrossPlace {
  int32_t begin = 0;       // of position 0
  int32_t last_begin = 0;  // of the first of num_last
  int32_t num_last = 0;

  // Of row i of num_rows.
  int32_t position(int32_t i, int32_t num_rows) const {
    const int32_t num_first = num_rows - num_last;
    return i < num_first ? begin + i : last_begin + i - num_first;
  }
  bool operator==(const CrossPlace&) const = default;
};
CrossPlace cross_place(std::span<const EncoderItem> items, size_t index);
int32_t num_positions(std::span<const EncoderItem> items);

// Returns the digest of what is encoded. Equal digests mean equal rows; the items themselves are not compared. SHA-256
// of the salt, and for ids and media each the modality ("text", "audio", ..), the shape (for ids: [number of ids]) and
// the values, little-endian; extras follow the values if there are some. Each text follows its size and each shape its
// rank, in 8 bytes. Consumers come first unless they are kCross: they choose the encoder where a family has two.
// Different salts give different digests; that of a remote item is its own, whatever the salt. `item.digest` and
// splice_offset are not read. Takes 0.7 ms for a window of Whisper: call it off the engine thread.
ContentDigest item_digest(const EncoderItem& item, std::string_view salt = {});

// Makes an item remote that is to be encoded elsewhere: it moves into `content`, and its ids stay. `index`: of
// the request's items. REQUIRES: it is not remote.
void make_remote(EncoderItem& item, uint32_t index);

// The inverse: what is to be encoded here after all, where the item stands in its request's prompt. REQUIRES: it is
// remote, and has its content.
void make_local(EncoderItem& item);

// These items, each where the item of the same index stands in a request's prompt (splice_offset). A request that says
// no places gets them as they are. REQUIRES: `placed` is empty, or there are as many.
std::vector<EncoderItem> items_in_places(std::vector<EncoderItem> items, std::span<const EncoderItem> placed);

// The media of an item, wherever it is encoded; null: there are none here.
const EncoderFeatures* media_of(const EncoderItem& item);

// Sets the digests that are unset.
void make_digests(std::vector<EncoderItem>& items, std::string_view salt);

// Returns the digest of the cross table of these items, in order: of one, its own. REQUIRES: those that are crossed,
// of which there is at least one, have digests.
ContentDigest cross_digest(std::span<const EncoderItem> items);

}  // namespace transept
