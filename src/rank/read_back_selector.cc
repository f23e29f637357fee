#include "rank/read_back_selector.h"

#include <algorithm>
#include <vector>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/score_looks.h"
#include "sampling/candidate_row.h"
#include "sampling/row_looks.h"
#include "sampling/select.h"
#include "sampling/select_row.h"

namespace transept {
namespace {

constexpr int64_t kRowsAtOnce = 32;  // of select_scored()
constexpr int64_t kListedStep = 8;

class ReadBackSelector final : public Selector {
 public:
  ReadBackSelector(ThreadPool& threads, Isa isa) : host_(threads, isa) {}

  void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
              SampleOutput& output) const override {
    looked_.clear();
    whole_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_shared = (i > 0 && rows[i - 1].hidden_row == rows[i].hidden_row) ||
                             (i + 1 < rows.size() && rows[i + 1].hidden_row == rows[i].hidden_row);
      const bool is_enough = looks_at_scores(context) && !is_shared && is_looked_at(rows[i]);
      if (is_enough) looked_.push_back(static_cast<int32_t>(i));
      if (!is_enough) whole_.push_back(rows[i]);
    }
    if (looked_.empty()) return select_whole(context, lm_head, hidden, rows, output);
    look(context, lm_head, hidden, rows);
    of_whole_.rows.clear();
    of_whole_.top.clear();
    if (!whole_.empty()) select_whole(context, lm_head, hidden, whole_, of_whole_);
    put_together(lm_head.vocab_size(), rows, output);
  }
  void dry_run(Context& context, const LmHead& lm_head, const TensorView& hidden, int64_t num_rows) const override {
    const Arena::Scope scope(context.arena);
    const TensorView there = scores_there(context, lm_head, num_rows);
    lm_head.logits(context, hidden.rows(0, there.dim(0)), there);
    if (looks_at_scores(context)) (void)found_there(context, num_rows, kMostListed);
  }

 private:
  void select_whole(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
                    SampleOutput& output) const {
    const int64_t vocab = lm_head.vocab_size();
    const Arena::Scope scope(context.arena);
    const TensorView there = scores_there(context, lm_head, hidden.dim(0));
    const auto score = [&](int64_t first, int64_t last, const TensorView& out) {
      // Rows that only fill the step behind the last are scored, too: so it is the same for any number of others.
      const int64_t end = std::min(hidden.dim(0), first + kRowsAtOnce);
      const TensorView some = there.rows(0, end - first);
      lm_head.logits(context, hidden.rows(first, end), some);
      CHECK(out.stride[0] == vocab && last <= end);
      const auto row_bytes = static_cast<size_t>(vocab) * sizeof(float);
      context.device.memory().copy_out_some(out.raw, some.raw, static_cast<size_t>(last - first) * row_bytes,
                                            static_cast<size_t>(end - first) * row_bytes);
    };
    const int64_t overflows = scratch_->num_overflows();
    Context here{host_, *scratch_};
    select_scored(here, vocab, hidden.dim(0), score, rows, output);
    if (scratch_->num_overflows() > overflows) scratch_ = std::make_unique<Arena>(scratch_->high_water_bytes());
  }

  // Fills found_ with what is found of all hidden rows, of which those of looked_ are asked for.
  void look(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows) const {
    const int64_t num_rows = hidden.dim(0);
    looks_.assign(static_cast<size_t>(num_rows), ScoreLook());
    edits_.assign(2, 0);  // of rows without any
    int64_t most_listed = 0, last = 0;
    const RowEdits* before = nullptr;
    ScoreLook of_before;
    for (const int32_t i : looked_) {
      const RowRequest& request = rows[static_cast<size_t>(i)];
      ScoreLook& row = looks_[static_cast<size_t>(request.hidden_row)];
      const bool is_alike = before != nullptr && request.edits != nullptr && *before == *request.edits;
      row = is_alike ? with_edits_of(of_before, request) : make_look(request, edits_);
      before = request.edits, of_before = row;
      most_listed = std::max<int64_t>(most_listed, request.num_candidates);
      last = request.hidden_row + 1;
    }
    // Few widths, so that steps of the same rows are the same.
    most_listed = round_up(most_listed, kListedStep);
    width_ = found_words(most_listed);
    const Arena::Scope scope(context.arena);
    const TensorView there = scores_there(context, lm_head, num_rows);
    const TensorView found = found_there(context, num_rows, most_listed);
    for (int64_t first = 0; first < num_rows; first += kRowsAtOnce) {
      const int64_t end = std::min(num_rows, first + kRowsAtOnce);
      const TensorView some = there.rows(0, end - first);
      lm_head.logits(context, hidden.rows(first, end), some);
      const auto of_some = std::span(looks_).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
      look_at_scores(context, some, of_some, edits_, most_listed, found.rows(first, end));
    }
    const auto row_bytes = static_cast<size_t>(width_) * sizeof(uint32_t);
    found_.resize(static_cast<size_t>(last * width_));
    context.device.memory().copy_out_some(found_.data(), found.raw, found_.size() * sizeof(uint32_t),
                                          static_cast<size_t>(num_rows) * row_bytes);
  }

  // Of both, in the order of the requests.
  void put_together(int64_t vocab, std::span<const RowRequest> rows, SampleOutput& output) const {
    output.rows.resize(rows.size());
    output.top.clear();
    size_t next_looked = 0, next_whole = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      RowSample& sample = output.rows[i];
      const auto begin = static_cast<int64_t>(output.top.size());
      const auto num_top = static_cast<size_t>(num_top_entries(rows[i], vocab));
      if (next_looked < looked_.size() && looked_[next_looked] == static_cast<int32_t>(i)) {
        ++next_looked;
        sample.top_begin = begin;
        output.top.resize(output.top.size() + num_top);
        const auto at = static_cast<size_t>(rows[i].hidden_row * width_);
        choose_of_found(rows[i], vocab, std::span(found_).subspan(at, static_cast<size_t>(width_)), sample,
                        std::span(output.top).subspan(static_cast<size_t>(begin)));
        continue;
      }
      sample = of_whole_.rows[next_whole++];
      const auto from = of_whole_.top.begin() + sample.top_begin;
      output.top.insert(output.top.end(), from, from + static_cast<int64_t>(num_top));
      sample.top_begin = begin;
    }
  }

  static TensorView found_there(Context& context, int64_t num_rows, int64_t most_listed) {
    return context.arena.tensor(DType::kFloat32, {num_rows, found_words(most_listed)});
  }
  static TensorView scores_there(Context& context, const LmHead& lm_head, int64_t num_rows) {
    return context.arena.tensor(DType::kFloat32, {std::min(num_rows, kRowsAtOnce), lm_head.vocab_size()});
  }

  mutable CpuDevice host_;
  // Of the last step: its requests by how they are taken, and what the device was asked and has found.
  mutable std::vector<int32_t> looked_;  // places of requests
  mutable std::vector<RowRequest> whole_;
  mutable SampleOutput of_whole_;
  mutable std::vector<ScoreLook> looks_;
  mutable std::vector<uint32_t> edits_, found_;
  mutable int64_t width_ = 0;  // words of a row of found_
  // What the processor's own selection takes of its step memory: as much as the largest step so far.
  mutable std::unique_ptr<Arena> scratch_ = std::make_unique<Arena>(Arena::kAlignment);
};

}  // namespace

std::unique_ptr<const Selector> make_read_back_selector(ThreadPool& threads, Isa isa) {
  return std::make_unique<ReadBackSelector>(threads, isa);
}

}  // namespace transept
