// A tokenizer of single characters, by the tables of bart-g2p's config.json: grapheme_chars for the encoder's texts,
// phoneme_chars for the decoder's. Ids 0 to 3 are pad, bos, eos and unk; bos and eos around a text are config.json's,
// if it has them. Immutable, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_hints.h"

namespace transept {

class CharacterTokenizer final : public Tokenizer {
 public:
  // Errors (kInvalidArgument, under the table's name): a table is missing, is no string, is not valid UTF-8, has no
  // character after the 4 special tokens, or has more characters than the model's vocabulary has ids. Phonemes may be
  // fewer than ids, as in every published model of this kind: an id without a phoneme decodes to U+FFFD, not to
  // nothing.
  static StatusOr<std::unique_ptr<CharacterTokenizer>> create(const TokenizerHints& hints);

  // The text is characters only: the spelling of a special token in it is not its id. Characters that the table lacks
  // become unk. Errors: any language, as there is none.
  StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override;
  void append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const override;
  // Spells by the decoder's table, as answers are phonemes.
  std::string token_to_string(int32_t token_id) const override { return phonemes_.spell(token_id); }
  std::string side_token_to_string(int32_t token_id, TokenizerSide side) const override {
    return table(side).spell(token_id);
  }
  std::optional<int32_t> string_to_token(std::string_view token) const override;
  bool is_special(int32_t token_id) const override { return token_id >= 0 && token_id < kFirstCharacter; }
  int32_t vocab_size() const override { return vocab_size_; }

 private:
  static constexpr int32_t kUnknown = 3;
  static constexpr int32_t kFirstCharacter = 4;

  struct Table {
    std::vector<std::string> characters;
    absl::flat_hash_map<uint32_t, int32_t> id_of;

    static StatusOr<Table> parse(std::string_view name, const Json& characters, int64_t vocab_size);
    std::string spell(int32_t token_id) const;
  };

  const Table& table(TokenizerSide side) const { return side == TokenizerSide::kEncoder ? graphemes_ : phonemes_; }

  Table graphemes_, phonemes_;
  int32_t vocab_size_ = 0;  // the model's; if unknown, that of the longer table
  int32_t bos_id_ = 1, eos_id_ = 2;
};

}  // namespace transept
