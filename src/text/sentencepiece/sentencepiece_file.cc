#include "text/sentencepiece/sentencepiece_file.h"

#include <bit>

#include "text/json_field.h"

namespace transept {
namespace {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupBegin = 3, kGroupEnd = 4, kFixed32 = 5 };

// One field: its number and value. Only the member of its wire type is set.
struct Field {
  uint32_t number = 0;
  WireType wire_type = WireType::kVarint;
  uint64_t number_value = 0;  // kVarint, kFixed32
  std::string_view bytes = {};
};

// Walks the fields of one message.
class MessageReader final {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  StatusOr<Field> next() {
    ASSIGN_OR_RETURN(const uint64_t key, read_varint());
    Field field;
    if (key >> 3 == 0 || key >> 3 >= uint64_t{1} << 29) return invalid_argument("no field has the number ", key >> 3);
    field.number = static_cast<uint32_t>(key >> 3);
    field.wire_type = static_cast<WireType>(key & 7);
    switch (field.wire_type) {
      case WireType::kVarint: {
        ASSIGN_OR_RETURN(field.number_value, read_varint());
        return field;
      }
      case WireType::kFixed64: RETURN_IF_ERROR(take(8).status()); return field;
      case WireType::kFixed32: {
        ASSIGN_OR_RETURN(const std::string_view bytes, take(4));
        for (size_t i = 0; i < 4; ++i) {
          field.number_value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
        }
        return field;
      }
      case WireType::kBytes: {
        ASSIGN_OR_RETURN(const uint64_t length, read_varint());
        ASSIGN_OR_RETURN(field.bytes, take(length));
        return field;
      }
      case WireType::kGroupBegin:
      case WireType::kGroupEnd: break;
    }
    return invalid_argument("field ", field.number, " has the wire type ", key & 7, ", which is not in use");
  }

 private:
  StatusOr<uint64_t> read_varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < 10; ++i) {
      if (i >= rest_.size()) return invalid_argument("ends inside a number");
      const auto byte = static_cast<uint8_t>(rest_[i]);
      value |= uint64_t{byte & 0x7Fu} << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        return value;
      }
    }
    return invalid_argument("a number has more than ten bytes");
  }

  StatusOr<std::string_view> take(uint64_t length) {
    if (length > rest_.size()) {
      return invalid_argument("a field of ", length, " bytes begins where ", rest_.size(), " are left");
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view rest_;
};

// Calls read(field) for each field of the message; errors get the message's name.
template <typename Read>
Status read_message(std::string_view name, std::string_view bytes, Read read) {
  MessageReader reader(bytes);
  while (!reader.done()) {
    const StatusOr<Field> field = reader.next();
    const Status status = field.ok() ? read(*field) : field.status();
    if (!status.ok()) return name.empty() ? status : with_prefix(status, name);
  }
  return ok_status();
}

Status expect(const Field& field, std::string_view name, WireType wire_type) {
  if (field.wire_type == wire_type) return ok_status();
  return invalid_argument(name, ": has the wire type ", static_cast<int>(field.wire_type), " instead of ",
                          static_cast<int>(wire_type));
}

Status read_bool(const Field& field, std::string_view name, bool& out) {
  RETURN_IF_ERROR(expect(field, name, WireType::kVarint));
  out = field.number_value != 0;
  return ok_status();
}

Status read_bytes(const Field& field, std::string_view name, std::string_view& out) {
  RETURN_IF_ERROR(expect(field, name, WireType::kBytes));
  out = field.bytes;
  return ok_status();
}

Status read_enum(const Field& field, std::string_view name, uint64_t last, uint64_t& out) {
  RETURN_IF_ERROR(expect(field, name, WireType::kVarint));
  if (field.number_value < 1 || field.number_value > last) {
    return invalid_argument(name, ": ", field.number_value, " is not from 1 to ", last);
  }
  out = field.number_value;
  return ok_status();
}

Status read_piece_type(const Field& field, SentencePieceType& type) {
  uint64_t number = 0;
  RETURN_IF_ERROR(read_enum(field, "type", 6, number));
  type = static_cast<SentencePieceType>(number);
  return ok_status();
}

Status read_piece(std::string_view bytes, SentencePieceFile::Piece& piece) {
  return read_message("", bytes, [&](const Field& field) -> Status {
    switch (field.number) {
      case 1: return read_bytes(field, "piece", piece.text);
      case 2:
        RETURN_IF_ERROR(expect(field, "score", WireType::kFixed32));
        piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.number_value));
        return ok_status();
      case 3: return read_piece_type(field, piece.type);
      default: return ok_status();
    }
  });
}

Status read_model_type(const Field& field, SentencePieceFile::ModelType& type) {
  uint64_t number = 0;
  RETURN_IF_ERROR(read_enum(field, "model_type", 4, number));
  type = static_cast<SentencePieceFile::ModelType>(number);
  return ok_status();
}

Status read_trainer_spec(std::string_view bytes, SentencePieceFile& file) {
  return read_message("trainer_spec", bytes, [&](const Field& field) -> Status {
    switch (field.number) {
      case 3: return read_model_type(field, file.model_type);
      case 24: return read_bool(field, "treat_whitespace_as_suffix", file.treat_whitespace_as_suffix);
      case 35: return read_bool(field, "byte_fallback", file.byte_fallback);
      default: return ok_status();
    }
  });
}

Status read_normalizer_spec(std::string_view bytes, SentencePieceFile& file) {
  return read_message("normalizer_spec", bytes, [&](const Field& field) -> Status {
    switch (field.number) {
      case 2: return read_bytes(field, "precompiled_charsmap", file.precompiled_charsmap);
      case 3: return read_bool(field, "add_dummy_prefix", file.add_dummy_prefix);
      case 4: return read_bool(field, "remove_extra_whitespaces", file.remove_extra_whitespaces);
      case 5: return read_bool(field, "escape_whitespaces", file.escape_whitespaces);
      default: return ok_status();
    }
  });
}

Status read_next_piece(const Field& field, SentencePieceFile& file) {
  std::string_view message;
  RETURN_IF_ERROR(read_bytes(field, "pieces", message));
  if (file.pieces.size() >= static_cast<size_t>(kMaxVocabSize)) {
    return invalid_argument("more than ", kMaxVocabSize, " pieces");
  }
  const Status status = read_piece(message, file.pieces.emplace_back());
  return status.ok() ? status : with_prefix(status, str_cat("pieces[", file.pieces.size() - 1, "]"));
}

Status read_model(std::string_view bytes, SentencePieceFile& file) {
  return read_message("", bytes, [&](const Field& field) -> Status {
    std::string_view message;
    switch (field.number) {
      case 1: return read_next_piece(field, file);
      case 2: RETURN_IF_ERROR(read_bytes(field, "trainer_spec", message)); return read_trainer_spec(message, file);
      case 3:
        RETURN_IF_ERROR(read_bytes(field, "normalizer_spec", message));
        return read_normalizer_spec(message, file);
      default: return ok_status();
    }
  });
}

}  // namespace

StatusOr<SentencePieceFile> SentencePieceFile::parse(std::string_view file, std::string_view bytes) {
  SentencePieceFile parsed;
  const Status status = read_model(bytes, parsed);
  if (!status.ok()) return with_prefix(status, file);
  return parsed;
}

}  // namespace transept
