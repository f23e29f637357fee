// SentencePiece models against the sentencepiece library's answers (testdata/models.jsonl, made by
// tools/make_tokenizer_fixtures.py), and files that are damaged.
#include "text/sentencepiece/sentencepiece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/base64.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/subword/byte_token.h"
#include "text/text_testing.h"

namespace transept {
namespace {

using PieceType = SentencePieceModel::PieceType;

// Writes protocol buffers.
std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out.push_back(static_cast<char>((value & 127) | 128));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string bytes_field(uint32_t number, std::string_view bytes) {
  return str_cat(varint(number << 3 | 2), varint(bytes.size()), bytes);
}
std::string int_field(uint32_t number, uint64_t value) { return varint(number << 3) + varint(value); }
std::string float_field(uint32_t number, float value) {
  std::string out = varint(number << 3 | 5);
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(std::bit_cast<uint32_t>(value) >> (8 * i)));
  return out;
}
std::string piece(std::string_view text, float score, PieceType type = PieceType::kNormal) {
  return bytes_field(1,
                     str_cat(bytes_field(1, text), float_field(2, score), int_field(3, static_cast<uint64_t>(type))));
}
const std::string kUnk = piece("<unk>", 0, PieceType::kUnknown);

struct Fixture {
  std::string name, bytes;
  Json::Array encode, long_text;
};

std::vector<Fixture> read_models() {
  std::vector<Fixture> models;
  for (const Json& line : read_fixtures("models.jsonl")) {
    models.push_back({member(line, "name").as_string(), decode_base64(member(line, "model").as_string()).value_or(""),
                      member(line, "encode").as_array(), member(line, "long").as_array()});
  }
  EXPECT_GT(models.size(), 10u);
  return models;
}

std::unique_ptr<SentencePieceModel> parse(std::string_view bytes) {
  auto model = SentencePieceModel::parse("a.model", bytes);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::move(model).value() : nullptr;
}

std::string parse_error(std::string_view bytes) {
  return error_message(SentencePieceModel::parse("a.model", bytes).status());
}

TEST(SentencePieceTest, GivesTheLibrarysPieces) {
  for (const Fixture& fixture : read_models()) {
    SCOPED_TRACE(fixture.name);
    const auto model = parse(fixture.bytes);
    ASSERT_NE(model, nullptr);
    for (const Json& answer : fixture.encode) {
      const std::string& text = answer.as_array()[0].as_string();
      std::vector<SentencePieceModel::Piece> pieces;
      ASSERT_TRUE(model->append_pieces(text, pieces).ok());
      std::vector<std::string> texts, wanted;
      std::vector<int32_t> ids;
      for (const SentencePieceModel::Piece& found : pieces) {
        texts.push_back(found.text);
        ids.push_back(found.id);
      }
      for (const Json& want : answer.as_array()[1].as_array()) wanted.push_back(want.as_string());
      EXPECT_EQ(texts, wanted) << text;
      EXPECT_EQ(ids, ids_of(answer.as_array()[2])) << text;
      std::vector<int32_t> ids_alone = {-7};
      ASSERT_TRUE(model->append_ids(text, ids_alone).ok());
      EXPECT_EQ(std::vector<int32_t>(ids_alone.begin() + 1, ids_alone.end()), ids);
    }
  }
}

// long_text() of tools/sentencepiece_cases.py.
std::string long_text(size_t length) {
  std::string text;
  for (uint32_t state = 1; text.size() < length;) {
    state = (state * 1103515245u + 12345u) & 0x7FFFFFFF;
    text.push_back("abcdefghijklmnopqrstuvwxyz "[(state >> 16) % 27]);
  }
  return text;
}

// A unigram path's score of some hundred thousand leaves a float little room for a piece's: which of two cuts that are
// almost equally good is taken, hangs on where the library counts from zero again.
TEST(SentencePieceTest, GivesTheLibrarysIdsOfALongLine) {
  for (const Fixture& fixture : read_models()) {
    SCOPED_TRACE(fixture.name);
    const auto model = parse(fixture.bytes);
    ASSERT_NE(model, nullptr);
    std::vector<int32_t> ids;
    ASSERT_TRUE(model->append_ids(long_text(static_cast<size_t>(fixture.long_text.at(0).as_int())), ids).ok());
    uint64_t hash = 0xCBF29CE484222325u;
    for (const int32_t id : ids) hash = (hash ^ static_cast<uint64_t>(id)) * 0x100000001B3u;
    EXPECT_EQ(static_cast<int64_t>(ids.size()), fixture.long_text.at(1).as_int());
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
    EXPECT_EQ(text, fixture.long_text.at(2).as_string());
  }
}

TEST(SentencePieceTest, TellsItsPieces) {
  const auto model = parse(str_cat(kUnk, piece("<s>", 0, PieceType::kControl), piece("▁a", -1.5f)));
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->num_pieces(), 3);
  EXPECT_EQ(model->piece(2), "▁a");
  EXPECT_EQ(model->piece(3), "");
  EXPECT_EQ(model->piece(-1), "");
  EXPECT_EQ(model->type(1), PieceType::kControl);
  EXPECT_EQ(model->score(2), -1.5f);
  EXPECT_EQ(model->find("<s>"), 1);
  EXPECT_EQ(model->find("a"), std::nullopt);
  EXPECT_EQ(model->unk_id(), 0);
}

TEST(SentencePieceTest, EveryInvalidByteIsAReplacement) {
  const auto model = parse(str_cat(kUnk, piece("\uFFFD", -1), piece("▁", -1), piece("a", -1)));
  ASSERT_NE(model, nullptr);
  std::vector<int32_t> ids;
  ASSERT_TRUE(model->append_ids("a\xE2\x96z\xFF", ids).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 3, 1, 1, 0, 1}));
}

// The defaults of the format: a unigram model that puts a space before and removes those that are too many.
TEST(SentencePieceFileTest, FieldsThatAreNotThereHaveTheFormatsDefaults) {
  const std::string one_piece = bytes_field(1, bytes_field(1, "x"));
  const auto file = SentencePieceFile::parse("a.model", one_piece);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->model_type, SentencePieceFile::ModelType::kUnigram);
  EXPECT_FALSE(file->byte_fallback);
  EXPECT_FALSE(file->treat_whitespace_as_suffix);
  EXPECT_TRUE(file->add_dummy_prefix);
  EXPECT_TRUE(file->remove_extra_whitespaces);
  EXPECT_TRUE(file->escape_whitespaces);
  EXPECT_EQ(file->precompiled_charsmap, "");
  ASSERT_EQ(file->pieces.size(), 1u);
  EXPECT_EQ(file->pieces[0].type, PieceType::kNormal);
  EXPECT_EQ(file->pieces[0].score, 0);
}

TEST(SentencePieceFileTest, ReadsWhatItNeedsAndSkipsTheRest) {
  const std::string trainer =
      str_cat(bytes_field(1, "input"), int_field(3, 2), int_field(24, 1), int_field(35, 1), float_field(10, 0.5f),
              int_field(40, UINT64_MAX), varint(99 << 3 | 1), "12345678");
  const std::string normalizer = str_cat(bytes_field(1, "name"), bytes_field(2, "map"), int_field(3, 0),
                                         int_field(4, 0), int_field(5, 0), bytes_field(6, ""));
  const std::string bytes =
      str_cat(bytes_field(3, normalizer), bytes_field(4, "self test"), piece("x", -2, PieceType::kByte),
              bytes_field(2, trainer), bytes_field(5, ""), int_field(200, 1));
  const auto file = SentencePieceFile::parse("a.model", bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->model_type, SentencePieceFile::ModelType::kBpe);
  EXPECT_TRUE(file->byte_fallback);
  EXPECT_TRUE(file->treat_whitespace_as_suffix);
  EXPECT_FALSE(file->add_dummy_prefix);
  EXPECT_FALSE(file->remove_extra_whitespaces);
  EXPECT_FALSE(file->escape_whitespaces);
  EXPECT_EQ(file->precompiled_charsmap, "map");
  EXPECT_EQ(file->pieces.at(0).text, "x");
  EXPECT_EQ(file->pieces.at(0).score, -2);
  EXPECT_EQ(file->pieces.at(0).type, PieceType::kByte);
}

TEST(SentencePieceErrorTest, BytesThatAreNoMessage) {
  EXPECT_EQ(parse_error("\x0A"), "a.model: ends inside a number");
  EXPECT_EQ(parse_error("\x0A\x05"
                        "abc"),
            "a.model: a field of 5 bytes begins where 3 are left");
  EXPECT_EQ(parse_error(std::string("\x0A") + std::string(9, '\xFF') + "\x01"),
            "a.model: a field of 18446744073709551615 bytes begins where 0 are left");
  EXPECT_EQ(parse_error(std::string(11, '\xFF')), "a.model: a number has more than ten bytes");
  EXPECT_EQ(parse_error(std::string(1, '\0')), "a.model: no field has the number 0");
  EXPECT_EQ(parse_error(varint(9 << 3 | 3)), "a.model: field 9 has the wire type 3, which is not in use");
  EXPECT_EQ(parse_error(varint(9 << 3 | 6)), "a.model: field 9 has the wire type 6, which is not in use");
  EXPECT_EQ(parse_error(varint(9 << 3 | 5) + "abc"), "a.model: a field of 4 bytes begins where 3 are left");
}

TEST(SentencePieceErrorTest, FieldsOfTheWrongKindAreNamed) {
  EXPECT_EQ(parse_error(int_field(1, 3)), "a.model: pieces: has the wire type 0 instead of 2");
  EXPECT_EQ(parse_error(kUnk + bytes_field(1, int_field(1, 3))),
            "a.model: pieces[1]: piece: has the wire type 0 instead of 2");
  EXPECT_EQ(parse_error(bytes_field(1, int_field(2, 3))),
            "a.model: pieces[0]: score: has the wire type 0 instead of 5");
  EXPECT_EQ(parse_error(bytes_field(1, int_field(3, 7))), "a.model: pieces[0]: type: 7 is not from 1 to 6");
  EXPECT_EQ(parse_error(bytes_field(2, float_field(3, 1))),
            "a.model: trainer_spec: model_type: has the wire type 5 instead of 0");
  EXPECT_EQ(parse_error(bytes_field(2, int_field(3, 5))), "a.model: trainer_spec: model_type: 5 is not from 1 to 4");
  EXPECT_EQ(parse_error(bytes_field(3, int_field(2, 1))),
            "a.model: normalizer_spec: precompiled_charsmap: has the wire type 0 instead of 2");
}

TEST(SentencePieceErrorTest, ModelsThatCannotBeUsed) {
  const std::string bytes_on = bytes_field(2, int_field(35, 1));
  EXPECT_EQ(parse_error(""), "a.model: pieces: none of them is the unknown piece");
  EXPECT_EQ(parse_error(kUnk + piece("<other>", 0, PieceType::kUnknown)),
            "a.model: pieces[1]: type: piece 0 is the unknown piece already");
  EXPECT_EQ(parse_error(kUnk + piece("", 0)), "a.model: pieces[1]: piece: is empty");
  EXPECT_EQ(parse_error(kUnk + piece("a", 0) + piece("a", 1)), "a.model: pieces[2]: piece: \"a\" is piece 1 already");
  EXPECT_EQ(parse_error(kUnk + piece("\xE9", 0)), "a.model: pieces[1]: piece: is not valid UTF-8");
  EXPECT_EQ(parse_error(kUnk + piece("a", NAN)), "a.model: pieces[1]: score: is not a finite number");
  EXPECT_EQ(parse_error(kUnk + piece("a", -INFINITY)), "a.model: pieces[1]: score: is not a finite number");
  EXPECT_EQ(parse_error(kUnk + piece(std::string(1025, 'a'), 0)),
            "a.model: pieces[1]: piece: 1025 bytes are more than the 1024 allowed");
  EXPECT_EQ(parse_error(kUnk + piece("<0x00>", 0, PieceType::kByte)),
            "a.model: pieces[1]: type: is a byte, but trainer_spec.byte_fallback is not set");
  EXPECT_EQ(parse_error(bytes_on + kUnk + piece("<0xe2>", 0, PieceType::kByte)),
            "a.model: pieces[1]: piece: \"<0xe2>\" is of type byte, but not written like <0x0A>");
  EXPECT_EQ(parse_error(bytes_on + kUnk + piece("<0x00>", 0, PieceType::kByte)),
            "a.model: pieces: lack <0x01>, which trainer_spec.byte_fallback needs");
  EXPECT_EQ(parse_error(kUnk + bytes_field(3, bytes_field(2, "abc"))),
            "a.model: normalizer_spec: precompiled_charsmap: ends inside the trie's size");
  for (const auto& [type, name] : {std::pair(3, "WORD"), std::pair(4, "CHAR")}) {
    const auto model =
        SentencePieceModel::parse("a.model", kUnk + bytes_field(2, int_field(3, static_cast<uint64_t>(type))));
    EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(error_message(model.status()), str_cat("a.model: trainer_spec: model_type: ", name, " is not supported"));
  }
}

TEST(SentencePieceErrorTest, EveryPrefixOfAFileIsAnswered) {
  const std::string bytes = read_models().front().bytes;
  for (size_t length = 0; length < bytes.size(); ++length) {
    SentencePieceModel::parse("a.model", std::string_view(bytes).substr(0, length)).status().IgnoreError();
  }
}

// A megabyte without a space, of one letter, and of spaces: nothing may take time with the square of the length.
TEST(SentencePieceTest, AMegabyteInOneLineTakesSeconds) {
  std::mt19937 random(4);
  std::string letters;
  constexpr size_t kBytes = kSanitized ? 250'000 : 1'000'000;
  while (letters.size() < kBytes) letters.push_back(static_cast<char>('a' + random() % 26));
  std::string words;
  while (words.size() < kBytes) words += "the quick brown ﾊﾞ fox 語 ";
  constexpr std::string_view kNames[] = {"unigram", "unigram_across_words", "bpe_symbols", "bpe_all_spaces",
                                         "bpe_unused"};
  for (const Fixture& fixture : read_models()) {
    if (std::find(std::begin(kNames), std::end(kNames), fixture.name) == std::end(kNames)) continue;
    SCOPED_TRACE(fixture.name);
    const auto model = parse(fixture.bytes);
    ASSERT_NE(model, nullptr);
    for (const std::string& text :
         {letters, words, std::string(kBytes, 'a'), std::string(kBytes, ' '), "x" + std::string(kBytes - 1, ' ')}) {
      const double start = cpu_seconds();
      std::vector<int32_t> ids;
      ASSERT_TRUE(model->append_ids(text, ids).ok());
      EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
    }
  }
}

// A charsmap that makes much of little.
TEST(SentencePieceErrorTest, TextsThatGrowOutOfProportionAreRefused) {
  // One unit block: the root's children lie at 256, 'a' leads to a leaf whose value is 0.
  std::string map;
  const auto put = [&](uint32_t value) {
    for (int i = 0; i < 4; ++i) map.push_back(static_cast<char>(value >> (8 * i)));
  };
  std::vector<uint32_t> units(1024, 0xFF);
  units[0] = 256 << 10;                           // children at 256
  units[256 ^ 'a'] = 'a' | 1u << 8 | 512u << 10;  // a rule ends here; its value lies at (256 ^ 'a') ^ 512
  units[256 ^ 'a' ^ 512] = 0x80000000;
  put(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) put(unit);
  map += std::string(1000, 'b') + '\0';
  const auto model = parse(kUnk + piece("b", -1) + bytes_field(3, bytes_field(2, map)));
  ASSERT_NE(model, nullptr);
  std::vector<int32_t> ids;
  EXPECT_TRUE(model->append_ids("aa", ids).ok());
  EXPECT_EQ(ids.size(), 2001u);
  EXPECT_EQ(model->append_ids(std::string(100'000, 'a'), ids).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace transept
