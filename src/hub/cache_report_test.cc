#include "hub/cache_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

const std::string kOld(40, 'a'), kNew(40, 'b');

class CacheReportTest : public ::testing::Test {
 protected:
  CacheReportTest() {
    add(kOld, "config.json", "small", 5);
    add(kOld, "model.safetensors", "large", 100);
    add(kNew, "config.json", "small2", 7);
    add(kNew, "model.safetensors", "large", 100);
    EXPECT_TRUE(repo_.write_ref("main", kNew).ok());
    EXPECT_TRUE(repo_.write_ref("v1", kNew).ok());
  }

  void add(const std::string& commit, const std::string& file, const std::string& etag, size_t size) {
    ASSERT_TRUE(repo_.make_folders(commit).ok());
    std::ofstream(repo_.blob(etag)) << std::string(size, 'x');
    ASSERT_TRUE(repo_.link(commit, file, etag).ok());
  }
  bool exists(const std::string& path) { return fs::exists(fs::symlink_status(path)); }

  testing::TestFolder folder_;
  CacheRepo repo_{folder_.path(), "org/name"};
};

TEST_F(CacheReportTest, SizesCountBlobsOnce) {
  std::ofstream(repo_.incomplete("next")) << "123";
  const auto repos = list_cache(folder_.path());
  ASSERT_TRUE(repos.ok());
  ASSERT_EQ(repos->size(), 1);
  const CachedRepo& repo = repos->front();
  EXPECT_EQ(repo.id, "org/name");
  EXPECT_EQ(repo.num_bytes, 112);
  EXPECT_EQ(repo.num_partial_bytes, 3);
  ASSERT_EQ(repo.revisions.size(), 2);
  EXPECT_EQ(repo.revisions[0].num_bytes, 105);
  EXPECT_THAT(repo.revisions[1].refs, ElementsAre("main", "v1"));
  EXPECT_EQ(repo.revisions[1].num_files, 2);
}

TEST_F(CacheReportTest, NoCacheHoldsNothing) {
  EXPECT_TRUE(list_cache(folder_.path() + "/none")->empty());
  EXPECT_TRUE(absl::IsNotFound(plan_removal(CacheRepo(folder_.path(), "org/other"), {}).status()));
}

TEST_F(CacheReportTest, ARevisionGoesWithWhatNoOtherHas) {
  const auto removal = plan_removal(repo_, kNew);
  ASSERT_TRUE(removal.ok());
  EXPECT_EQ(removal->num_bytes, 7);
  EXPECT_FALSE(removal->is_whole_repo);
  ASSERT_TRUE(remove(*removal).ok());
  EXPECT_FALSE(exists(repo_.snapshot(kNew)));
  EXPECT_FALSE(exists(repo_.ref("main")));
  EXPECT_FALSE(exists(repo_.ref("v1")));
  EXPECT_FALSE(exists(repo_.blob("small2")));
  EXPECT_TRUE(repo_.has_file(kOld, "model.safetensors"));
  EXPECT_TRUE(repo_.has_file(kOld, "config.json"));
}

TEST_F(CacheReportTest, TheLastRevisionTakesTheFolder) {
  ASSERT_TRUE(remove(*plan_removal(repo_, kNew)).ok());
  const auto removal = plan_removal(repo_, kOld);
  ASSERT_TRUE(removal.ok());
  EXPECT_TRUE(removal->is_whole_repo);
  ASSERT_TRUE(remove(*removal).ok());
  EXPECT_FALSE(exists(repo_.folder()));
  EXPECT_FALSE(exists(repo_.locks_folder()));
  EXPECT_TRUE(list_cache(folder_.path())->empty());
}

TEST_F(CacheReportTest, LinksAreNotFollowedOut) {
  const testing::TestFolder outside;
  outside.write("precious", "content");
  fs::create_symlink(outside.path(), repo_.snapshot(kOld) + "/folder");
  fs::create_symlink(outside.path() + "/precious", repo_.pointer(kOld, "file"));
  ASSERT_TRUE(remove(*plan_removal(repo_, kOld)).ok());
  ASSERT_TRUE(remove(*plan_removal(repo_, {})).ok());
  EXPECT_TRUE(exists(outside.path() + "/precious"));
}

TEST_F(CacheReportTest, AnUnknownRevision) {
  EXPECT_TRUE(absl::IsNotFound(plan_removal(repo_, std::string(40, 'c')).status()));
}

}  // namespace
}  // namespace transept
