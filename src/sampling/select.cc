#include "sampling/select.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/softmax.h"
#include "sampling/choose.h"

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

// Does one request on its row of scores; `scores` may be changed.
void select_row(const Context& context, const RowRequest& request, std::span<float> scores,
                std::span<Candidate> scratch, RowSample& sample, std::span<TokenLogprob> top) {
  const bool is_scoring = request.target_token >= 0;
  if (!is_scoring && request.edits != nullptr) {
    apply_edits(*request.edits, scores);
    if (request.edits->renormalize) {
      const float normalizer = log_sum_exp(context, scores);
      if (std::isfinite(normalizer)) {
        for (float& score : scores) score -= normalizer;
      }
    }
  }
  const float normalizer = log_sum_exp(context, scores);
  sample = {};
  sample.token_id = is_scoring ? request.target_token : choose_token(context, request, scores, scratch);
  if (sample.token_id < 0 || std::isnan(normalizer)) {
    sample.token_id = std::isnan(normalizer) ? kNotNumbers : kNothingLeft;
    return;
  }
  sample.logprob = scores[static_cast<size_t>(sample.token_id)] - normalizer;
  if (request.num_logprobs < 0) return;
  sample.rank = rank_of(scores, sample.token_id);
  sample.num_top = top_entries(scores, normalizer, request.num_logprobs, top);
}

// Gives each request its place in output.top before the threads start.
void reserve_top(std::span<const RowRequest> rows, int64_t vocab, SampleOutput& output) {
  output.rows.resize(rows.size());
  int64_t size = 0;
  for (const RowRequest& row : rows) size += std::clamp<int64_t>(row.num_logprobs, 0, vocab);
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
      top_begin += std::clamp<int64_t>(rows[end].num_logprobs, 0, vocab);
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
      const int64_t place = sample.top_begin;
      const std::span<TokenLogprob> top =
          std::span(output.top)
              .subspan(static_cast<size_t>(place),
                       static_cast<size_t>(std::clamp<int64_t>(request.num_logprobs, 0, vocab)));
      select_row(context, request, {scores, static_cast<size_t>(vocab)},
                 scratch.candidates.subspan(static_cast<size_t>(thread * vocab), static_cast<size_t>(vocab)), sample,
                 top);
      sample.top_begin = place;
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
