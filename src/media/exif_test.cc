// Orientations of EXIF and XMP. The fixtures of image_reader_test.cc compare with Pillow; here are borders and any
// bytes.
#include "media/exif.h"

#include <gtest/gtest.h>

#include <random>

#include "media/image_testing.h"

namespace transept {
namespace {

// A directory of one entry, in either byte order.
std::string exif_of(uint32_t type, uint32_t count, std::string_view value, bool is_little = true,
                    uint32_t tag = 0x112) {
  const auto number = [&](uint64_t n, int size) { return is_little ? little(n, size) : big(n, size); };
  return str_cat(is_little ? "II" : "MM", number(42, 2), number(8, 4), number(1, 2), number(tag, 2), number(type, 2),
                 number(count, 4), value, std::string(4 - value.size(), '\0'), number(0, 4));
}

int32_t orientation(std::string_view exif, std::string_view xmp = "") {
  return find_orientation(bytes_of_text(exif), bytes_of_text(xmp));
}

TEST(Exif, IntegersOfEveryType) {
  for (int i = 1; i <= 8; ++i) {
    for (const bool is_little : {true, false}) {
      const auto number = [&](int size) { return is_little ? little(i, size) : big(i, size); };
      for (const uint32_t type : {3, 8}) EXPECT_EQ(orientation(exif_of(type, 1, number(2), is_little)), i);
      for (const uint32_t type : {4, 9, 13}) EXPECT_EQ(orientation(exif_of(type, 1, number(4), is_little)), i);
      EXPECT_EQ(orientation(exif_of(6, 1, number(1), is_little)), i);
    }
  }
}

TEST(Exif, WhatIsNoOrientation) {
  EXPECT_EQ(orientation(exif_of(3, 1, little(0, 2))), 1);
  EXPECT_EQ(orientation(exif_of(3, 1, little(9, 2))), 1);
  EXPECT_EQ(orientation(exif_of(4, 1, little(0xffffffff, 4))), 1);
  EXPECT_EQ(orientation(exif_of(4, 1, little(0x10006, 4))), 1);
  EXPECT_EQ(orientation(exif_of(3, 2, little(6, 4))), 1) << "two numbers";
  EXPECT_EQ(orientation(exif_of(3, 0, little(6, 4))), 1) << "none";
  EXPECT_EQ(orientation(exif_of(1, 1, little(6, 1))), 1) << "bytes";
  EXPECT_EQ(orientation(exif_of(2, 2, "6")), 1) << "a text";
  EXPECT_EQ(orientation(exif_of(99, 1, little(6, 2))), 1) << "an unknown type";
  EXPECT_EQ(orientation(exif_of(3, 1, little(6, 2), true, 0x113)), 1) << "another tag";
  EXPECT_EQ(orientation(""), 1);
  EXPECT_EQ(orientation("II"), 1);
}

TEST(Exif, HeadersThatArePassedOver) {
  const std::string exif = exif_of(3, 1, little(6, 2));
  const std::string name("Exif\0\0", 6);
  EXPECT_EQ(orientation(str_cat(name, exif)), 6);
  EXPECT_EQ(orientation(str_cat(name, name, exif)), 6);
  std::string wrong = exif;
  std::swap(wrong[2], wrong[3]);
  EXPECT_EQ(orientation(wrong), 6) << "Pillow takes a number of the other byte order, too";
  wrong[0] = 'M';
  EXPECT_EQ(orientation(wrong), 1);
}

// An entry whose value is not in the file ends the directory; one of an unknown type does not.
TEST(Exif, EntriesBeforeAFlawCount) {
  const std::string flaw = str_cat(little(0x10f, 2), little(2, 2), little(1000, 4), little(8, 4));
  const std::string good = str_cat(little(0x112, 2), little(3, 2), little(1, 4), little(6, 4));
  const auto directory = [](std::string_view entries) {
    return str_cat("II*", little(0, 1), little(8, 4), little(entries.size() / 12, 2), entries);
  };
  EXPECT_EQ(orientation(directory(str_cat(good, flaw))), 6);
  EXPECT_EQ(orientation(directory(str_cat(flaw, good))), 1);
  EXPECT_EQ(orientation(directory(good).substr(0, 21)), 1) << "cut";
  std::string unknown = flaw;
  unknown[2] = 77;
  EXPECT_EQ(orientation(directory(str_cat(unknown, good))), 6);
}

TEST(Exif, XmpWhereThereIsNoTag) {
  EXPECT_EQ(orientation("", "<rdf tiff:Orientation=\"8\"/>"), 8);
  EXPECT_EQ(orientation("", "<tiff:Orientation>5</tiff:Orientation>"), 5);
  EXPECT_EQ(orientation("", "tiff:Orientation=6 tiff:Orientation='6' tiff:Orientation=\"x\" tiff:Orientation=\"3\""),
            3);
  EXPECT_EQ(orientation("", "tiff:Orientation=\"0\" tiff:Orientation=\"3\""), 1) << "the first number counts";
  EXPECT_EQ(orientation("", "tiff:Orientation=\""), 1);
  EXPECT_EQ(orientation(exif_of(3, 1, little(1, 2)), "tiff:Orientation=\"6\""), 1);
  EXPECT_EQ(orientation(exif_of(3, 1, little(77, 2)), "tiff:Orientation=\"6\""), 1) << "a wrong tag is a tag";
  EXPECT_EQ(orientation(exif_of(3, 1, little(6, 2), true, 0x113), "tiff:Orientation=\"6\""), 6);
}

TEST(Exif, AnyBytes) {
  std::mt19937 random(112);
  const std::string whole = exif_of(3, 1, little(6, 2));
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    for (int i = 0; i < 3 && !damaged.empty(); ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const int32_t found = orientation(damaged);
    ASSERT_TRUE(found >= 1 && found <= 8);
  }
}

}  // namespace
}  // namespace transept
