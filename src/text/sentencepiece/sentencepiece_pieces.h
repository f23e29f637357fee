// The pieces of a SentencePiece model by id and by text. Immutable after construction, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/subword/vocabulary.h"

namespace transept {

class SentencePiecePieces final {
 public:
  using Type = SentencePieceType;
  static constexpr size_t kMaxPieceBytes = 1024;  // bounds the time of a search; published pieces have about 50

  SentencePiecePieces(SentencePiecePieces&&) = default;
  SentencePiecePieces& operator=(SentencePiecePieces&&) = default;

  // Copies what it keeps. Errors: those of SentencePieceModel::parse about pieces, with the index of the piece.
  static StatusOr<SentencePiecePieces> create(const SentencePieceFile& file);

  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  // REQUIRES: contains(id).
  std::string_view text(int32_t id) const { return at(id).text; }
  Type type(int32_t id) const { return at(id).type; }
  float score(int32_t id) const { return at(id).score; }

  std::optional<int32_t> find(std::string_view text) const;
  int32_t unk_id() const { return unk_id_; }
  bool byte_fallback() const { return byte_fallback_; }
  // REQUIRES: byte_fallback().
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

 private:
  SentencePiecePieces() = default;

  const SentencePieceFile::Piece& at(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  Status add(const SentencePieceFile::Piece& piece);

  std::vector<char> characters_;                  // never moves once filled
  std::vector<SentencePieceFile::Piece> pieces_;  // their texts lie in characters_
  absl::flat_hash_map<std::string_view, int32_t, StringViewHash, std::equal_to<>> ids_;
  int32_t unk_id_ = -1;
  bool byte_fallback_ = false;
  std::array<int32_t, 256> byte_ids_ = {};
};

}  // namespace transept
