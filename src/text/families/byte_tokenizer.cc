// ByT5's tokenizer: <pad>, </s>, <unk>, the 256 bytes, then sentinels. Source: tokenization_byt5.py of transformers.
#include <utility>

#include "base/utf8.h"
#include "text/families/family_assembly.h"
#include "text/families/tokenizer_loader.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr int32_t kFirstByte = 3, kNumBytes = 256;

class ByteModel final : public SubwordModel {
 public:
  explicit ByteModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  Status append_ids(const Words& words, std::vector<int32_t>& ids) const override {
    for (const TextRange range : words.ranges) {
      for (const char byte : range.of(words.text)) ids.push_back(kFirstByte + static_cast<uint8_t>(byte));
    }
    return ok_status();
  }

 private:
  Vocabulary vocabulary_;
};

// A byte is spelled as the character of its number.
class ByteDecoder final : public TokenDecoder {
 public:
  void append_bytes(const EarlierTokens& /*earlier*/, std::string_view token, std::string& out) const override {
    size_t length = 0;
    const uint32_t c = next_code_point(token, length);
    if (c < kNumBytes && length == token.size()) {
      out.push_back(static_cast<char>(c));
    } else {
      out += token;
    }
  }
};

Vocabulary byte_vocabulary(const TokenizerConfig& config) {
  std::vector<std::string> spellings(kNumBytes);
  std::vector<Vocabulary::Token> tokens = {
      {config.named("pad_token"), 0}, {config.named("eos_token"), 1}, {config.named("unk_token"), 2}};
  for (int32_t byte = 0; byte < kNumBytes; ++byte) {
    std::string& spelling = spellings[static_cast<size_t>(byte)];
    append_utf8(spelling, static_cast<uint32_t>(byte));
    tokens.push_back({spelling, kFirstByte + byte});
  }
  return Vocabulary::from_tokens(tokens);
}

}  // namespace

StatusOr<std::unique_ptr<Tokenizer>> make_byte_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints) {
  ASSIGN_OR_RETURN(TokenizerConfig config, TokenizerConfig::parse(files));
  for (const auto& [name, content] :
       {std::pair("pad_token", "<pad>"), std::pair("eos_token", "</s>"), std::pair("unk_token", "<unk>")}) {
    config.set_default(name, {.content = content, .lstrip = true, .rstrip = true, .special = true});
  }
  constexpr int32_t kSentinels = 125;
  ASSIGN_OR_RETURN(const int32_t count, num_sentinels(config, kSentinels));
  TokenLister lister(config);
  for (int32_t i = 0; i < count; ++i) lister.add(plain_special_token(sentinel(i)), kFirstByte + kNumBytes + i);
  PipelineTokenizer::Parts parts;
  parts.model = std::make_unique<ByteModel>(byte_vocabulary(config));
  parts.decoder = std::make_unique<ByteDecoder>();
  return assemble_family(TokenizerConfig::kFile, TokenizerKind::kByT5, config, {.prefix = {}, .suffix = {"eos_token"}},
                         hints, std::move(parts));
}

}  // namespace transept
