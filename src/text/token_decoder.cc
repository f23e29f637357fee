#include "text/token_decoder.h"

#include <algorithm>

#include "text/byte_level.h"

namespace transept {
namespace {

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void append_bytes(const EarlierTokens& /*earlier*/, std::string_view token, std::string& out) const override {
    append_token_bytes(token, out);
  }
};

}  // namespace

bool EarlierTokens::none() const {
  return std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return spelling(id).empty(); });
}

std::string_view EarlierTokens::last() const {
  for (size_t i = ids.size(); i > 0; --i) {
    if (const std::string_view token = spelling(ids[i - 1]); !token.empty()) return token;
  }
  return {};
}

std::unique_ptr<TokenDecoder> TokenDecoder::byte_level() { return std::make_unique<ByteLevelDecoder>(); }

StatusOr<std::unique_ptr<TokenDecoder>> TokenDecoder::parse(const JsonField& field) {
  if (!field.present()) return field.not_supported("a tokenizer without a decoder");
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "ByteLevel") return byte_level();
  return field.member("type").not_supported(type);
}

}  // namespace transept
