#include "text/pipeline_tokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace transept {
namespace {

// Normalisation may multiply a text's length.
constexpr size_t kMaxTextBytes = size_t{64} << 20;

}  // namespace

StatusOr<std::unique_ptr<PipelineTokenizer>> PipelineTokenizer::create(Parts parts) {
  std::unique_ptr<PipelineTokenizer> tokenizer(new PipelineTokenizer(std::move(parts)));
  const PostProcessor& post = tokenizer->parts_.post_processor;
  for (const std::vector<int32_t>* ids : {&post.prefix, &post.suffix}) {
    for (const int32_t id : *ids) {
      if (tokenizer->spelling(id).empty()) {
        return invalid_argument("post_processor: token id ", id, " is not in the vocabulary");
      }
    }
  }
  return tokenizer;
}

StatusOr<std::vector<int32_t>> PipelineTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (!options.source_lang.empty()) return field_error("source_lang", "this model has no languages to choose from");
  if (!options.target_lang.empty()) return field_error("target_lang", "this model has no languages to choose from");
  if (text.size() > kMaxTextBytes) {
    return invalid_argument("a text of ", text.size(), " bytes is longer than the ", kMaxTextBytes, " allowed");
  }
  std::string valid;
  if (!is_valid_utf8(text)) {
    valid = sanitize_utf8(text);
    text = valid;
  }
  std::vector<int32_t> ids;
  if (options.add_special_tokens) ids = parts_.post_processor.prefix;
  SearchBudget budget(text.size());
  RETURN_IF_ERROR(encode_text(text, budget, ids));
  if (options.add_special_tokens) {
    ids.insert(ids.end(), parts_.post_processor.suffix.begin(), parts_.post_processor.suffix.end());
  }
  return ids;
}

Status PipelineTokenizer::encode_text(std::string_view text, SearchBudget& budget, std::vector<int32_t>& ids) const {
  std::vector<AddedTokens::Segment> segments;
  parts_.added_tokens.split_raw(text, segments);
  for (const AddedTokens::Segment& segment : segments) {
    if (segment.token_id != AddedTokens::kText) {
      ids.push_back(segment.token_id);
      continue;
    }
    const std::string_view part = segment.range.of(text);
    bool at_front = parts_.pre_tokenizer.asks_for_front() && segment.range.begin == 0;
    if (parts_.normalizer.empty()) {
      RETURN_IF_ERROR(encode_normalized(part, at_front, budget, ids));
      continue;
    }
    if (at_front) {
      ASSIGN_OR_RETURN(const bool drops_front, parts_.normalizer.drops_front(std::string(part), budget));
      at_front = !drops_front;
    }
    ASSIGN_OR_RETURN(const std::string normalized, parts_.normalizer.apply(std::string(part), budget));
    RETURN_IF_ERROR(encode_normalized(normalized, at_front, budget, ids));
  }
  return ok_status();
}

Status PipelineTokenizer::encode_normalized(std::string_view text, bool at_front, SearchBudget& budget,
                                            std::vector<int32_t>& ids) const {
  std::vector<AddedTokens::Segment> segments;
  parts_.added_tokens.split_normalized(text, segments);
  for (const AddedTokens::Segment& segment : segments) {
    if (segment.token_id != AddedTokens::kText) {
      ids.push_back(segment.token_id);
      continue;
    }
    const bool segment_at_front = at_front && segment.range.begin == 0;
    ASSIGN_OR_RETURN(const Words words, parts_.pre_tokenizer.split(segment.range.of(text), segment_at_front, budget));
    RETURN_IF_ERROR(parts_.model->append_ids(words, ids));
  }
  return ok_status();
}

void PipelineTokenizer::append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const {
  const std::string_view token = spelling(token_id);
  if (token.empty()) return;
  parts_.decoder->append_bytes({previous, [this](int32_t id) { return spelling(id); }}, token, out);
}

std::string_view PipelineTokenizer::spelling(int32_t token_id) const {
  if (const AddedToken* added = parts_.added_tokens.find(token_id)) return added->content;
  return parts_.model->vocabulary().token(token_id);
}

std::optional<int32_t> PipelineTokenizer::string_to_token(std::string_view token) const {
  if (const std::optional<int32_t> added = parts_.added_tokens.find(token)) return added;
  return parts_.model->vocabulary().find(token);
}

bool PipelineTokenizer::is_special(int32_t token_id) const {
  const AddedToken* added = parts_.added_tokens.find(token_id);
  return added != nullptr && added->special;
}

int32_t PipelineTokenizer::vocab_size() const {
  return std::max(parts_.added_tokens.end_id(), parts_.model->vocabulary().end_id());
}

}  // namespace transept
