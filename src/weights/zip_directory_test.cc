// The directory of an archive: what torch writes is read, and each lie of a header is refused by name.
#include "weights/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "weights/torch_file_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::TestEntry;
using testing::zip_bytes;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text(const ZipEntry& entry) {
  return {reinterpret_cast<const char*>(entry.data.data()), entry.data.size()};
}

std::string why(const std::string& file) {
  const auto entries = read_zip_directory(as_bytes(file));
  return entries.ok() ? "read" : error_message(entries.status());
}

// Puts `value` at `offset` of the first place of `mark`.
template <typename T>
std::string changed(std::string file, std::string_view mark, size_t offset, T value) {
  const size_t at = file.find(mark);
  EXPECT_NE(at, std::string::npos);
  return file.replace(at + offset, sizeof value, testing::number_bytes(value));
}

const std::string kLocal("PK\x03\x04"), kCentral("PK\x01\x02"), kEnd("PK\x05\x06"), kDescriptor("PK\x07\x08");

std::string two_entries() { return zip_bytes({{"a/x", "hello"}, {"a/y", "hi"}}); }

TEST(ZipDirectory, ReadsEntriesWithAndWithoutDescriptorsAndInZip64) {
  for (const uint16_t flags : {uint16_t{0x0808}, uint16_t{0x0800}, uint16_t{0x0008}, uint16_t{0}}) {
    for (const bool is_wide : {false, true}) {
      const TestEntry first = {"a/x", "hello", 0, flags, is_wide}, second = {"a/y", "", 0, flags, is_wide};
      const std::string file = zip_bytes({first, second});
      const auto entries = read_zip_directory(as_bytes(file));
      ASSERT_TRUE(entries.ok()) << entries.status().message() << " " << flags << is_wide;
      ASSERT_EQ(entries->size(), 2u);
      EXPECT_EQ((*entries)[0].name, "a/x");
      EXPECT_EQ(text((*entries)[0]), "hello");
      EXPECT_EQ((*entries)[1].data.size(), 0u);
    }
  }
  EXPECT_TRUE(read_zip_directory(as_bytes(zip_bytes({})))->empty());
}

TEST(ZipDirectory, ReadsTheZip64EndThatTorchAlwaysWrites) {
  const std::string plain = two_entries();
  const size_t end = plain.find(kEnd), begin = plain.find(kCentral);
  const auto with_end64 = [&](uint64_t count, uint64_t offset, uint64_t place) {
    using testing::number_bytes;
    std::string out = plain.substr(0, end) + "PK\x06\x06" + number_bytes(uint64_t{44}) + number_bytes(uint32_t{0});
    out += number_bytes(uint64_t{0}) + number_bytes(count) + number_bytes(count) + number_bytes(uint64_t{end - begin}) +
           number_bytes(offset);
    return out + "PK\x06\x07" + number_bytes(uint32_t{0}) + number_bytes(place) + number_bytes(uint32_t{1}) +
           plain.substr(end);
  };
  EXPECT_EQ(why(with_end64(2, begin, end)), "read");
  EXPECT_EQ(why(changed(with_end64(2, begin, end), kEnd, 16, uint32_t{0xFFFFFFFF})), "read");
  EXPECT_THAT(why(with_end64(1, begin, end)), HasSubstr("disagree"));
  EXPECT_THAT(why(with_end64(2, begin + 1, end)), HasSubstr("disagree"));
  EXPECT_THAT(why(with_end64(2, begin, end + 1)), HasSubstr("zip64 end record is not at"));
  EXPECT_THAT(why(with_end64(2, begin, uint64_t{1} << 63)), HasSubstr("zip64 end record is not at"));
}

TEST(ZipDirectory, RefusesWhatIsNoPlainArchive) {
  const std::string good = two_entries();
  EXPECT_EQ(why(good), "read");
  EXPECT_THAT(why(""), HasSubstr("no end record"));
  EXPECT_THAT(why(good + "x"), HasSubstr("no end record"));
  EXPECT_THAT(why(zip_bytes({{"a", "xy", 8}})), HasSubstr("\"a\": is compressed (method 8)"));
  EXPECT_THAT(why(zip_bytes({{"a", "xy", 0, 1}})), HasSubstr("flags 1 (encrypted?)"));
  EXPECT_THAT(why(zip_bytes({{"a", "x"}, {"b", "y"}, {"a", "z"}})), HasSubstr("\"a\": stands twice"));
  EXPECT_THAT(why(changed(good, kEnd, 4, uint16_t{1})), HasSubstr("several disks"));
  EXPECT_THAT(why(changed(good, kEnd, 16, uint32_t{3})), HasSubstr("does not end at"));
  EXPECT_THAT(why(changed(good, kEnd, 12, uint32_t{0xFFFFFF00})), HasSubstr("does not end at"));
  EXPECT_THAT(why(changed(changed(good, kEnd, 8, uint16_t{1}), kEnd, 10, uint16_t{1})), HasSubstr("more than its 1"));
  EXPECT_THAT(why(changed(changed(good, kEnd, 8, uint16_t{3}), kEnd, 10, uint16_t{3})), HasSubstr("no record"));
}

TEST(ZipDirectory, RefusesHeadersThatLie) {
  const std::string good = two_entries();
  EXPECT_THAT(why(changed(good, kLocal, 8, uint16_t{8})), HasSubstr("its header and the directory disagree"));
  EXPECT_THAT(why(changed(good, kLocal, 6, uint16_t{0})), HasSubstr("disagree"));
  EXPECT_THAT(why(changed(good, kLocal, 22, uint32_t{4})), HasSubstr("disagree"));
  EXPECT_THAT(why(changed(good, kLocal, 30, 'b')), HasSubstr("disagree"));
  EXPECT_THAT(why(changed(good, kLocal, 26, uint16_t{0xFFFF})), HasSubstr("is cut off"));
  EXPECT_THAT(why(changed(good, kDescriptor, 8, uint32_t{4})), HasSubstr("the descriptor"));
  EXPECT_THAT(why(changed(good, kCentral, 24, uint32_t{4})), HasSubstr("two sizes"));
  EXPECT_THAT(why(changed(changed(good, kCentral, 20, uint32_t{1000}), kCentral, 24, uint32_t{1000})),
              HasSubstr("its 1000 bytes lie outside"));
  EXPECT_THAT(why(changed(good, kCentral, 42, uint32_t{0x7FFFFFFF})), HasSubstr("header lies outside"));
  EXPECT_THAT(why(changed(good, kCentral, 42, uint32_t{1})), HasSubstr("there is no header at byte 1"));
  EXPECT_THAT(why(changed(good, kCentral, 20, uint32_t{0xFFFFFFFF})), HasSubstr("zip64 field is missing"));
  EXPECT_THAT(why(changed(zip_bytes({{"a", "x", 0, 0, true}}), kCentral, 42, uint32_t{0xFFFFFFFF})),
              HasSubstr("zip64 field is too short"));
  EXPECT_THAT(why(changed(good, kCentral, 30, uint16_t{0xFFFF})), HasSubstr("is cut off"));
  EXPECT_THAT(why(changed(good, kCentral, 34, uint16_t{1})), HasSubstr("is on another disk"));
}

TEST(ZipDirectory, AHeaderWhoseSizesAreInItsZip64FieldAgreesToo) {
  // As numpy writes: sizes in the local header's field, though the directory has room for them.
  const auto file = [](uint64_t size, uint64_t packed) {
    using testing::number_bytes;
    const TestEntry entry = {"a", "hello", 0, 0};
    std::string local = testing::local_record(entry);
    const std::string field =
        number_bytes(uint16_t{1}) + number_bytes(uint16_t{16}) + number_bytes(size) + number_bytes(packed);
    local.replace(18, 8, std::string(8, '\xFF'));
    local.replace(28, 2, number_bytes(static_cast<uint16_t>(field.size())));
    local.insert(31, field);
    const std::string central = testing::central_record(entry, 0);
    return local + central + testing::end_record(1, central.size(), local.size());
  };
  EXPECT_EQ(why(file(5, 5)), "read");
  EXPECT_THAT(why(file(4, 5)), HasSubstr("disagree"));
  EXPECT_THAT(why(file(5, 6)), HasSubstr("disagree"));
  EXPECT_THAT(why(changed(two_entries(), kLocal, 22, uint32_t{0xFFFFFFFF})), HasSubstr("disagree"));
}

TEST(ZipDirectory, RefusesEntriesOverOthers) {
  // The second record of the directory is the first entry under another name, and then the same name.
  const TestEntry entry = {"a", "hello", 0, 0};
  const std::string local = testing::local_record(entry);
  const std::string twice = testing::central_record(entry, 0) + testing::central_record(entry, 0);
  EXPECT_THAT(why(local + twice + testing::end_record(2, twice.size(), local.size())), HasSubstr("overlaps"));
  // An archive inside the data of an entry.
  const TestEntry outer = {"b", local, 0, 0};
  const std::string whole = testing::local_record(outer);
  const std::string both =
      testing::central_record(outer, 0) + testing::central_record(entry, whole.size() - local.size());
  EXPECT_THAT(why(whole + both + testing::end_record(2, both.size(), whole.size())), HasSubstr("\"a\": overlaps"));
}

TEST(ZipDirectory, EndsAtEveryCut) {
  const std::string good = two_entries();
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(why(good.substr(0, size)), "read") << size;
}

}  // namespace
}  // namespace transept
