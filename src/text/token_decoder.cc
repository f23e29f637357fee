#include "text/token_decoder.h"

#include "text/byte_level.h"

namespace transept {
namespace {

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void append_bytes(std::string_view token, bool /*is_first*/, std::string& out) const override {
    append_token_bytes(token, out);
  }
};

}  // namespace

std::unique_ptr<TokenDecoder> TokenDecoder::byte_level() { return std::make_unique<ByteLevelDecoder>(); }

StatusOr<std::unique_ptr<TokenDecoder>> TokenDecoder::parse(const JsonField& field) {
  if (!field.present()) return field.not_supported("a tokenizer without a decoder");
  RETURN_IF_ERROR(field.expect_object());
  ASSIGN_OR_RETURN(const std::string type, field.member("type").as_string());
  if (type == "ByteLevel") return byte_level();
  return field.member("type").not_supported(type);
}

}  // namespace transept
