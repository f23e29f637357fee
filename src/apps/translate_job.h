// The job of `transept translate`: every line of its files is a request, every answer a line. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/job.h"
#include "apps/text_lines.h"
#include "base/json.h"

namespace transept {

class TranslateJob final : public Job {
 public:
  struct Options {
    Json fields = Json::object();  // of every request
    std::optional<int32_t> n_best;
    bool wants_beams = false;  // n_best without num_beams: as many beams as answers
    bool warn_of_cuts = true;  // warn if an answer ends at the model's own limit
    bool count_lines = false;  // for a progress bar
  };

  TranslateJob(TextLines lines, Options options) : lines_(std::move(lines)), options_(std::move(options)) {}

  std::string_view unit() const override { return "lines"; }
  std::optional<int64_t> total() const override { return total_; }
  // Errors: what would fail for every line (an unknown language, more answers than beams), under the field's name.
  Status begin(const LoadedModel& model) override;
  Next next(OrderedRun& run) override;
  int fd() const override { return lines_.fd(); }
  Status status() const override { return lines_.status(); }
  std::string result(const JobItem& item, const RequestOutput& output) override;
  std::string failure(const JobItem& item, const Status& status) override;

 private:
  std::string blank(const JobItem& item) const;

  TextLines lines_;
  Options options_;
  std::optional<int64_t> total_;
  const Tokenizer* tokenizer_ = nullptr;
  TextLine line_;
};

// Formats one answer as a line of a file: line breaks within it become spaces.
std::string as_one_line(std::string_view text);

// Formats a line in Moses' format of n-best lists, "INDEX ||| TEXT ||| SCORE": the number of the input line, from 0,
// and the score that ranks.
std::string n_best_line(size_t index, std::string_view text, double score);

}  // namespace transept
