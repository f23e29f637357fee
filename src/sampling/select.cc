#include "sampling/select.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "sampling/candidate_row.h"
#include "sampling/gather_columns.h"
#include "sampling/greedy_row.h"
#include "sampling/select_row.h"

namespace transept {
namespace {

// Hidden rows whose scores are held at once: enough to read the vocabulary matrix seldom, few enough that the scores of
// a long --score stay small.
constexpr int64_t kRowsAtOnce = 32;

// Floats between rows of pieces: rows a page apart would share a few sets of the cache.
constexpr int64_t kRowGap = 16;

struct Scratch {
  TensorView logits;                // [kRowsAtOnce, vocab]; touched only if somebody needs whole rows
  TensorView passing;               // [threads * kRowsAtOnce, kPieceColumns]: of rows that are looked at by pieces
  TensorView copies;                // [threads, vocab]: for rows that several requests look at
  std::span<Candidate> candidates;  // [threads * vocab]
  std::span<GreedyPiece> pieces;    // [kRowsAtOnce, num_pieces]: of rows that one request looks at by pieces
  std::span<CandidateList> lists;   // [threads, kRowsAtOnce]: of those among them that are beams'
  // [kRowsAtOnce, ranks]: the same, merged by each rank; empty without ranks.
  std::span<CandidateList> rank_lists;
  int64_t num_pieces = 0;
};

Scratch make_scratch(Context& context, int64_t rows, int64_t vocab) {
  const int64_t threads = cpu_of(context).threads().num_threads();
  const int64_t num_pieces = ceil_div(vocab, kPieceColumns);
  return {
      context.arena.tensor(DType::kFloat32, {std::min(rows, kRowsAtOnce), vocab}),
      context.arena.tensor(DType::kFloat32, {threads * std::min(rows, kRowsAtOnce), kPieceColumns + kRowGap})
          .columns(0, kPieceColumns),
      context.arena.tensor(DType::kFloat32, {threads, vocab}),
      context.arena.allocate_span<Candidate>(threads * vocab),
      context.arena.allocate_span<GreedyPiece>(std::min(rows, kRowsAtOnce) * num_pieces),
      context.arena.allocate_span<CandidateList>(threads * kRowsAtOnce),
      context.arena.allocate_span<CandidateList>(context.ranks == nullptr ? 0 : kRowsAtOnce * context.ranks->size()),
      num_pieces};
}

bool has_copies(const RowRequest& request) { return request.subset != nullptr && request.subset->copies != nullptr; }

// Gives each request its place in output.top before the threads start.
void reserve_top(std::span<const RowRequest> rows, int64_t vocab, SampleOutput& output) {
  output.rows.resize(rows.size());
  int64_t size = 0;
  for (const RowRequest& row : rows) size += num_top_entries(row, vocab);
  output.top.resize(static_cast<size_t>(size));
}

// Requests for up to kRowsAtOnce hidden rows, all or none of them with copied outputs, and where their results go.
class Selection final {
 public:
  Selection(Context& context, const Scratch& scratch, std::span<const RowRequest> requests, SampleOutput& output,
            RowSample* samples, int64_t vocab)
      : context_(context), scratch_(scratch), requests_(requests), output_(output), samples_(samples), vocab_(vocab) {}

  void run(const LmHead& lm_head, const TensorView& hidden) {
    const int64_t first = requests_.front().hidden_row, last = requests_.back().hidden_row + 1;
    begin(last - first);
    if (has_copies(requests_.front())) {
      score_copies(lm_head, hidden.rows(first, last));
    } else {
      score_all(lm_head, hidden.rows(first, last));
    }
    if (context_.ranks != nullptr && !gather(lm_head, last - first)) return;
    choose_all();
  }

  void run(ScoreRows score) {
    DCHECK(!has_copies(requests_.front()));
    const int64_t first = requests_.front().hidden_row, last = requests_.back().hidden_row + 1;
    begin(last - first);
    score(first, last, logits_);
    choose_all();
  }

 private:
  void begin(int64_t num_rows) {
    logits_ = scratch_.logits.rows(0, num_rows);
    by_pieces_.fill(nullptr);
  }

  void choose_all() {
    cpu_of(context_).threads().parallel_for(static_cast<int64_t>(requests_.size()), [&](int64_t task, int thread) {
      choose(static_cast<size_t>(task), thread);
    });
  }

  // Rows of requests whose subsets have copies: the scores of each one's ids, from the beginning of its row.
  void score_copies(const LmHead& lm_head, const TensorView& hidden) {
    std::array<ChosenProduct, kRowsAtOnce> products;
    size_t count = 0;
    for (size_t i = 0; i < requests_.size();) {
      const VocabularySubset& subset = *requests_[i].subset;
      const size_t begin = i;
      while (i < requests_.size() && requests_[i].subset == &subset) ++i;
      const auto from = static_cast<int64_t>(place(begin)), to = static_cast<int64_t>(place(i - 1)) + 1;
      products[count++] = {hidden.rows(from, to), subset.copies,
                           logits_.rows(from, to).columns(0, std::ssize(subset.ids))};
    }
    lm_head.chosen_logits(context_, std::span(products).first(count));
  }

  void score_all(const LmHead& lm_head, const TensorView& hidden) {
    bool needs_whole_rows = false;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const bool finds_pieces = is_found_by_pieces(requests_[i]) || is_listed_by_pieces(requests_[i]);
      if (finds_pieces && requests_[i].subset == nullptr && !is_shared(i)) {
        by_pieces_[place(i)] = &requests_[i];
        const std::span<CandidateList> own = lists(place(i));
        for (size_t j = 0; requests_[i].num_candidates > 0 && j < own.size(); j += kRowsAtOnce) own[j].count = 0;
      } else {
        needs_whole_rows = true;
      }
    }
    const TensorView& out = needs_whole_rows ? logits_ : scratch_.passing;
    const int64_t num_rows = hidden.dim(0);
    const int64_t num_out = needs_whole_rows ? num_rows : num_rows * cpu_of(context_).threads().num_threads();
    lm_head.logits_by_ids(context_, hidden, out.rows(0, num_out), [&](const ColumnPiece& piece) {
      for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
        if (by_pieces_[row] != nullptr) look_at(piece, row);
      }
    });
  }

  // Brings what all ranks have found of these rows to the first, which alone goes on: true there. False, too, if the
  // group has failed, which the step's end says.
  bool gather(const LmHead& lm_head, int64_t num_rows) {
    Communicator& ranks = *context_.ranks;
    DCHECK(ranks.size() == lm_head.num_ranks());
    std::array<std::byte*, kRowsAtOnce> whole, piecewise, listed;
    size_t num_whole = 0, num_piecewise = 0, num_listed = 0;
    for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
      if (by_pieces_[row] == nullptr) {
        whole[num_whole++] = reinterpret_cast<std::byte*>(logits_.row(static_cast<int64_t>(row)));
        continue;
      }
      piecewise[num_piecewise++] = reinterpret_cast<std::byte*>(pieces(row).data());
      const int32_t most = by_pieces_[row]->num_candidates;
      if (most == 0) continue;
      merge_lists(lists(row), kRowsAtOnce, most, rank_lists(row)[static_cast<size_t>(ranks.rank())]);
      listed[num_listed++] = reinterpret_cast<std::byte*>(rank_lists(row).data());
    }
    const auto scores_of = [&](int rank) {
      const IndexRange ids = lm_head.ids_of(rank);
      return IndexRange{ids.begin * int64_t{sizeof(float)}, ids.end * int64_t{sizeof(float)}};
    };
    const auto pieces_of = [&](int rank) {
      const IndexRange ids = lm_head.ids_of(rank);
      return IndexRange{ceil_div(ids.begin, kPieceColumns) * int64_t{sizeof(GreedyPiece)},
                        ceil_div(ids.end, kPieceColumns) * int64_t{sizeof(GreedyPiece)}};
    };
    const auto list_of = [](int rank) {
      return IndexRange{rank * int64_t{sizeof(CandidateList)}, (rank + 1) * int64_t{sizeof(CandidateList)}};
    };
    return gather_columns(ranks, std::span(whole).first(num_whole), scores_of).ok() &&
           gather_columns(ranks, std::span(piecewise).first(num_piecewise), pieces_of).ok() &&
           gather_columns(ranks, std::span(listed).first(num_listed), list_of).ok() && ranks.rank() == 0;
  }

  // The hidden row of request i among those of this selection.
  size_t place(size_t i) const { return static_cast<size_t>(requests_[i].hidden_row - requests_.front().hidden_row); }
  std::span<GreedyPiece> pieces(size_t row) const {
    const auto count = static_cast<size_t>(scratch_.num_pieces);
    return scratch_.pieces.subspan(row * count, count);
  }
  // Several requests look at one row: none may edit it in place.
  bool is_shared(size_t i) const {
    return (i > 0 && requests_[i - 1].hidden_row == requests_[i].hidden_row) ||
           (i + 1 < requests_.size() && requests_[i + 1].hidden_row == requests_[i].hidden_row);
  }

  void look_at(const ColumnPiece& piece, size_t row) const {
    const RowRequest& request = *by_pieces_[row];
    const auto first_id = static_cast<int32_t>(piece.begin);
    const std::span<float> scores(piece.y.row(static_cast<int64_t>(row)), static_cast<size_t>(piece.end - piece.begin));
    GreedyPiece& result = pieces(row)[static_cast<size_t>(piece.begin / kPieceColumns)];
    if (request.num_candidates > 0) {
      result =
          list_piece(context_, request, first_id, scores, lists(row)[static_cast<size_t>(piece.thread) * kRowsAtOnce]);
    } else {
      result = look_at_piece(context_, request, first_id, scores);
    }
  }

  // Scores of request i that it may change: of all ids, or of its subset's.
  std::span<float> own_scores(size_t i, int thread) const {
    float* const row = logits_.row(static_cast<int64_t>(place(i)));
    float* const own = is_shared(i) ? scratch_.copies.row(thread) : row;
    const VocabularySubset* subset = requests_[i].subset;
    const size_t size = subset == nullptr ? static_cast<size_t>(vocab_) : subset->ids.size();
    if (subset != nullptr && subset->copies == nullptr) {
      // Ids ascend, so none is overwritten before it is read.
      for (size_t j = 0; j < size; ++j) own[j] = row[subset->ids[j]];
    } else if (own != row) {
      std::memcpy(own, row, size * sizeof(float));
    }
    return {own, size};
  }

  // The row's lists of candidates: every kRowsAtOnce-th is another thread's.
  std::span<CandidateList> lists(size_t row) const { return scratch_.lists.subspan(row); }
  // One of each rank.
  std::span<CandidateList> rank_lists(size_t row) const {
    const size_t count = scratch_.rank_lists.size() / static_cast<size_t>(kRowsAtOnce);
    return scratch_.rank_lists.subspan(row * count, count);
  }

  std::span<TokenLogprob> top_of(const RowRequest& request, const RowSample& sample) const {
    return std::span(output_.top)
        .subspan(static_cast<size_t>(sample.top_begin), static_cast<size_t>(num_top_entries(request, vocab_)));
  }

  void choose(size_t i, int thread) const {
    const RowRequest& request = requests_[i];
    const auto size = static_cast<size_t>(vocab_);
    RowSample& sample = samples_[i];
    if (by_pieces_[place(i)] != nullptr) {
      if (request.num_candidates == 0) return choose_by_pieces(request, pieces(place(i)), sample);
      const bool is_whole = scratch_.rank_lists.empty();
      return choose_candidates(pieces(place(i)), is_whole ? lists(place(i)) : rank_lists(place(i)),
                               is_whole ? kRowsAtOnce : 1, sample, top_of(request, sample));
    }
    const std::span<float> scores = own_scores(i, thread);
    select_row(context_, request, scores, scratch_.candidates.subspan(static_cast<size_t>(thread) * size, size), sample,
               top_of(request, sample));
  }

  Context& context_;
  const Scratch& scratch_;
  std::span<const RowRequest> requests_;
  SampleOutput& output_;
  RowSample* samples_;
  int64_t vocab_;
  TensorView logits_;
  std::array<const RowRequest*, kRowsAtOnce> by_pieces_{};  // by hidden row: its one request, if pieces suffice
};

// Calls run(selection) for each part of the requests that fits `scratch`.
template <typename F>
void select_in_parts(Context& context, const Scratch& scratch, int64_t vocab, std::span<const RowRequest> rows,
                     SampleOutput& output, const F& run) {
  int64_t top_begin = 0;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && rows[end].hidden_row < rows[begin].hidden_row + kRowsAtOnce &&
           has_copies(rows[end]) == has_copies(rows[begin])) {
      DCHECK(end == begin || rows[end].hidden_row >= rows[end - 1].hidden_row);
      output.rows[end].top_begin = top_begin;
      top_begin += num_top_entries(rows[end], vocab);
      ++end;
    }
    Selection selection(context, scratch, rows.subspan(begin, end - begin), output, output.rows.data() + begin, vocab);
    run(selection);
    begin = end;
  }
}

}  // namespace

void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
            SampleOutput& output) {
  const int64_t vocab = lm_head.vocab_size();
  reserve_top(rows, vocab, output);
  if (rows.empty()) return;
  Arena::Scope scope(context.arena);
  const Scratch scratch = make_scratch(context, hidden.dim(0), vocab);
  select_in_parts(context, scratch, vocab, rows, output, [&](Selection& part) { part.run(lm_head, hidden); });
}

void select_scored(Context& context, int64_t vocab, int64_t num_hidden, ScoreRows score,
                   std::span<const RowRequest> rows, SampleOutput& output) {
  CHECK(context.ranks == nullptr);
  reserve_top(rows, vocab, output);
  if (rows.empty()) return;
  Arena::Scope scope(context.arena);
  const Scratch scratch = make_scratch(context, num_hidden, vocab);
  select_in_parts(context, scratch, vocab, rows, output, [&](Selection& part) { part.run(score); });
}

void select_dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) {
  Arena::Scope scope(context.arena);
  const Scratch scratch = make_scratch(context, num_rows, lm_head.vocab_size());
  const int64_t rows = std::min(num_rows, kRowsAtOnce);
  lm_head.logits_by_ids(context, hidden.rows(0, rows), scratch.logits, [](const ColumnPiece&) {});
  if (lm_head.num_ranks() > 1) return;  // no outputs are copied there
  std::array<ChosenProduct, kRowsAtOnce> products;
  for (int64_t row = 0; row < rows; ++row) products[static_cast<size_t>(row)].x = hidden.rows(row, row + 1);
  lm_head.chosen_logits(context, std::span(products).first(static_cast<size_t>(rows)));
}

}  // namespace transept
