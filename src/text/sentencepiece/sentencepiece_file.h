// The fields of a SentencePiece model file that encoding needs: a protocol buffer (proto2) of message ModelProto. A
// value that borrows the bytes.
// Source: sentencepiece_model.proto of google/sentencepiece; the wire format of protocol buffers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

enum class SentencePieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct SentencePieceFile {
  enum class ModelType : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

  struct Piece {
    std::string_view text;
    float score = 0;
    SentencePieceType type = SentencePieceType::kNormal;
  };

  std::vector<Piece> pieces;
  // trainer_spec
  ModelType model_type = ModelType::kUnigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  // normalizer_spec
  std::string_view precompiled_charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  // Skips unknown fields; of a repeated single field the last counts. Errors (kInvalidArgument) name `file`, the field
  // and the reason: a length past the end of its message, a number of more than ten bytes, another wire type than the
  // field's, a group (which the format has deprecated), an unknown enumerator, over kMaxVocabSize pieces.
  static StatusOr<SentencePieceFile> parse(std::string_view file, std::string_view bytes);
};

}  // namespace transept
