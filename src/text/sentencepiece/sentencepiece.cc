#include "text/sentencepiece/sentencepiece.h"

#include "text/sentencepiece/sentencepiece_cutter.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/sentencepiece/sentencepiece_normalizer.h"
#include "text/subword/byte_token.h"

namespace transept {
namespace {

// Published files have less than a tenth of this.
constexpr size_t kMaxFileBytes = size_t{64} << 20;

class ParsedModel final : public SentencePieceModel {
 public:
  ParsedModel(SentencePiecePieces pieces, SentencePieceNormalizer normalizer, SentencePieceFile::ModelType type)
      : pieces_(std::move(pieces)),
        normalizer_(std::move(normalizer)),
        cutter_(type == SentencePieceFile::ModelType::kBpe ? make_bpe_cutter(pieces_) : make_unigram_cutter(pieces_)) {}

  int32_t num_pieces() const override { return pieces_.size(); }
  std::string_view piece(int32_t id) const override {
    return pieces_.contains(id) ? pieces_.text(id) : std::string_view();
  }
  PieceType type(int32_t id) const override { return pieces_.type(id); }
  float score(int32_t id) const override { return pieces_.score(id); }
  std::optional<int32_t> find(std::string_view piece) const override { return pieces_.find(piece); }
  int32_t unk_id() const override { return pieces_.unk_id(); }

  Status append_pieces(std::string_view text, std::vector<Piece>& pieces) const override {
    return encode(text, [&](std::string_view piece, int32_t id, bool continues) {
      if (continues) {
        pieces.back().text += piece;
      } else {
        pieces.push_back({std::string(piece), id});
      }
    });
  }

  Status append_ids(std::string_view text, std::vector<int32_t>& ids) const override {
    return encode(text, [&](std::string_view, int32_t id, bool continues) {
      if (!continues) ids.push_back(id);
    });
  }

 private:
  // Calls emit(piece, id, whether it is more of the unknown piece before).
  template <typename Emit>
  Status encode(std::string_view text, Emit emit) const {
    ASSIGN_OR_RETURN(const std::string normalized, normalizer_.apply(text));
    std::vector<SentencePieceCutter::Cut> cuts;
    RETURN_IF_ERROR(cutter_->cut(normalized, cuts));
    bool behind_unknown = false;
    for (const SentencePieceCutter::Cut& cut : cuts) {
      const std::string_view piece = cut.range.of(normalized);
      const bool is_unknown = cut.id == pieces_.unk_id();
      if (is_unknown && pieces_.byte_fallback()) {
        for (const char c : piece) {
          const auto byte = static_cast<uint8_t>(c);
          emit(pieces_.text(pieces_.byte_id(byte)), pieces_.byte_id(byte), false);
        }
      } else {
        emit(piece, cut.id, is_unknown && behind_unknown);
      }
      behind_unknown = is_unknown;
    }
    return ok_status();
  }

  SentencePiecePieces pieces_;
  SentencePieceNormalizer normalizer_;
  std::unique_ptr<SentencePieceCutter> cutter_;  // borrows pieces_
};

Status check_model_type(SentencePieceFile::ModelType type) {
  using ModelType = SentencePieceFile::ModelType;
  if (type == ModelType::kWord) return unimplemented("trainer_spec: model_type: WORD is not supported");
  if (type == ModelType::kChar) return unimplemented("trainer_spec: model_type: CHAR is not supported");
  return ok_status();
}

StatusOr<std::unique_ptr<SentencePieceModel>> make_model(const SentencePieceFile& file) {
  RETURN_IF_ERROR(check_model_type(file.model_type));
  ASSIGN_OR_RETURN(SentencePiecePieces pieces, SentencePiecePieces::create(file));
  ASSIGN_OR_RETURN(SentencePieceNormalizer normalizer,
                   SentencePieceNormalizer::create(file, user_defined_pieces(pieces)));
  return std::make_unique<ParsedModel>(std::move(pieces), std::move(normalizer), file.model_type);
}

}  // namespace

StatusOr<std::unique_ptr<SentencePieceModel>> SentencePieceModel::parse(std::string_view file, std::string_view bytes) {
  if (bytes.size() > kMaxFileBytes) {
    return invalid_argument(file, ": ", bytes.size(), " bytes are more than the ", kMaxFileBytes, " allowed");
  }
  ASSIGN_OR_RETURN(const SentencePieceFile parsed, SentencePieceFile::parse(file, bytes));
  StatusOr<std::unique_ptr<SentencePieceModel>> model = make_model(parsed);
  if (!model.ok()) return with_prefix(model.status(), file);
  return model;
}

}  // namespace transept
