#include "text/pipeline/post_processor.h"

namespace transept {
namespace {

// A text gets no more of them than this from any file.
constexpr size_t kMaxSpecialTokens = 256;

// ["</s>", 2].
StatusOr<int32_t> parse_named_id(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_list());
  if (field.json().as_array().size() != 2) return field.error("expected a token and its id");
  return field.item(1).as_token_id();
}

StatusOr<PostProcessor> parse_bert(const JsonField& field) {
  ASSIGN_OR_RETURN(const int32_t cls, parse_named_id(field.member("cls")));
  ASSIGN_OR_RETURN(const int32_t sep, parse_named_id(field.member("sep")));
  return PostProcessor{.prefix = {cls}, .suffix = {sep}};
}

Status append_special(const JsonField& piece, const JsonField& special_tokens, bool behind_text, PostProcessor& out) {
  ASSIGN_OR_RETURN(const std::string name, piece.member("id").as_string());
  const JsonField ids = special_tokens.member(name).member("ids");
  RETURN_IF_ERROR(ids.expect_list());
  const size_t num_ids = ids.json().as_array().size();
  if (out.prefix.size() + out.suffix.size() + num_ids > kMaxSpecialTokens) {
    return ids.error("more than 256 special tokens");
  }
  for (size_t i = 0; i < num_ids; ++i) {
    ASSIGN_OR_RETURN(const int32_t id, ids.item(i).as_token_id());
    (behind_text ? out.suffix : out.prefix).push_back(id);
  }
  return ok_status();
}

StatusOr<PostProcessor> parse_template(const JsonField& field) {
  PostProcessor processor;
  const JsonField single = field.member("single");
  RETURN_IF_ERROR(single.expect_list());
  if (single.json().as_array().size() > kMaxSpecialTokens) return single.error("more than 256 pieces");
  bool behind_text = false;
  for (size_t i = 0; i < single.json().as_array().size(); ++i) {
    const JsonField piece = single.item(i);
    if (piece.member("SpecialToken").present()) {
      RETURN_IF_ERROR(
          append_special(piece.member("SpecialToken"), field.member("special_tokens"), behind_text, processor));
    } else {
      ASSIGN_OR_RETURN(const std::string id, piece.member("Sequence").member("id").as_string());
      if (id != "A" || behind_text) return piece.error("expected the text $A once");
      behind_text = true;
    }
  }
  if (!behind_text) return single.error("lacks the text $A");
  return processor;
}

StatusOr<PostProcessor> parse_sequence(const JsonField& field) {
  PostProcessor all;
  const JsonField list = field.member("processors");
  RETURN_IF_ERROR(list.expect_list());
  for (size_t i = 0; i < list.json().as_array().size(); ++i) {
    ASSIGN_OR_RETURN(const PostProcessor next, PostProcessor::parse(list.item(i)));
    all.prefix.insert(all.prefix.begin(), next.prefix.begin(), next.prefix.end());
    all.suffix.insert(all.suffix.end(), next.suffix.begin(), next.suffix.end());
    if (all.prefix.size() + all.suffix.size() > kMaxSpecialTokens) return field.error("more than 256 special tokens");
  }
  return all;
}

}  // namespace

StatusOr<PostProcessor> PostProcessor::parse(const JsonField& field) {
  if (!field.present()) return PostProcessor();
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "RobertaProcessing" || type == "BertProcessing") return parse_bert(field);
  if (type == "TemplateProcessing") return parse_template(field);
  if (type == "ByteLevel") return PostProcessor();
  if (type == "Sequence") return parse_sequence(field);
  return field.member("type").not_supported(type);
}

}  // namespace transept
