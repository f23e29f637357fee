// The search of the unigram model: of all ways to cut a text into pieces, the one with the greatest sum of scores
// (Viterbi). Immutable after construction, so thread-safe with a Workspace for each thread.
// Source: Kudo, Subword Regularization (2018); Model::EncodeOptimized in unigram_model.cc of google/sentencepiece;
// encode_optimized in models/unigram/model.rs of Hugging Face's tokenizers. The latter two differ in precision, which
// decides between almost equal cuts: the parameter `Stored`. float is SentencePiece's search, which counts from zero
// again where the score of a path is so great that little of a piece's score would be left (since 0.2.2). double is
// Hugging Face's, which never does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "text/subword/piece_trie.h"
#include "text/unicode/text_range.h"

namespace transept {

// `Stored`: the type of a path's score.
template <typename Stored>
class UnigramSearch final {
 public:
  struct Pieces {
    PieceTrie trie;              // of ids
    std::vector<double> scores;  // by id
    Stored unk_score = 0;        // of one unknown character
    std::optional<int32_t> unk_id;
  };
  // The last step of the best path to a place: where the step begins, and which piece it takes.
  struct Node {
    Stored score = 0;  // of the path up to here
    uint32_t begin = kUnreached;
    int32_t id = 0;
  };
  // Memory to reuse from text to text.
  struct Workspace {
    std::vector<Node> nodes;
    std::vector<std::pair<TextRange, int32_t>> path;
  };

  UnigramSearch() = default;
  explicit UnigramSearch(Pieces pieces) : pieces_(std::move(pieces)) {}

  const std::optional<int32_t>& unk_id() const { return pieces_.unk_id; }

  // Calls emit(range, id) for each piece of the best cut, in order; an unknown character is a piece of its own. Returns
  // false, possibly after some pieces, if the best path needs an unknown character and there is no unk_id. A place
  // where all cuts meet settles the path up to there: memory is linear in the longest stretch without such a place.
  // REQUIRES: valid UTF-8 of less than 4 GiB.
  template <typename Emit>
  bool cut(std::string_view text, Workspace& work, Emit emit) const {
    std::vector<Node>& nodes = work.nodes;
    nodes.assign(1, Node());
    size_t first = 0;  // nodes[i] is at first + i
    for (size_t begin = 0; begin < text.size();) {
      if (begin - first + 1 == nodes.size() && begin > first) {
        settle(first, work, emit);
        first = begin;
      }
      const Stored score_so_far = score_up_to(nodes, begin - first);
      const size_t character = character_bytes(text[begin]);
      bool has_character = false;
      pieces_.trie.for_each_prefix(text.substr(begin), [&](size_t length, int32_t id) {
        const Stored score = static_cast<Stored>(pieces_.scores[static_cast<size_t>(id)]) + score_so_far;
        Node& node = node_at(nodes, begin + length - first);
        if (node.begin == kUnreached || score > node.score) {
          node = {static_cast<Stored>(score), static_cast<uint32_t>(begin - first), id};
        }
        has_character |= length == character;
      });
      if (!has_character) {
        const Stored score = pieces_.unk_score + score_so_far;
        Node& node = node_at(nodes, begin + character - first);
        if (node.begin == kUnreached || score > node.score) {
          if (!pieces_.unk_id.has_value()) return false;
          node = {score, static_cast<uint32_t>(begin - first), *pieces_.unk_id};
        }
      }
      begin += character;
    }
    if (!text.empty()) settle(first, work, emit);
    return true;
  }

 private:
  static constexpr uint32_t kUnreached = UINT32_MAX;

  static size_t character_bytes(char lead) {
    const auto byte = static_cast<uint8_t>(lead);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  }

  static Node& node_at(std::vector<Node>& nodes, size_t index) {
    if (index >= nodes.size()) nodes.resize(index + 1);
    return nodes[index];
  }

  // The score at a node, from which its successors continue. Subtracts a great one from the node and all after it.
  static Stored score_up_to(std::vector<Node>& nodes, size_t index) {
    const Stored score = nodes[index].score;
    if constexpr (std::is_same_v<Stored, float>) {
      constexpr float kGreatScore = 100'000;
      if (score < -kGreatScore || score > kGreatScore) {
        for (size_t i = index; i < nodes.size(); ++i) nodes[i].score -= score;
        return 0;
      }
    }
    return score;
  }

  // Emits the path to the last node, which becomes the first.
  template <typename Emit>
  static void settle(size_t first, Workspace& work, Emit& emit) {
    std::vector<Node>& nodes = work.nodes;
    work.path.clear();
    for (size_t end = nodes.size() - 1; end > 0;) {
      const Node& node = nodes[end];
      work.path.push_back({{first + node.begin, first + end}, node.id});
      end = node.begin;
    }
    for (auto step = work.path.rbegin(); step != work.path.rend(); ++step) emit(step->first, step->second);
    const Stored score = nodes.back().score;
    nodes.assign(1, Node());
    nodes.front().score = score;
  }

  Pieces pieces_;
};

}  // namespace transept
