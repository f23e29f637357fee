#include "sampling/row_looks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sampling/candidate_row.h"
#include "sampling/greedy_row.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr ScorePiece kNoPiece{kNever, 0, kNothingLeft, false};

// Rounds of edits in a list of words.
class Rounds final {
 public:
  explicit Rounds(std::vector<uint32_t>& words) : words_(words) {}

  // `may_repeat`: an id that the open round has begins another one.
  void add(int32_t id, ScoreEdit::Kind kind, float value, bool may_repeat = false) {
    const auto key = static_cast<uint32_t>(id);
    if (may_repeat && has(key)) end();
    if (count_ == 0) begin();
    words_.insert(words_.end(), {key, static_cast<uint32_t>(kind), std::bit_cast<uint32_t>(value)});
    words_[at_] = ++count_;
  }
  void end() { count_ = 0; }
  uint32_t num_rounds() const { return num_rounds_; }

 private:
  void begin() {
    at_ = words_.size();
    words_.push_back(0);
    ++num_rounds_;
  }
  bool has(uint32_t id) const {
    if (count_ == 0) return false;
    for (size_t i = at_ + 1; i < words_.size(); i += sizeof(ScoreEdit) / sizeof(uint32_t)) {
      if (words_[i] == id) return true;
    }
    return false;
  }

  std::vector<uint32_t>& words_;
  size_t at_ = 0;
  uint32_t count_ = 0, num_rounds_ = 0;
};

uint32_t add_edits(const RowEdits& edits, std::vector<uint32_t>& words) {
  Rounds rounds(words);
  for (const RowEdits::Bias& bias : edits.biases) rounds.add(bias.token_id, ScoreEdit::Kind::kAdd, bias.value, true);
  rounds.end();
  if (edits.repetition_penalty != 1) {
    for (const int32_t id : edits.seen) rounds.add(id, ScoreEdit::Kind::kPenalize, edits.repetition_penalty);
    rounds.end();
  }
  for (const RowEdits::Count& count : edits.generated) {
    const float less = edits.frequency_penalty * static_cast<float>(count.count) + edits.presence_penalty;
    rounds.add(count.token_id, ScoreEdit::Kind::kSubtract, less);
  }
  words.push_back(static_cast<uint32_t>(edits.banned.size()));
  for (const int32_t id : edits.banned) words.push_back(static_cast<uint32_t>(id));
  words.push_back(static_cast<uint32_t>(edits.banned_ranges.size()));
  for (const RowEdits::Range& range : edits.banned_ranges) {
    words.push_back(static_cast<uint32_t>(std::max(range.begin, 0)));
    words.push_back(static_cast<uint32_t>(std::max(range.end, 0)));
  }
  return rounds.num_rounds();
}

bool is_forced(const RowRequest& request) { return request.edits != nullptr && request.edits->forced_token >= 0; }

ScorePiece piece_of(const FoundScores& found) {
  if (found.best == FoundScores::kNotNumbers) return {kNever, 0, kNotNumbers, true};
  if (found.best == FoundScores::kNothingLeft) return kNoPiece;
  return {found.most, found.sum, found.best, false};
}

}  // namespace

bool is_looked_at(const RowRequest& request) {
  return request.subset == nullptr && (is_found_by_pieces(request) || is_listed_by_pieces(request));
}

ScoreLook with_edits_of(const ScoreLook& other, const RowRequest& request) {
  ScoreLook look = other;
  look.kind = request.num_candidates > 0 ? ScoreLook::Kind::kList : ScoreLook::Kind::kBest;
  look.num_listed = static_cast<uint32_t>(request.num_candidates);
  if (is_forced(request)) look.kind = ScoreLook::Kind::kNone;  // needs no scores
  return look;
}

ScoreLook make_look(const RowRequest& request, std::vector<uint32_t>& edits) {
  ScoreLook look = with_edits_of({.first_edit = static_cast<uint32_t>(edits.size())}, request);
  if (request.edits == nullptr || is_forced(request)) {
    edits.insert(edits.end(), {0, 0});
    return look;
  }
  look.num_rounds = add_edits(*request.edits, edits);
  if (request.edits->timestamp_begin >= 0) look.boundary = static_cast<uint32_t>(request.edits->timestamp_begin);
  return look;
}

void choose_of_found(const RowRequest& request, int64_t vocab, std::span<const uint32_t> found, RowSample& sample,
                     std::span<TokenLogprob> top) {
  FoundScores scores{std::bit_cast<float>(found[0]), std::bit_cast<float>(found[1]), static_cast<int32_t>(found[2])};
  if (is_forced(request)) {
    const int32_t id = request.edits->forced_token;
    scores = {0, 1, id < vocab ? id : FoundScores::kNothingLeft};
  }
  const GreedyPiece piece{piece_of(scores), kNoPiece};
  if (request.num_candidates == 0) return choose_by_pieces(request, std::span(&piece, 1), sample);
  CandidateList list;
  for (int32_t i = 0; i < request.num_candidates; ++i) {
    const auto at = static_cast<size_t>(found_words(i));
    const ListedScore entry{static_cast<int32_t>(found[at]), std::bit_cast<float>(found[at + 1])};
    if (entry.id < 0) break;
    list.entries[list.count++] = {entry.id, entry.score, 0};
  }
  choose_candidates(std::span(&piece, 1), std::span(&list, 1), 1, sample, top);
}

}  // namespace transept
