// Donut's answers: a tree of fields in the order of reading. Source: transformers, models/donut/processing_donut.py;
// "OCR-free Document Understanding Transformer", section 3.3.
#include <algorithm>

#include "base/strings.h"
#include "multimodal/image_processor_config.h"
#include "multimodal/structured_answers.h"

namespace transept {
namespace {

constexpr std::string_view kOpen = "<s_", kClose = "</s_", kSeparator = "<sep/>";
constexpr int kMaxDepth = 100;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Where `part` stands first from `begin` on, whatever the case of ASCII letters; npos: nowhere. REQUIRES: begin <=
// text.size(), and `part` is not empty.
size_t find_ignoring_case(std::string_view text, std::string_view part, size_t begin = 0) {
  const auto found = std::search(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), part.begin(),
                                 part.end(), [](char a, char b) { return lower(a) == lower(b); });
  return found == text.end() ? std::string_view::npos : static_cast<size_t>(found - text.begin());
}

void remove_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

// The first "<..>" on one line.
void remove_first_token(std::string& text) {
  for (size_t begin = text.find('<'); begin != std::string::npos; begin = text.find('<', begin + 1)) {
    const size_t end = text.find_first_of(">\n", begin);
    if (end == std::string::npos || text[end] != '>') continue;
    text.erase(begin, end + 1 - begin);
    return;
  }
}

std::vector<std::string_view> split_leaves(std::string_view text) {
  std::vector<std::string_view> leaves;
  while (true) {
    const size_t end = text.find(kSeparator);
    leaves.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return leaves;
    text.remove_prefix(end + kSeparator.size());
  }
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class FieldReader final {
 public:
  explicit FieldReader(const std::function<bool(std::string_view)>& is_token) : is_token_(is_token) {}

  // An object, or a list of such where kSeparator stands between; `is_inner`: always a list.
  Json read(std::string text, bool is_inner, int depth) const {
    Json::Array before;
    while (true) {
      Json fields = Json::object();
      const bool goes_on = read_group(text, fields, depth);
      if (goes_on) {
        before.push_back(std::move(fields));
        is_inner = true;
        continue;
      }
      if (!fields.as_object().empty()) {
        if (!is_inner) return fields;
        before.push_back(std::move(fields));
      } else if (!is_inner) {
        fields.set("text_sequence", text);
        return fields;
      }
      return Json(std::move(before));
    }
  }

 private:
  // Moves fields out of the text's begin until there is none, or until a separator (which goes, too): true.
  bool read_group(std::string& text, Json& fields, int depth) const {
    while (!text.empty()) {
      const size_t begin = find_ignoring_case(text, kOpen);
      if (begin == std::string::npos) return false;
      const size_t close = text.find('>', begin);
      if (close == std::string::npos) return false;
      const std::string open = text.substr(begin, close + 1 - begin);
      const std::string name = open.substr(kOpen.size(), open.size() - kOpen.size() - 1);
      const size_t end = find_ignoring_case(text, str_cat(kClose, name, ">"));
      if (end == std::string::npos) {
        remove_all(text, open);
        continue;
      }
      const std::string end_token = text.substr(end, kClose.size() + name.size() + 1);
      read_value(text, open, end_token, name, fields, depth);
      text = std::string(trim(std::string_view(text).substr(text.find(end_token) + end_token.size())));
      if (text.starts_with(kSeparator)) {
        text.erase(0, kSeparator.size());
        return true;
      }
    }
    return false;
  }

  void read_value(std::string_view text, std::string_view open, std::string_view end_token, const std::string& name,
                  Json& fields, int depth) const {
    // The first pair of both: an end that stands before is not this one's.
    const size_t begin = find_ignoring_case(text, open) + open.size();
    const size_t end = find_ignoring_case(text, end_token, begin);
    if (end == std::string_view::npos) return;
    const std::string_view content = trim(text.substr(begin, end - begin));
    if (has(content, kOpen) && has(content, kClose) && depth < kMaxDepth) {
      Json value = read(std::string(content), true, depth + 1);
      if (value.as_array().empty()) return;
      fields.set(name, value.as_array().size() == 1 ? Json(value.as_array().front()) : std::move(value));
      return;
    }
    Json::Array leaves;
    for (const std::string_view leaf : split_leaves(content)) {
      const bool is_word = leaf.starts_with('<') && leaf.ends_with("/>") && is_token_(leaf);
      leaves.emplace_back(is_word ? leaf.substr(1, leaf.size() - 3) : leaf);
    }
    fields.set(name, leaves.size() == 1 ? std::move(leaves.front()) : Json(std::move(leaves)));
  }

  const std::function<bool(std::string_view)>& is_token_;
};

// The decoder's whole sequence without its first token in brackets, which names the task.
class DonutAnswers final : public StructuredAnswers {
 public:
  explicit DonutAnswers(std::vector<int32_t> dropped) : dropped_(std::move(dropped)) {}

  Json parse(const RequestOutput& request, const CompletionOutput& answer, const Tokenizer& tokenizer) const override {
    std::vector<int32_t> ids = request.prompt_token_ids;
    ids.insert(ids.end(), answer.token_ids.begin(), answer.token_ids.end());
    std::erase_if(ids, [&](int32_t id) { return std::ranges::find(dropped_, id) != dropped_.end(); });
    std::string text = tokenizer.decode(ids, false);
    remove_first_token(text);
    const auto is_token = [&](std::string_view word) { return tokenizer.string_to_token(word).has_value(); };
    return donut_fields(trim(text), is_token);
  }

 private:
  std::vector<int32_t> dropped_;  // end and padding
};

}  // namespace

Json donut_fields(std::string_view text, const std::function<bool(std::string_view)>& is_token) {
  return FieldReader(is_token).read(std::string(text), false, 0);
}

void add_structured(const StructuredAnswers& structured, const Tokenizer& tokenizer, RequestOutput& request) {
  for (CompletionOutput& answer : request.outputs) answer.structured = structured.parse(request, answer, tokenizer);
}

StatusOr<std::unique_ptr<StructuredAnswers>> make_composite_answers(const ModelConfig& config) {
  ASSIGN_OR_RETURN(const ImageProcessorConfig processor, ImageProcessorConfig::load(config.path));
  ASSIGN_OR_RETURN(const std::string name, processor.class_name());
  if (name != "Donut") return std::unique_ptr<StructuredAnswers>();
  std::vector<int32_t> dropped = config.eos_token_ids;
  if (config.pad_token_id.has_value()) dropped.push_back(*config.pad_token_id);
  return std::unique_ptr<StructuredAnswers>(new DonutAnswers(std::move(dropped)));
}

}  // namespace transept
