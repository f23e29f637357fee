#include "text/pipeline/pipeline_tokenizer.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/utf8.h"

namespace transept {
namespace {

// Normalisation may multiply a text's length.
constexpr size_t kMaxTextBytes = size_t{64} << 20;

}  // namespace

StatusOr<std::unique_ptr<PipelineTokenizer>> PipelineTokenizer::create(Parts parts, std::string_view file,
                                                                       const TokenizerHints& hints) {
  std::unique_ptr<PipelineTokenizer> tokenizer(new PipelineTokenizer(std::move(parts)));
  const int64_t decoder_size = hints.decoder_vocab_size > 0 ? hints.decoder_vocab_size : hints.vocab_size;
  for (const TokenizerSide side : {TokenizerSide::kEncoder, TokenizerSide::kDecoder}) {
    Status status = tokenizer->check_frame(side);
    if (status.ok()) {
      status = tokenizer->check_embedding(side, side == TokenizerSide::kEncoder ? hints.vocab_size : decoder_size);
    }
    if (!status.ok()) return with_prefix(status, file);
    if (!tokenizer->parts_.decoder_side.has_value()) break;
  }
  return tokenizer;
}

Status PipelineTokenizer::check_frame(TokenizerSide of) const {
  const PostProcessor& post = side(of).post_processor;
  for (const std::vector<int32_t>* ids : {&post.prefix, &post.suffix}) {
    for (const int32_t id : *ids) {
      if (spelling(id, of).empty()) {
        return invalid_argument("post_processor: token id ", id, " is not in the vocabulary");
      }
    }
  }
  return ok_status();
}

// Published checkpoints name added tokens (<mask>) that lie behind their embedding; a text that holds one is refused
// when it comes. Ordinary tokens and languages are in every text.
Status PipelineTokenizer::check_embedding(TokenizerSide of, int64_t num_embeddings) const {
  if (num_embeddings <= 0) return ok_status();
  const auto refuse = [&](std::string_view token, int64_t id) {
    return with_param(invalid_argument("the token ", in_quotes(token), " has the id ", id, ", more than ",
                                       "config.json's vocab_size of ", num_embeddings, " allows"),
                      "vocab_size");
  };
  const Vocabulary& vocabulary = side(of).model->vocabulary();
  for (int64_t id = num_embeddings; id < vocabulary.end_id(); ++id) {
    const auto token_id = static_cast<int32_t>(id);
    if (vocabulary.contains(token_id) && side(of).added_tokens.find(token_id) == nullptr) {
      return refuse(vocabulary.token(token_id), id);
    }
  }
  if (parts_.languages.max_id() >= num_embeddings) {
    return refuse(spelling(parts_.languages.max_id()), parts_.languages.max_id());
  }
  return ok_status();
}

StatusOr<std::vector<int32_t>> PipelineTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  ASSIGN_OR_RETURN(const std::optional<int32_t> language, parts_.languages.token_for(options));
  if (text.size() > kMaxTextBytes) {
    return invalid_argument("a text of ", text.size(), " bytes is longer than the ", kMaxTextBytes, " allowed");
  }
  std::string valid;
  if (!is_valid_utf8(text)) {
    valid = sanitize_utf8(text);
    text = valid;
  }
  const Side& here = side(options.side);
  const bool language_is_last = parts_.languages.place() == Languages::Place::kAfterEnd;
  const bool has_language = language.has_value() && !parts_.languages.text_chooses(text);
  std::vector<int32_t> ids;
  SearchBudget budget(text.size());
  if (!options.add_special_tokens) {
    RETURN_IF_ERROR(encode_text(text, here, budget, ids));
    return ids;
  }
  if (has_language && !language_is_last) ids.push_back(*language);
  for (const int32_t id : here.post_processor.prefix) ids.push_back(id);
  RETURN_IF_ERROR(encode_text(text, here, budget, ids));
  for (const int32_t id : here.post_processor.suffix) ids.push_back(id);
  if (has_language && language_is_last) ids.push_back(*language);
  return ids;
}

Status PipelineTokenizer::encode_text(std::string_view text, const Side& side, SearchBudget& budget,
                                      std::vector<int32_t>& ids) const {
  std::vector<AddedTokens::Segment> segments;
  side.added_tokens.split_raw(text, segments);
  for (const AddedTokens::Segment& segment : segments) {
    if (segment.token_id != AddedTokens::kText) {
      ids.push_back(segment.token_id);
      continue;
    }
    const std::string_view part = segment.range.of(text);
    bool at_front = parts_.pre_tokenizer.asks_for_front() && segment.range.begin == 0;
    if (parts_.normalizer.empty()) {
      RETURN_IF_ERROR(encode_normalized(part, side, at_front, budget, ids));
      continue;
    }
    if (at_front) {
      ASSIGN_OR_RETURN(const bool drops_front, parts_.normalizer.drops_front(std::string(part), budget));
      at_front = !drops_front;
    }
    ASSIGN_OR_RETURN(const std::string normalized, parts_.normalizer.apply(std::string(part), budget));
    RETURN_IF_ERROR(encode_normalized(normalized, side, at_front, budget, ids));
  }
  return ok_status();
}

Status PipelineTokenizer::encode_normalized(std::string_view text, const Side& side, bool at_front,
                                            SearchBudget& budget, std::vector<int32_t>& ids) const {
  std::vector<AddedTokens::Segment> segments;
  side.added_tokens.split_normalized(text, segments);
  for (const AddedTokens::Segment& segment : segments) {
    if (segment.token_id != AddedTokens::kText) {
      ids.push_back(segment.token_id);
      continue;
    }
    const bool segment_at_front = at_front && segment.range.begin == 0;
    ASSIGN_OR_RETURN(const Words words, parts_.pre_tokenizer.split(segment.range.of(text), segment_at_front, budget));
    RETURN_IF_ERROR(side.model->append_ids(words, ids));
  }
  return ok_status();
}

void PipelineTokenizer::append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const {
  const std::string_view token = spelling(token_id);
  if (token.empty()) return;
  parts_.decoder->append_bytes({previous, [this](int32_t id) { return spelling(id); }}, token, out);
}

void PipelineTokenizer::append_end(std::span<const int32_t> token_ids, std::string& out) const {
  const auto spell = [this](int32_t id) { return spelling(id); };
  parts_.decoder->append_end(EarlierTokens{token_ids, spell}.last(), out);
}

std::string_view PipelineTokenizer::spelling(int32_t token_id, TokenizerSide of) const {
  if (const AddedToken* added = side(of).added_tokens.find(token_id)) return added->content;
  return side(of).model->vocabulary().token(token_id);
}

std::optional<int32_t> PipelineTokenizer::string_to_token(std::string_view token) const {
  const Side& answers = side(TokenizerSide::kDecoder);
  if (const std::optional<int32_t> added = answers.added_tokens.find(token)) return added;
  return answers.model->vocabulary().find(token);
}

bool PipelineTokenizer::is_special(int32_t token_id) const {
  const AddedToken* added = side(TokenizerSide::kDecoder).added_tokens.find(token_id);
  return added != nullptr && added->special;
}

int32_t PipelineTokenizer::vocab_size() const {
  int32_t end = 0;
  for (const TokenizerSide of : {TokenizerSide::kEncoder, TokenizerSide::kDecoder}) {
    end = std::max({end, side(of).added_tokens.end_id(), side(of).model->vocabulary().end_id()});
  }
  return end;
}

}  // namespace transept
