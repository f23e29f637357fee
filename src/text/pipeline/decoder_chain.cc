#include "text/pipeline/decoder_chain.h"

#include <optional>
#include <vector>

#include "text/pipeline/metaspace.h"
#include "text/pipeline/text_pattern.h"
#include "text/subword/byte_token.h"
#include "text/unicode/text_growth.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr size_t kMaxSteps = 64;

void replace_all(std::string& text, std::string_view wanted, std::string_view content) {
  size_t at = text.find(wanted);
  if (at == std::string::npos) return;
  std::string out;
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(wanted, copied)) {
    out.append(text, copied, at - copied);
    out += content;
    copied = at + wanted.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

// What one decoder does to one token. Tokens are short, so nothing is counted against a budget but regular expressions.
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void apply(std::string& token, bool is_first) const = 0;
};

class ReplaceDecoder final : public DecoderStep {
 public:
  ReplaceDecoder(std::unique_ptr<TextPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(std::string& token, bool /*is_first*/) const override {
    SearchBudget budget(token.size());
    const StatusOr<std::vector<TextRange>> matches = pattern_->find_all(token, budget);
    if (!matches.ok() || matches->empty()) return;
    std::string out;
    size_t copied = 0;
    for (const TextRange match : *matches) {
      out.append(token, copied, match.begin - copied);
      out += content_;
      copied = match.end;
      if (grew_too_much(token.size(), out.size())) return;  // no honest file's
    }
    out.append(token, copied);
    token = std::move(out);
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

// How many times `content` stands at the front, up to `limit`.
size_t count_at_front(std::string_view text, std::string_view content, size_t limit) {
  size_t count = 0;
  while (count < limit && text.substr(count * content.size()).starts_with(content)) ++count;
  return count;
}

struct Strip {
  std::string content;  // one character
  size_t start = 0, stop = 0;
};

class StripDecoder final : public DecoderStep {
 public:
  explicit StripDecoder(Strip strip) : strip_(std::move(strip)) {}

  void apply(std::string& token, bool /*is_first*/) const override {
    token.erase(0, strip_.content.size() * count_at_front(token, strip_.content, strip_.start));
    for (size_t i = 0; i < strip_.stop && token.ends_with(strip_.content); ++i) {
      token.resize(token.size() - strip_.content.size());
    }
  }

 private:
  Strip strip_;
};

class MetaspaceDecoder final : public DecoderStep {
 public:
  explicit MetaspaceDecoder(const Metaspace& metaspace)
      : mark_(metaspace.replacement), drops_first_(metaspace.scheme != Metaspace::Scheme::kNever) {}

  void apply(std::string& token, bool is_first) const override {
    replace_all(token, mark_, is_first && drops_first_ ? "" : " ");
  }

 private:
  std::string mark_;
  bool drops_first_;
};

class WordPieceDecoder final : public DecoderStep {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void apply(std::string& token, bool is_first) const override {
    if (!is_first) {
      if (token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    if (!cleanup_) return;
    constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [wanted, content] : kCleanups) replace_all(token, wanted, content);
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

StatusOr<std::unique_ptr<DecoderStep>> parse_step(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "Metaspace") {
    ASSIGN_OR_RETURN(const Metaspace metaspace, Metaspace::parse(field));
    return std::make_unique<MetaspaceDecoder>(metaspace);
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(std::unique_ptr<TextPattern> pattern, TextPattern::parse(field.member("pattern")));
    ASSIGN_OR_RETURN(std::string content, field.member("content").as_string());
    return std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content));
  }
  if (type == "WordPiece") {
    ASSIGN_OR_RETURN(std::string prefix, field.member("prefix").string_or("##"));
    ASSIGN_OR_RETURN(const bool cleanup, field.member("cleanup").bool_or(true));
    return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
  }
  return field.member("type").not_supported(type);
}

class DecoderChain final : public TokenDecoder {
 public:
  Status append(const JsonField& field);

  void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const override {
    std::string text = decode(token, earlier.none());
    if (fused_strip_.has_value()) {
      const size_t left = num_left_to_strip(earlier);
      text.erase(0, fused_strip_->content.size() * count_at_front(text, fused_strip_->content, left));
    }
    out += text;
  }

  bool replaces_each_byte() const override { return byte_fallback_at_.has_value(); }

 private:
  // Bytes do not go through the steps behind ByteFallback, where whole characters of several tokens would.
  std::string decode(std::string_view token, bool is_first) const {
    std::string text(token);
    for (size_t i = 0; i <= steps_.size(); ++i) {
      if (i == byte_fallback_at_) {
        if (const std::optional<uint8_t> byte = parse_byte_token(text)) return std::string(1, static_cast<char>(*byte));
      }
      if (i < steps_.size()) steps_[i]->apply(text, is_first);
    }
    return text;
  }

  // How many characters at the front of the whole text the earlier tokens have left to be stripped.
  size_t num_left_to_strip(const EarlierTokens& earlier) const {
    size_t left = fused_strip_->start;
    bool is_first = true;
    for (const int32_t id : earlier.ids) {
      if (left == 0) break;
      const std::string_view token = earlier.spelling(id);
      if (token.empty()) continue;
      const std::string text = decode(token, is_first);
      is_first = false;
      const size_t count = count_at_front(text, fused_strip_->content, left);
      if (count * fused_strip_->content.size() < text.size()) return 0;
      left -= count;
    }
    return left;
  }

  Status append_strip(const JsonField& field);

  std::vector<std::unique_ptr<DecoderStep>> steps_;
  std::optional<size_t> byte_fallback_at_;  // before this step
  bool fused_ = false;
  std::optional<Strip> fused_strip_;
};

StatusOr<size_t> parse_count(const JsonField& field) {
  constexpr int64_t kMaxCount = 1024;
  if (!field.present() || !field.json().is_int() || field.json().as_int() < 0 || field.json().as_int() > kMaxCount) {
    return field.error(str_cat("expected a number from 0 to ", kMaxCount));
  }
  return static_cast<size_t>(field.json().as_int());
}

Status DecoderChain::append_strip(const JsonField& field) {
  Strip strip;
  ASSIGN_OR_RETURN(strip.content, field.member("content").as_string());
  size_t end = 0;
  if (!strip.content.empty()) next_code_point(strip.content, end);
  if (end == 0 || end != strip.content.size()) return field.member("content").error("expected one character");
  ASSIGN_OR_RETURN(strip.start, parse_count(field.member("start")));
  ASSIGN_OR_RETURN(strip.stop, parse_count(field.member("stop")));
  if (!fused_) {
    steps_.push_back(std::make_unique<StripDecoder>(std::move(strip)));
    return ok_status();
  }
  if (strip.stop > 0) return field.member("stop").not_supported("stripping the end of a text");
  if (fused_strip_.has_value()) return field.not_supported("stripping a text twice");
  fused_strip_ = std::move(strip);
  return ok_status();
}

Status DecoderChain::append(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_object());
  const StatusOr<std::string> type = field.member("type").as_string();
  if (!type.ok()) return type.status();
  if (*type == "Sequence") {
    const JsonField list = field.member("decoders");
    RETURN_IF_ERROR(list.expect_list());
    for (size_t i = 0; i < list.json().as_array().size(); ++i) RETURN_IF_ERROR(append(list.item(i)));
    return ok_status();
  }
  if (steps_.size() >= kMaxSteps) return field.error("more than 64 steps");
  if (*type == "Strip") return append_strip(field);
  if (*type == "Fuse") {
    fused_ = true;
    return ok_status();
  }
  if (fused_) return field.member("type").not_supported(str_cat(*type, " behind Fuse"));
  if (*type == "ByteFallback") {
    if (!byte_fallback_at_.has_value()) byte_fallback_at_ = steps_.size();
    return ok_status();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DecoderStep> step, parse_step(field));
  steps_.push_back(std::move(step));
  return ok_status();
}

}  // namespace

StatusOr<std::unique_ptr<TokenDecoder>> parse_decoder_chain(const JsonField& field) {
  auto chain = std::make_unique<DecoderChain>();
  RETURN_IF_ERROR(chain->append(field));
  return chain;
}

}  // namespace transept
