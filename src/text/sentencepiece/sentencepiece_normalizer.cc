#include "text/sentencepiece/sentencepiece_normalizer.h"

#include "base/utf8.h"
#include "text/unicode/text_growth.h"

namespace transept {

StatusOr<SentencePieceNormalizer> SentencePieceNormalizer::create(const SentencePieceFile& file, PieceTrie kept) {
  SentencePieceNormalizer normalizer;
  if (!file.precompiled_charsmap.empty()) {
    StatusOr<PrecompiledCharsmap> charsmap = PrecompiledCharsmap::parse(file.precompiled_charsmap);
    if (!charsmap.ok()) return with_prefix(charsmap.status(), "normalizer_spec: precompiled_charsmap");
    normalizer.charsmap_ = std::move(charsmap).value();
  }
  normalizer.kept_ = std::move(kept);
  normalizer.space_before_ = file.add_dummy_prefix && !file.treat_whitespace_as_suffix;
  normalizer.space_behind_ = file.add_dummy_prefix && file.treat_whitespace_as_suffix;
  normalizer.remove_extra_ = file.remove_extra_whitespaces;
  normalizer.escape_ = file.escape_whitespaces;
  return normalizer;
}

SentencePieceNormalizer::Step SentencePieceNormalizer::next(std::string_view text) const {
  if (!kept_.empty()) {
    size_t kept = 0;
    kept_.for_each_prefix(text, [&](size_t length, int32_t) { kept = length; });
    if (kept > 0) return {kept, text.substr(0, kept)};
  }
  if (const auto rule = charsmap_.longest(text)) return {rule->length, rule->replacement};
  if (static_cast<uint8_t>(text.front()) < 0x80) return {1, text.substr(0, 1)};
  const Utf8Step character = read_utf8(text);
  if (character.kind != Utf8Step::Kind::kValid) return {1, kReplacementUtf8};
  const auto length = static_cast<size_t>(character.num_bytes);
  return {length, text.substr(0, length)};
}

void SentencePieceNormalizer::append(std::string_view replacement, bool& behind_space, std::string& out) const {
  while (behind_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
  if (replacement.empty()) return;
  behind_space = remove_extra_ && replacement.ends_with(' ');
  if (!escape_) {
    out += replacement;
    return;
  }
  for (const char c : replacement) {
    if (c == ' ') {
      out += kSpaceSymbol;
    } else {
      out.push_back(c);
    }
  }
}

StatusOr<std::string> SentencePieceNormalizer::apply(std::string_view text) const {
  const size_t original_size = text.size();
  while (remove_extra_ && !text.empty()) {
    const Step step = next(text);
    if (step.replacement != " ") break;
    text.remove_prefix(step.length);
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 4 + kSpaceSymbol.size());
  if (space_before_) append_space(out);
  bool behind_space = remove_extra_;
  while (!text.empty()) {
    const Step step = next(text);
    append(step.replacement, behind_space, out);
    text.remove_prefix(step.length);
    if (grew_too_much(original_size, out.size())) return grew_too_much_error();
  }
  const std::string_view space = escape_ ? kSpaceSymbol : std::string_view(" ");
  while (remove_extra_ && out.ends_with(space)) out.resize(out.size() - space.size());
  if (space_behind_) append_space(out);
  return out;
}

}  // namespace transept
