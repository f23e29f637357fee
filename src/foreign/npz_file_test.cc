// numpy's archives: what they hold, and files that are none.
#include "foreign/npz_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign/npz_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::npy_bytes;
using testing::NpzWriter;
using testing::raw_npy;
using ::testing::StartsWith;

std::span<const std::byte> span_of(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

std::string npz_error(std::string_view bytes) {
  const auto parsed = NpzFile::parse(span_of(bytes), "m.npz");
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : error_message(parsed.status());
}

// The error of an array "a".
std::string error_of_npy(std::string npy) {
  NpzWriter file;
  file.file("a", std::move(npy));
  std::string error = npz_error(file.bytes());
  EXPECT_THAT(error, StartsWith("m.npz: array \"a\": "));
  return error;
}

std::string header(std::string_view descr, std::string_view fortran, std::string_view shape) {
  return str_cat("{'descr': ", descr, ", 'fortran_order': ", fortran, ", 'shape': ", shape, ", }");
}

TEST(NpzFile, IsReadWhole) {
  NpzWriter good;
  good.array("w", "<f4", {2, 3}, std::string(24, 'w'));
  good.file("h", raw_npy(header("\"<f2\"", "False", "(2,)"), "half", 2));
  good.array("bytes", "|i1", {3}, "abc");
  good.array("bytes too", "<i1", {3}, "abc");
  good.array("number", "<i8", {}, std::string(8, '\1'));
  const std::string bytes = good.bytes();
  EXPECT_TRUE(begins_as_npz_file(span_of(bytes)));
  const auto npz = NpzFile::parse(span_of(bytes), "m.npz");
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_EQ(npz->arrays().size(), 5u);
  const NpzFile::Array* w = npz->find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->dtype, "F32");
  EXPECT_THAT(w->shape, ElementsAre(2, 3));
  EXPECT_EQ(w->data.size(), 24u);
  EXPECT_EQ(static_cast<char>(w->data[0]), 'w');
  EXPECT_EQ(npz->find("h")->dtype, "F16");
  EXPECT_THAT(npz->find("h")->shape, ElementsAre(2));
  EXPECT_EQ(npz->find("bytes")->dtype, "I8");
  EXPECT_EQ(npz->find("bytes too")->dtype, "I8");
  EXPECT_THAT(npz->find("number")->shape, IsEmpty());
  EXPECT_EQ(npz->find("w.npy"), nullptr);
}

TEST(NpzFile, RefusesWhatWouldHaveToBeRunOrTurned) {
  EXPECT_THAT(error_of_npy(raw_npy(header("'|O'", "False", "(1,)"), "\x80\x04.")),
              HasSubstr("Python's objects (a pickle), which are never read"));
  EXPECT_THAT(error_of_npy(raw_npy(header("'O'", "False", "(1,)"), "\x80\x04.")), HasSubstr("a pickle"));
  EXPECT_THAT(error_of_npy(raw_npy(header("[('a', '<f4')]", "False", "(1,)"), "1234")), HasSubstr("structs"));
  EXPECT_THAT(error_of_npy(raw_npy(header("'>f4'", "False", "(1,)"), "1234")), HasSubstr("big-endian (\">f4\")"));
  EXPECT_THAT(error_of_npy(raw_npy(header("'<f4'", "True", "(1, 1)"), "1234")), HasSubstr("Fortran's order"));
  EXPECT_THAT(error_of_npy(npy_bytes("<c8", {1}, "12345678")), HasSubstr("its type \"<c8\" is not read"));
  EXPECT_THAT(error_of_npy(npy_bytes("|f4", {1}, "1234")), HasSubstr("its type \"|f4\""));
  EXPECT_THAT(error_of_npy(npy_bytes("<U4", {1}, "1234")), HasSubstr("its type"));
  EXPECT_THAT(error_of_npy(npy_bytes("", {1}, "1234")), HasSubstr("its type \"\""));
}

TEST(NpzFile, RefusesShapesThatLie) {
  const auto with_shape = [](std::string_view shape) {
    return error_of_npy(raw_npy(header("'<f4'", "False", shape), "1234"));
  };
  EXPECT_THAT(with_shape("(2,)"), HasSubstr("has 4 bytes of data, which are not those of its shape"));
  EXPECT_THAT(with_shape("(1, 1, 2)"), HasSubstr("not those of its shape"));
  EXPECT_THAT(with_shape("(0,)"), HasSubstr("a size of 0"));
  EXPECT_THAT(with_shape("(4611686018427387905, 4)"), HasSubstr("not those of its shape"));
  EXPECT_THAT(with_shape("(18446744073709551617,)"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(with_shape("(9223372036854775808,)"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(with_shape("(-1,)"), HasSubstr("no number"));
  EXPECT_THAT(with_shape("(1)"), HasSubstr("no tuple"));
  EXPECT_THAT(with_shape("[1]"), HasSubstr("no '('"));
  EXPECT_THAT(with_shape("(1, 1"), HasSubstr("no number"));
  EXPECT_THAT(with_shape("(1,1,1,1,1,1,1,1,1)"), HasSubstr("more than 8 dimensions"));
}

TEST(NpzFile, RefusesHeadersThatAreNone) {
  const auto with = [](std::string_view text) { return error_of_npy(raw_npy(text, "1234")); };
  const std::string good = header("'<f4'", "False", "(1,)");
  EXPECT_THAT(with(good + "x"), HasSubstr("goes on behind its dict"));
  EXPECT_THAT(with(""), HasSubstr("no '{'"));
  EXPECT_THAT(with("{}"), HasSubstr("no descr"));
  EXPECT_THAT(with("{'descr': '<f4'}"), HasSubstr("no fortran_order"));
  EXPECT_THAT(with("{'descr': '<f4', 'fortran_order': False}"), HasSubstr("no shape"));
  EXPECT_THAT(with("{'descr': '<f4', 'descr': '|O'}"), HasSubstr("descr twice"));
  EXPECT_THAT(with("{'shape': (1,), 'shape': (2,)}"), HasSubstr("shape twice"));
  EXPECT_THAT(with("{'fortran_order': False, 'fortran_order': True}"), HasSubstr("fortran_order twice"));
  EXPECT_THAT(with("{'fortran_order': 0}"), HasSubstr("neither True nor False"));
  EXPECT_THAT(with("{'x': 1}"), HasSubstr("the key \"x\""));
  EXPECT_THAT(with("{'descr"), HasSubstr("no string"));
  EXPECT_THAT(error_of_npy("NUMPY"), HasSubstr("does not begin as a .npy"));
  EXPECT_THAT(error_of_npy(raw_npy(good, "1234", 9)), HasSubstr("version 9.0"));
  EXPECT_THAT(error_of_npy("\x93NUMPY\x01" + std::string("\0\xFF\xFF", 3)), HasSubstr("cut off"));
  NpzWriter twice;
  twice.array("a", "<f4", {1}, "1234");
  twice.array("a", "<f4", {1}, "5678");
  EXPECT_THAT(npz_error(twice.bytes()), AllOf(HasSubstr("m.npz: "), HasSubstr("stands twice")));
  EXPECT_THAT(npz_error(testing::zip_bytes({{"a.npy", npy_bytes("<f4", {1}, "1234"), 8, 0}})),
              HasSubstr("is compressed (method 8)"));
  EXPECT_THAT(npz_error(testing::zip_bytes({{"a.txt", "x", 0, 0}})), HasSubstr("array \"a.txt\": is no .npy"));
}

TEST(NpzFile, EndsAtEveryCut) {
  NpzWriter written;
  written.array("a", "<f4", {1, 2}, "12345678");
  written.array("b", "|i1", {1}, "1");
  const std::string bytes = written.bytes();
  ASSERT_TRUE(NpzFile::parse(span_of(bytes), "m.npz").ok());
  for (size_t size = 0; size < bytes.size(); ++size) npz_error(std::string_view(bytes).substr(0, size));
  // Every array, cut by itself.
  const std::string npy = npy_bytes("<f4", {1, 2}, "12345678");
  for (size_t size = 0; size < npy.size(); ++size) error_of_npy(npy.substr(0, size));
  EXPECT_FALSE(begins_as_npz_file(span_of(std::string_view(bytes).substr(0, 31))));
}

}  // namespace
}  // namespace transept
