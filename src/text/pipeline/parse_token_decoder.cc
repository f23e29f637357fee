#include "text/pipeline/parse_token_decoder.h"

#include <utility>

#include "text/pipeline/decoder_chain.h"
#include "text/subword/byte_level.h"

namespace transept {
namespace {

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void append_bytes(const EarlierTokens& /*earlier*/, std::string_view token, std::string& out) const override {
    append_token_bytes(token, out);
  }
};

class SpacesBetweenDecoder final : public TokenDecoder {
 public:
  void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const override {
    if (!earlier.none()) out.push_back(' ');
    out += token;
  }
};

// A suffix that ends a word is a space, if another word follows.
class BpeDecoder final : public TokenDecoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const override {
    if (earlier.last().ends_with(suffix_)) out.push_back(' ');
    if (token.ends_with(suffix_)) token.remove_suffix(suffix_.size());
    for (size_t at = token.find(suffix_); at != std::string_view::npos; at = token.find(suffix_)) {
      out += token.substr(0, at);
      out.push_back(' ');
      token.remove_prefix(at + suffix_.size());
    }
    out += token;
  }

 private:
  std::string suffix_;
};

}  // namespace

std::unique_ptr<TokenDecoder> make_byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }

StatusOr<std::unique_ptr<TokenDecoder>> parse_token_decoder(const JsonField& field) {
  if (!field.present()) return std::make_unique<SpacesBetweenDecoder>();
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type != "BPEDecoder") return parse_decoder_chain(field);
  ASSIGN_OR_RETURN(std::string suffix, field.member("suffix").string_or("</w>"));
  if (suffix.empty()) return field.member("suffix").error("is empty");
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

}  // namespace transept
