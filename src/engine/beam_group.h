// The beam search of one request: which of its sequences is which beam, and the hypotheses that have ended.
// sampling/beam_search.h decides which beams continue; this class forks, grows and drops sequences accordingly, so the
// only KV that is copied is a last block that two beams write to. Owned by the output processor. Not thread-safe
// (engine thread).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/prompt.h"
#include "core/request_output.h"
#include "engine/output_text.h"
#include "sampling/beam_search.h"
#include "sampling/select.h"
#include "scheduling/scheduler.h"

namespace transept {

class BeamGroup final {
 public:
  // Borrows all three; `tokenizer` may be null. REQUIRES: group.params().num_beams > 1.
  BeamGroup(const SequenceGroup& group, const EncoderDecoderInputs& inputs, const Tokenizer* tokenizer);

  // RowRequest::num_candidates of every beam's row.
  int32_t num_candidates() const;

  // The row of one beam in one step.
  struct Row {
    SeqId seq_id;
    const RowSample* sample = nullptr;
  };
  // Advances every running beam by one step (`rows` in any order): forks, grows and drops sequences, and finishes all
  // of them when the search is over. There are fewer hypotheses than requested only where fewer answers exist.
  void advance(std::span<const Row> rows, const SampleOutput& samples, Scheduler& scheduler, SequenceGroup& group);

  // Whether a hypothesis has ended: the search then has an answer, even if no beam can continue.
  bool has_hypothesis() const { return !hypotheses_.empty(); }

  // Returns the n best so far, best first: hypotheses, then the running beams of a search that was cut short (kAbort).
  std::vector<CompletionOutput> make_outputs(const SequenceGroup& group) const;

 private:
  struct Beam {
    SeqId seq_id;
    std::unique_ptr<OutputText> text;        // only where stop strings must be searched for
    std::vector<PositionLogprobs> logprobs;  // only where requested
    std::vector<int32_t> alignments;         // only where requested

    Beam fork() const;
  };
  struct Hypothesis {
    double score = 0;
    CompletionOutput output;
  };

  void order_rows(std::span<const Row> rows, const SampleOutput& samples, const SequenceGroup& group);
  bool ends(const BeamContinuation& way, const SequenceGroup& group) const;
  bool is_end(FinishReason reason, int32_t token_id) const;
  void keep_hypothesis(const BeamContinuation& way, const SequenceGroup& group);
  void keep_unfinished(const SequenceGroup& group);
  double score(const BeamContinuation& way, int32_t num_generated, bool has_ended) const;
  Hypothesis* add_hypothesis(double score, size_t most);
  void fill_hypothesis(const BeamContinuation& way, const SequenceGroup& group, Hypothesis& kept) const;
  void grow(SequenceGroup& group);
  void fork(Scheduler& scheduler, SequenceGroup& group);
  bool is_done(const SequenceGroup& group) const;
  void add_logprobs(const BeamContinuation& way, std::vector<PositionLogprobs>& logprobs) const;
  void write_text(FinishReason if_unfinished, CompletionOutput& output) const;

  const SamplingParams& params_;
  const EncoderDecoderInputs& inputs_;
  const Tokenizer* tokenizer_;
  BeamStopRule rule_;
  size_t most_hypotheses_;
  std::vector<Beam> beams_, next_beams_;  // best first
  std::vector<BeamRow> rows_;             // of beams_
  std::vector<int32_t> source_indices_;   // RowSample::source_index of beams_
  BeamStep step_;
  std::vector<Hypothesis> hypotheses_;  // best first; at most num_beams, or as many as patience waits for
};

}  // namespace transept
