// A text and a SentencePiece model from the fuzzer: two bytes with the text's length, the text, the file. Whatever they
// hold, parsing answers with a status and cutting ends; the pieces and the ids are the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "text/sentencepiece/sentencepiece.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const transept::SentencePieceModel& model, std::string_view text) {
  std::vector<transept::SentencePieceModel::Piece> pieces;
  std::vector<int32_t> ids;
  const bool good = model.append_pieces(text, pieces).ok();
  require(good == model.append_ids(text, ids).ok());
  if (!good) return;
  require(pieces.size() == ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] == pieces[i].id && ids[i] >= 0 && ids[i] < model.num_pieces());
    require(transept::is_valid_utf8(pieces[i].text));
    require(ids[i] == model.unk_id() || pieces[i].text == model.piece(ids[i]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t length = std::min<size_t>(data[0] | size_t{data[1]} << 8, input.size());
  const auto model = transept::SentencePieceModel::parse("fuzz.model", input.substr(length));
  if (model.ok()) use(**model, input.substr(0, length));
  return 0;
}
