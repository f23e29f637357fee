#include "sampling/select.h"

#include <algorithm>
#include <cstring>

#include "sampling/select_row.h"

namespace transept {
namespace {

// Hidden rows whose scores are held at once: enough to read the vocabulary matrix seldom, few enough that the scores of
// a long --score stay small.
constexpr int64_t kRowsAtOnce = 32;

struct Scratch {
  TensorView logits;                // [kRowsAtOnce, vocab]
  TensorView copies;                // [threads, vocab]: for rows that several requests look at
  std::span<Candidate> candidates;  // [threads * vocab]
};

Scratch make_scratch(Context& context, int64_t rows, int64_t vocab) {
  const int64_t threads = context.threads.num_threads();
  return {context.arena.tensor(DType::kFloat32, {std::min(rows, kRowsAtOnce), vocab}),
          context.arena.tensor(DType::kFloat32, {threads, vocab}),
          context.arena.allocate_span<Candidate>(threads * vocab)};
}

// Gives each request its place in output.top before the threads start.
void reserve_top(std::span<const RowRequest> rows, int64_t vocab, SampleOutput& output) {
  output.rows.resize(rows.size());
  int64_t size = 0;
  for (const RowRequest& row : rows) size += num_top_entries(row, vocab);
  output.top.resize(static_cast<size_t>(size));
}

}  // namespace

void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
            SampleOutput& output) {
  const int64_t vocab = lm_head.vocab_size();
  reserve_top(rows, vocab, output);
  if (rows.empty()) return;
  Arena::Scope scope(context.arena);
  const Scratch scratch = make_scratch(context, hidden.dim(0), vocab);
  int64_t top_begin = 0;
  for (size_t begin = 0; begin < rows.size();) {
    const int64_t first = rows[begin].hidden_row;
    size_t end = begin;
    while (end < rows.size() && rows[end].hidden_row < first + kRowsAtOnce) {
      DCHECK(end == begin || rows[end].hidden_row >= rows[end - 1].hidden_row);
      output.rows[end].top_begin = top_begin;
      top_begin += num_top_entries(rows[end], vocab);
      ++end;
    }
    const int64_t last = rows[end - 1].hidden_row + 1;
    const TensorView logits = scratch.logits.rows(0, last - first);
    lm_head.logits(context, hidden.rows(first, last), logits);
    context.threads.parallel_for(static_cast<int64_t>(end - begin), [&](int64_t task, int thread) {
      const size_t i = begin + static_cast<size_t>(task);
      const RowRequest& request = rows[i];
      float* scores = logits.row(request.hidden_row - first);
      const bool is_shared = (i > begin && rows[i - 1].hidden_row == request.hidden_row) ||
                             (i + 1 < end && rows[i + 1].hidden_row == request.hidden_row);
      if (is_shared) {
        std::memcpy(scratch.copies.row(thread), scores, static_cast<size_t>(vocab) * sizeof(float));
        scores = scratch.copies.row(thread);
      }
      RowSample& sample = output.rows[i];
      const std::span<TokenLogprob> top =
          std::span(output.top)
              .subspan(static_cast<size_t>(sample.top_begin), static_cast<size_t>(num_top_entries(request, vocab)));
      select_row(context, request, {scores, static_cast<size_t>(vocab)},
                 scratch.candidates.subspan(static_cast<size_t>(thread * vocab), static_cast<size_t>(vocab)), sample,
                 top);
    });
    begin = end;
  }
}

void select_dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) {
  Arena::Scope scope(context.arena);
  const Scratch scratch = make_scratch(context, num_rows, lm_head.vocab_size());
  const int64_t rows = std::min(num_rows, kRowsAtOnce);
  lm_head.logits(context, hidden.rows(0, rows), scratch.logits);
}

}  // namespace transept
