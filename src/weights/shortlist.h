// A lexical shortlist of Marian's (lex*.s2t.bin beside a released model): for every word of the source vocabulary, the
// words of the target vocabulary that may translate it. The answer is searched among these words only (decision 16). An
// immutable value, so thread-safe. The bytes that it is read from are untrusted.
//
// The file (marian-dev, src/data/shortlist.h and .cpp), little-endian:
//   uint64 magic, checksum, first, best, num_offsets, num_words
//   uint64 offsets[num_offsets]   the words of source id i are words[offsets[i]] .. words[offsets[i + 1] - 1]
//   uint32 words[num_words]
// The first `first` ids of the target vocabulary, the commonest, belong to every sentence's set; `best` is the largest
// number of words of any list. The checksum covers what follows it, in whole uint64 (the odd uint32 at the end of some
// files is left out): hash ^= value + 0x9e3779b9 + (hash << 6) + (hash >> 2), from 0 (src/common/hash.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class Shortlist final {
 public:
  // The vocabularies of the model that the file is for.
  struct Vocabularies {
    int64_t source = 0, target = 0;  // ids
    bool is_shared = false;          // one vocabulary: the answer may contain source words as they are
  };

  // Errors: those of MmapFile::open and of parse().
  static StatusOr<Shortlist> open(const std::string& path, const Vocabularies& vocabularies);
  // `file` names the bytes in errors, which name the field and the reason: a wrong magic (says what the file is
  // instead, if recognised), sizes that do not add up to the file's, a wrong checksum, offsets that decrease or do not
  // end with the words, more lists than source ids, an id past the target vocabulary.
  static StatusOr<Shortlist> parse(std::span<const std::byte> bytes, std::string_view file,
                                   const Vocabularies& vocabularies);

  // Fills `out` with the set of one sentence, ascending and without duplicates: the `first` ids, the lists of its
  // source ids, with a shared vocabulary those ids themselves, and `also`. Marian fills the set up to a multiple of
  // eight for its kernels; the kernels here do not need that. Source ids without a list and ids past the target
  // vocabulary add nothing.
  void set_of(std::span<const int32_t> source_ids, std::span<const int32_t> also, std::vector<int32_t>& out) const;

  int64_t first() const { return first_; }
  int64_t best() const { return best_; }
  int64_t num_lists() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t num_words() const { return static_cast<int64_t>(words_.size()); }

 private:
  Shortlist() = default;

  Vocabularies vocabularies_;
  int64_t first_ = 0, best_ = 0;
  std::vector<uint64_t> offsets_;  // never empty
  std::vector<int32_t> words_;
};

// The checksum of `bytes`, which are those after the checksum field.
uint64_t shortlist_checksum(std::span<const std::byte> bytes);

}  // namespace transept
