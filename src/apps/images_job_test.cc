#include "apps/images_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ImageResults : public ::testing::Test {
 protected:
  std::string path() const { return dir_.path() + "/results.jsonl"; }
  void write(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }
  std::string read() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  bool left_nothing_else() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) count += entry.exists() ? 1 : 0;
    return count == 1;
  }

  testing::TestFolder dir_;
};

TEST_F(ImageResults, AreKeptWithoutFailuresAndWhatWasCutShort) {
  const std::string good = "{\"id\": \"a.png\", \"outputs\": []}\n", other = "{\"id\":\"b/c.jpg\",\"outputs\":[1]}\n";
  write(good + "{\"id\": \"bad.png\", \"error\": {\"message\": \"cut\"}}\n" + other + "{\"id\": \"late.png\", \"outp");
  const auto done = keep_image_results(path());
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_THAT(*done, ElementsAre("a.png", "b/c.jpg"));
  EXPECT_EQ(read(), good + other);
  EXPECT_TRUE(left_nothing_else());
}

TEST_F(ImageResults, OfNoFileThereAreNone) {
  const auto done = keep_image_results(path());
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_THAT(*done, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

// Another file of the user's, given by mistake.
TEST_F(ImageResults, AFileOfAnotherKindStaysAsItIs) {
  for (const std::string text : {"my notes\n", "{\"id\": 3, \"outputs\": []}\n", "[1]\n"}) {
    write(text);
    const auto done = keep_image_results(path());
    ASSERT_FALSE(done.ok()) << text;
    EXPECT_THAT(error_message(done.status()), HasSubstr("results.jsonl: line 1"));
    EXPECT_EQ(read(), text);
    EXPECT_TRUE(left_nothing_else());
  }
}

TEST(FindImages, TakesPicturesOfAFolder) {
  const testing::TestFolder dir;
  for (const char* name : {"b.JPG", "a.webp", "notes.txt", ".hidden.png", "scan.tiff"}) dir.write(name, "x");
  const std::string folder[] = {dir.path()};
  const FoundFiles found = find_images(folder, false);
  std::vector<std::string> names;
  for (const FoundFile& file : found.inputs) names.push_back(std::filesystem::path(file.path).filename());
  EXPECT_THAT(names, ElementsAre("a.webp", "b.JPG", "scan.tiff"));
}

}  // namespace
}  // namespace transept
