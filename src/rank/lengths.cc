#include "rank/lengths.h"

#include <algorithm>

#include "base/checked_math.h"

namespace transept {

bool has_no_limit(const ModelSpec& spec) {
  return std::max(spec.max_encoder_positions, spec.max_decoder_positions) == ModelSpec::kNoLimit;
}

bool has_wide_layers(const ModelSpec& spec) { return spec.max_item_rows > spec.max_encoder_positions; }

StatusOr<Lengths> settle_lengths(const ModelSpec& spec, std::optional<int32_t> asked, int32_t default_len) {
  const int32_t positions = std::max(spec.max_encoder_positions, spec.max_decoder_positions);
  const bool unlimited = has_no_limit(spec);
  if (asked.has_value() && *asked > (unlimited ? ModelSpec::kMaxPositions : positions)) {
    return unlimited ? invalid_argument("--max-model-len ", *asked, ": at most ", ModelSpec::kMaxPositions)
                     : invalid_argument("--max-model-len ", *asked, ": the model has ", positions, " positions");
  }
  const int32_t most = asked.value_or(unlimited ? default_len : positions);
  const int32_t max_decoder_len = std::min(spec.max_decoder_positions, most);
  // What is spliced stands within a prompt.
  if (spec.splices_alone()) return Lengths{std::min(spec.max_encoder_positions, max_decoder_len), max_decoder_len};
  // A window of media always has all its positions: --max-model-len is about the answer then.
  const bool has_window = !spec.encoder_takes_ids() && spec.max_encoder_positions != ModelSpec::kNoLimit;
  return Lengths{has_window ? spec.max_encoder_positions : std::min(spec.max_encoder_positions, most), max_decoder_len};
}

int32_t longest_item(const ModelSpec& spec, Consumers consumers, const Lengths& lengths) {
  const bool is_beside = consumers == Consumers::kSplice && !spec.splices_alone();  // items that are crossed
  const int32_t most = is_beside ? lengths.max_decoder_len : lengths.max_encoder_len;
  return spec.max_item_rows == 0 ? most : std::min(most, spec.max_item_rows);
}

int32_t settle_encoder_tokens(const ModelSpec& spec, int32_t asked, const Lengths& lengths) {
  if (spec.max_item_rows == 0) return std::max(asked, lengths.max_encoder_len);
  if (!spec.splices_alone()) return std::max(asked, spec.max_item_rows);
  // Fewer positions are fewer rows.
  const int64_t rows_a_position = ceil_div(spec.max_item_rows, spec.max_encoder_positions);
  const int64_t rows = std::min<int64_t>(spec.max_item_rows, rows_a_position * lengths.max_encoder_len);
  return std::max(asked, static_cast<int32_t>(rows));
}

}  // namespace transept
