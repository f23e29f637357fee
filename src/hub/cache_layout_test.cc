#include "hub/cache_layout.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"
#include "base/input_file.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a'), kOther(40, 'b');

class CacheLayoutTest : public ::testing::Test {
 protected:
  void write(const std::string& path, std::string_view content) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << content;
  }

  testing::TestFolder folder_;
  CacheRepo repo_{folder_.path(), "org/na.me"};
};

TEST_F(CacheLayoutTest, Paths) {
  const CacheRepo repo("/c", "org/name");
  EXPECT_EQ(repo.blob("e"), "/c/models--org--name/blobs/e");
  EXPECT_EQ(repo.incomplete("e"), "/c/models--org--name/blobs/e.incomplete");
  EXPECT_EQ(repo.lock("e"), "/c/.locks/models--org--name/e.lock");
  EXPECT_EQ(repo.pointer("k", "f"), "/c/models--org--name/snapshots/k/f");
  EXPECT_EQ(repo.ref("refs/pr/1"), "/c/models--org--name/refs/refs/pr/1");
  EXPECT_EQ(repo.no_exist("k", "f"), "/c/models--org--name/.no_exist/k/f");
  EXPECT_EQ(repo.tree("k"), "/c/models--org--name/trees/k.json");
}

TEST_F(CacheLayoutTest, NamesOfFolders) {
  EXPECT_EQ(repo_id_of_folder("models--org--name"), "org/name");
  EXPECT_EQ(repo_id_of_folder("models--org--na.m-e"), "org/na.m-e");
  for (const char* name :
       {"models--", "models--org", "datasets--org--name", "models--org--", "models----name", "blobs"}) {
    EXPECT_EQ(repo_id_of_folder(name), std::nullopt) << name;
  }
}

TEST_F(CacheLayoutTest, RefsNameCommits) {
  EXPECT_EQ(repo_.commit_of("main"), std::nullopt);
  EXPECT_EQ(repo_.commit_of(kCommit), kCommit);
  ASSERT_TRUE(repo_.write_ref("refs/pr/1", kCommit).ok());
  EXPECT_EQ(*read_file(repo_.ref("refs/pr/1")), kCommit) << "without an end of line, as huggingface_hub";
  EXPECT_EQ(repo_.commit_of("refs/pr/1"), kCommit);
  ASSERT_TRUE(repo_.write_ref("refs/pr/1", kOther).ok());
  EXPECT_EQ(repo_.commit_of("refs/pr/1"), kOther);
  ASSERT_TRUE(repo_.write_ref(kCommit, kCommit).ok());
  EXPECT_FALSE(fs::exists(repo_.ref(kCommit)));
  write(repo_.ref("bad"), "../../../etc");
  EXPECT_EQ(repo_.commit_of("bad"), std::nullopt);
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(repo_.folder() + "/refs"), {}), 4) << "refs, pr, 1, bad";
}

TEST_F(CacheLayoutTest, PointersLeadToBlobs) {
  ASSERT_TRUE(repo_.make_folders(kCommit).ok());
  write(repo_.blob("etag"), "content");
  EXPECT_FALSE(repo_.has_file(kCommit, "f"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(repo_.link(kCommit, "f", "etag").ok());
    EXPECT_EQ(fs::read_symlink(repo_.pointer(kCommit, "f")), "../../blobs/etag");
  }
  EXPECT_TRUE(repo_.has_file(kCommit, "f"));
  ASSERT_TRUE(repo_.link(kCommit, "f", "other").ok()) << "what leads elsewhere is replaced";
  EXPECT_FALSE(repo_.has_file(kCommit, "f")) << "there is no such blob";
}

TEST_F(CacheLayoutTest, NotesThatAFileIsMissing) {
  EXPECT_FALSE(repo_.is_marked_missing(kCommit, "f"));
  ASSERT_TRUE(repo_.mark_missing(kCommit, "f").ok());
  EXPECT_TRUE(repo_.is_marked_missing(kCommit, "f"));
  EXPECT_EQ(fs::file_size(repo_.no_exist(kCommit, "f")), 0);
}

TEST_F(CacheLayoutTest, ACopyOfAListingThatCannotBeReadIsNone) {
  EXPECT_EQ(repo_.read_tree(kCommit), std::nullopt);
  write(repo_.tree(kCommit), "{\"format_version\": 1, \"fi");
  EXPECT_EQ(repo_.read_tree(kCommit), std::nullopt);
  ListedFile file;
  file.path = "config.json";
  ASSERT_TRUE(repo_.write_tree(kCommit, {file}).ok());
  ASSERT_TRUE(repo_.read_tree(kCommit).has_value());
  EXPECT_EQ(repo_.read_tree(kCommit)->at(0).path, "config.json");
}

TEST_F(CacheLayoutTest, TheTagOfACacheStaysAsItIs) {
  folder_.write("CACHEDIR.TAG", "mine");
  ASSERT_TRUE(repo_.make_folders(kCommit).ok());
  EXPECT_EQ(*read_file(folder_.path() + "/CACHEDIR.TAG"), "mine");
}

TEST_F(CacheLayoutTest, WhatCannotBeWrittenIsNamed) {
  folder_.write("models--org--na.me", "a file");
  const Status status = repo_.make_folders(kCommit);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(error_message(status).find("models--org--na.me/blobs"), std::string::npos) << status;
}

}  // namespace
}  // namespace transept
