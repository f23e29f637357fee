#include "hub/repo_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

const std::string kCommit(40, 'a');
const std::string kSha256(64, 'b');

TEST(RepoListingTest, Info) {
  const auto info = parse_repo_info(str_cat(R"({"id": "a/b", "sha": ")", kCommit,
                                            R"(", "siblings": [{"rfilename": "config.json"}, {"rfilename": "a/b"}]})"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->commit, kCommit);
  EXPECT_EQ(info->paths, (std::vector<std::string>{"config.json", "a/b"}));
  EXPECT_TRUE(parse_repo_info(str_cat(R"({"sha": ")", kCommit, R"("})")).ok());
}

TEST(RepoListingTest, InfoThatIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"sha": 1})", R"({"sha": "main"})", R"({"sha": "../../x"})"}) {
    EXPECT_FALSE(parse_repo_info(text).ok()) << text;
  }
  for (const char* siblings : {"1", "[1]", "[{}]", R"([{"rfilename": "../x"}])", R"([{"rfilename": "/x"}])"}) {
    EXPECT_FALSE(parse_repo_info(str_cat(R"({"sha": ")", kCommit, R"(", "siblings": )", siblings, "}")).ok())
        << siblings;
  }
}

TEST(RepoListingTest, TreePage) {
  const auto files =
      parse_tree_page(str_cat(R"([{"type": "directory", "oid": "x", "size": 0, "path": "a"},)"
                              R"({"type": "file", "oid": "o1", "size": 3, "path": "a/b"},)"
                              R"({"type": "file", "oid": "o2", "size": 9, "path": "w", "lfs": {"oid": ")",
                              kSha256, R"(", "size": 7, "pointerSize": 134}, "xetHash": ")", kSha256, R"("}])"));
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2);
  EXPECT_EQ((*files)[0].content_size(), 3);
  EXPECT_FALSE((*files)[0].lfs_sha256.has_value());
  EXPECT_EQ((*files)[1].content_size(), 7);
  EXPECT_EQ((*files)[1].lfs_sha256, kSha256);
  EXPECT_EQ((*files)[1].xet_hash, kSha256);
}

TEST(RepoListingTest, TreePagesThatAreRefused) {
  for (const char* text :
       {"{}", "[1]", R"([{"type": "file"}])", R"([{"type": "file", "oid": "o", "size": -1, "path": "a"}])",
        R"([{"type": "file", "oid": "o", "size": 1.5, "path": "a"}])",
        R"([{"type": "file", "oid": "o", "size": 99999999999999999999, "path": "a"}])",
        R"([{"type": "file", "oid": "o", "size": 1, "path": "../a"}])",
        R"([{"type": "file", "oid": "o", "size": 1, "path": "a", "lfs": {"oid": "short", "size": 1}}])",
        R"([{"type": "file", "oid": "o", "size": 1, "path": "a", "lfs": 1}])"}) {
    EXPECT_FALSE(parse_tree_page(text).ok()) << text;
  }
}

// What Python's json.dump(indent=1) writes of the same (huggingface_hub's write_tree_cache).
TEST(RepoListingTest, TheCopyIsHuggingfaceHubs) {
  ListedFile large{
      .path = "model.safetensors", .size = 5, .blob_id = "o1", .lfs_sha256 = kSha256, .lfs_size = 5, .xet_hash = {}};
  ListedFile odd{.path = "a\"\\\xC3\xA4\xF0\x9F\x98\x80",
                 .size = 0,
                 .blob_id = "o2",
                 .lfs_sha256 = {},
                 .lfs_size = {},
                 .xet_hash = {}};
  EXPECT_EQ(tree_copy({large, odd}), str_cat("{\n \"format_version\": 1,\n \"files\": {\n"
                                             "  \"a\\\"\\\\\\u00e4\\ud83d\\ude00\": {\n   \"size\": 0,\n"
                                             "   \"blob_id\": \"o2\"\n  },\n"
                                             "  \"model.safetensors\": {\n   \"size\": 5,\n   \"blob_id\": \"o1\",\n"
                                             "   \"lfs_sha256\": \"",
                                             kSha256, "\",\n   \"lfs_size\": 5\n  }\n }\n}"));
  large.xet_hash = std::string(64, 'b');
  EXPECT_THAT(tree_copy({large}), ::testing::EndsWith(str_cat("\n   \"lfs_size\": 5,\n   \"xet_hash\": \"",
                                                              *large.xet_hash, "\"\n  }\n }\n}")));
  EXPECT_EQ(tree_copy({}), "{\n \"format_version\": 1,\n \"files\": {}\n}");
}

TEST(RepoListingTest, TheCopyIsReadBack) {
  const ListedFile large{
      .path = "w", .size = 5, .blob_id = "o1", .lfs_sha256 = kSha256, .lfs_size = 6, .xet_hash = kSha256};
  const auto files = parse_tree_copy(tree_copy({large}));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(tree_copy(*files), tree_copy({large}));
  EXPECT_FALSE(parse_tree_copy(R"({"format_version": 2, "files": {}})").ok());
  EXPECT_FALSE(parse_tree_copy(R"({"format_version": 1, "files": {"../a": {"size": 1, "blob_id": "o"}}})").ok());
  EXPECT_FALSE(parse_tree_copy(R"({"format_version": 1})").ok());
}

}  // namespace
}  // namespace transept
