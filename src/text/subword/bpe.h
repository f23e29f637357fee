// Byte-pair encoding: a word begins as its characters; the adjacent pair that comes first in the list of merges is
// joined, until no pair is in the list. O(n log n) for a word of n characters. Immutable after parsing, so thread-safe.
// Source: models/bpe of Hugging Face's tokenizers.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/subword_model.h"
#include "text/subword/symbol_merger.h"
#include "text/subword/vocabulary.h"

namespace transept {

class BpeModel final : public SubwordModel {
 public:
  struct Options {
    std::string unk_token;                  // replaces characters that the vocabulary lacks; "": they are omitted
    std::string continuing_subword_prefix;  // before every character of a word except the first
    std::string end_of_word_suffix;         // after the last character of a word
    bool fuse_unk = false;                  // one unk_token for a run of unknown characters
    bool byte_fallback = false;             // an unknown character becomes <0xNN>, if the vocabulary has all its bytes
    bool ignore_merges = false;             // a word that is a token is not split
  };

  // Parses the member "model" of a tokenizer.json. Errors name the field; a dropout other than 0 is kUnimplemented.
  static StatusOr<std::unique_ptr<BpeModel>> parse(const JsonField& model);
  // Parse merges.txt, and vocab.json with default options. Errors (kInvalidArgument) name the file; of merges.txt also
  // the line.
  static StatusOr<std::unique_ptr<BpeModel>> parse_merges(Vocabulary vocabulary, Options options,
                                                          std::string_view merges_txt);
  static StatusOr<std::unique_ptr<BpeModel>> parse_files(std::string_view vocab_json, std::string_view merges_txt);

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  // Errors (kInvalidArgument): the vocabulary lacks a character and the unk_token too; a word of over 2^30 characters.
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override;

 private:
  struct Merge {
    int32_t rank, id;
  };
  // A token that may still be joined with its neighbours.
  struct Symbol {
    int32_t id, previous = 0, next = 0;
  };
  class Pairs;
  struct Workspace;

  BpeModel(Vocabulary vocabulary, Options options);

  // Adds the merge of the next rank. Errors: `left`, `right` or the joined token is not in the vocabulary; `right` does
  // not begin with the continuing_subword_prefix.
  Status add_merge(std::string_view left, std::string_view right);
  static Status add_text_merge(BpeModel& model, std::string_view line);
  Status add_merges(const JsonField& field);
  static StatusOr<Options> parse_options(const JsonField& model);

  std::optional<int32_t> find_character(std::string_view character) const;
  std::optional<int32_t> find_token(std::string_view text) const;
  const Merge* find_merge(int32_t left, int32_t right) const;
  Status append_word(std::string_view word, Workspace& work, std::vector<int32_t>& ids) const;
  Status start_word(std::string_view word, Workspace& work) const;
  bool start_bytes(std::string_view character, Workspace& work) const;

  Vocabulary vocabulary_;
  Options options_;
  std::optional<int32_t> unk_id_;
  int32_t num_merges_ = 0;
  int32_t next_joined_id_ = 0;                      // guess of the id that the next merge makes
  absl::flat_hash_map<uint64_t, Merge> merges_;     // (left id, right id) -> what they become
  std::array<int32_t, 0x180> id_of_low_character_;  // of common characters, to save look-ups; -1: none
  std::array<int32_t, 256> id_of_byte_;             // <0xNN>; -1: none
};

}  // namespace transept
