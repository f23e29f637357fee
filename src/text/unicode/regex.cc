#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/unicode/regex.h"

#include <pcre2.h>

#include "base/check.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr uint32_t kHeapLimitKib = 32 << 10;
// Backtracking steps of one attempt: it starts with few and is repeated with more, as long as there is time.
// (PCRE2 does not count the steps of simple loops: hence the budget.)
constexpr uint32_t kFirstMatchLimit = 128;
constexpr uint32_t kLastMatchLimit = uint32_t{1} << 24;

template <auto Free>
struct Freeing {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Freeing<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freeing<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freeing<pcre2_match_data_free>>;

Status too_long() { return resource_exhausted("the regular expression of this tokenizer takes too long on this text"); }

// One search through one text: tries each position in turn, so that every attempt has its own limit.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text, SearchBudget& budget)
      : code_(code),
        text_(text),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        budget_(&budget) {
    CHECK(data_ != nullptr && context_ != nullptr);
    pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
    pcre2_set_match_limit(context_.get(), kFirstMatchLimit);
  }

  // The match that begins at `position`, {position, npos} if there is none.
  StatusOr<TextRange> match_at(size_t position) {
    if (!budget_->spend_attempt()) return too_long();
    int result = attempt(position);
    if (result == PCRE2_ERROR_MATCHLIMIT) {
      for (uint32_t limit = 2 * kFirstMatchLimit; result == PCRE2_ERROR_MATCHLIMIT; limit *= 2) {
        if (limit > kLastMatchLimit || budget_->exhausted()) return too_long();
        pcre2_set_match_limit(context_.get(), limit);
        result = attempt(position);
      }
      pcre2_set_match_limit(context_.get(), kFirstMatchLimit);
    }
    if (result == PCRE2_ERROR_NOMATCH) return TextRange{position, std::string_view::npos};
    if (result < 0) return too_long();
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_.get());
    if (offsets[0] < position || offsets[1] < offsets[0] || offsets[1] > text_.size()) return too_long();  // by \K
    return TextRange{offsets[0], offsets[1]};
  }

 private:
  int attempt(size_t position) {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), position,
                       PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
  }

  const pcre2_code* code_;
  std::string_view text_;
  MatchData data_;
  MatchContext context_;
  SearchBudget* budget_;
};

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Freeing<pcre2_code_free>> compiled;
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

StatusOr<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) return invalid_argument("the regular expression is longer than 64 KiB");
  ASSIGN_OR_RETURN(const std::string translated, translate_oniguruma(pattern));
  const CompileContext context(pcre2_compile_context_create(nullptr));
  CHECK(context != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  // ^ and $ are the ends of lines in Ruby's syntax.
  auto code = std::make_unique<Code>();
  code->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                                     &error_offset, context.get()));
  if (code->compiled == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return invalid_argument("not a valid regular expression: ", std::string_view(reinterpret_cast<char*>(message)));
  }
  return Regex(std::move(code));
}

StatusOr<std::vector<TextRange>> Regex::find_all(std::string_view text, SearchBudget& budget) const {
  std::vector<TextRange> matches;
  Search search(code_->compiled.get(), text, budget);
  for (size_t position = 0; position <= text.size();) {
    ASSIGN_OR_RETURN(const TextRange match, search.match_at(position));
    const bool found = match.end != std::string_view::npos;
    const bool touches = !matches.empty() && matches.back().end == match.begin;
    if (found && (match.size() > 0 || !touches)) matches.push_back(match);
    if (found && match.end > position) {
      position = match.end;
    } else {
      if (position == text.size()) break;
      next_code_point(text, position);
    }
  }
  return matches;
}

}  // namespace transept
