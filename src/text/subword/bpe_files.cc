// Reading a byte-pair encoding: the member "model" of a tokenizer.json, or vocab.json and merges.txt.
#include "text/subword/bpe.h"

namespace transept {
namespace {

constexpr std::string_view kVocabFile = "vocab.json";
constexpr std::string_view kMergesFile = "merges.txt";

}  // namespace

// "left right".
Status BpeModel::add_text_merge(BpeModel& model, std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    return invalid_argument("expected two tokens with one space between them");
  }
  return model.add_merge(line.substr(0, space), line.substr(space + 1));
}

// A list of "left right" (older files) or of ["left", "right"].
Status BpeModel::add_merges(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_list());
  const Json::Array& merges = field.json().as_array();
  merges_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& merge = merges[i];
    Status status;
    if (merge.is_string()) {
      if (merge.as_string().starts_with("#version")) continue;
      status = add_text_merge(*this, merge.as_string());
    } else if (merge.is_array() && merge.as_array().size() == 2 && merge.as_array()[0].is_string() &&
               merge.as_array()[1].is_string()) {
      status = add_merge(merge.as_array()[0].as_string(), merge.as_array()[1].as_string());
    } else {
      status = invalid_argument("expected two tokens");
    }
    if (!status.ok()) return field.item(i).error(error_message(status));
  }
  return ok_status();
}

StatusOr<BpeModel::Options> BpeModel::parse_options(const JsonField& model) {
  if (model.member("dropout").present()) {
    const Json& dropout = model.member("dropout").json();
    if (!dropout.is_number() || dropout.as_double() != 0) {
      return model.member("dropout").not_supported("random tokenization");
    }
  }
  Options options;
  ASSIGN_OR_RETURN(options.unk_token, model.member("unk_token").string_or(""));
  ASSIGN_OR_RETURN(options.continuing_subword_prefix, model.member("continuing_subword_prefix").string_or(""));
  ASSIGN_OR_RETURN(options.end_of_word_suffix, model.member("end_of_word_suffix").string_or(""));
  // They are written for every character of a text.
  constexpr size_t kMaxAffixBytes = 32;
  for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSIGN_OR_RETURN(const std::string affix, model.member(name).string_or(""));
    if (affix.size() > kMaxAffixBytes) return model.member(name).error("longer than 32 bytes");
  }
  ASSIGN_OR_RETURN(options.fuse_unk, model.member("fuse_unk").bool_or(false));
  ASSIGN_OR_RETURN(options.byte_fallback, model.member("byte_fallback").bool_or(false));
  ASSIGN_OR_RETURN(options.ignore_merges, model.member("ignore_merges").bool_or(false));
  return options;
}

StatusOr<std::unique_ptr<BpeModel>> BpeModel::parse(const JsonField& model) {
  RETURN_IF_ERROR(model.expect_object());
  ASSIGN_OR_RETURN(Options options, parse_options(model));
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::parse(model.member("vocab")));
  std::unique_ptr<BpeModel> bpe(new BpeModel(std::move(vocabulary), std::move(options)));
  RETURN_IF_ERROR(bpe->add_merges(model.member("merges")));
  return bpe;
}

StatusOr<std::unique_ptr<BpeModel>> BpeModel::parse_files(std::string_view vocab_json, std::string_view merges_txt) {
  ASSIGN_OR_RETURN(const Json vocab, parse_json_file(kVocabFile, vocab_json));
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::parse(JsonField(kVocabFile, vocab)));
  return parse_merges(std::move(vocabulary), Options(), merges_txt);
}

StatusOr<std::unique_ptr<BpeModel>> BpeModel::parse_merges(Vocabulary vocabulary, Options options,
                                                           std::string_view merges_txt) {
  std::unique_ptr<BpeModel> bpe(new BpeModel(std::move(vocabulary), std::move(options)));
  for (int64_t number = 1; !merges_txt.empty(); ++number) {
    const size_t end = std::min(merges_txt.find('\n'), merges_txt.size());
    std::string_view line = merges_txt.substr(0, end);
    merges_txt.remove_prefix(std::min(end + 1, merges_txt.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const Status status = add_text_merge(*bpe, line);
    if (!status.ok()) return invalid_argument(kMergesFile, ": line ", number, ": ", error_message(status));
  }
  return bpe;
}

}  // namespace transept
