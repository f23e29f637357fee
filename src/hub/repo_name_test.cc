#include "hub/repo_name.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(RepoNameTest, WhatHasTheFormOfARepository) {
  for (const char* name : {"openai/whisper-tiny", "a/b", "openai/whisper-tiny@main", "o/n@refs/pr/1", "A_b/c.d"}) {
    EXPECT_TRUE(has_repo_form(name)) << name;
  }
  for (const char* name :
       {"g2p", "", "/", "a/", "/b", "a/b/c", "./a/b", "./a", "../a", "~/a", "a b/c", "a/b/", "@a/b"}) {
    EXPECT_FALSE(has_repo_form(name)) << name;
  }
}

TEST(RepoNameTest, TheRevisionIsTheNamesOrTheFlags) {
  EXPECT_EQ(parse_repo_name("a/b")->revision, "main");
  EXPECT_EQ(parse_repo_name("a/b@v1")->revision, "v1");
  EXPECT_EQ(parse_repo_name("a/b", "v1")->revision, "v1");
  EXPECT_EQ(parse_repo_name("a/b@v1", "v1")->text(), "a/b@v1");
  EXPECT_EQ(parse_repo_name("a/b@main")->text(), "a/b");
  EXPECT_TRUE(absl::IsInvalidArgument(parse_repo_name("a/b@v1", "v2").status()));
}

// The table of huggingface_hub's tests of validate_repo_id, without names of one part.
TEST(RepoNameTest, IdsAreThoseOfHuggingfaceHub) {
  for (const char* id : {"foo/bar", "Foo-BAR_foo.bar123/x", "_a/b_", "1/2"}) EXPECT_TRUE(check_repo_id(id).ok()) << id;
  for (const char* id : {"foo", "datasets/foo/bar", ".repo/id", "a/-b", "a/b-", "a/b.", "foo--bar/x", "a/b..c",
                         "a/b.git", "a/b c", "a/\xC3\xA9", "a/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(check_repo_id(id))) << id;
  }
  EXPECT_TRUE(check_repo_id("a/" + std::string(96, 'b')).ok());
  EXPECT_FALSE(check_repo_id("a/" + std::string(97, 'b')).ok());
}

TEST(RepoNameTest, Revisions) {
  for (const char* name : {"main", "v1.0", "refs/pr/1", "a@b", "0123456789abcdef0123456789abcdef01234567"}) {
    EXPECT_TRUE(check_revision(name).ok()) << name;
  }
  for (const char* name :
       {"", "..", "a/../b", "/a", "a/", "a//b", ".a", "a/.b", "a b", "a\nb", "a:b", "a\\b", "a?b", "\xC3\xA9"}) {
    EXPECT_FALSE(check_revision(name).ok()) << name;
  }
  EXPECT_TRUE(check_revision(std::string(255, 'a')).ok());
  EXPECT_FALSE(check_revision(std::string(256, 'a')).ok());
}

TEST(RepoNameTest, ListedPathsMayNotLeaveTheFolder) {
  for (const char* path :
       {"config.json", "a/b/c.txt", "a picture.png", "\xC3\xA4.txt", "..a", "a..", ".gitattributes"}) {
    EXPECT_TRUE(check_listed_path(path).ok()) << path;
  }
  for (const char* path : {"", "/a", "../a", "a/..", "a/../b", ".", "a/.", "a//b", "a/", "a\nb", "a\x7F"}) {
    EXPECT_FALSE(check_listed_path(path).ok()) << path;
  }
}

TEST(RepoNameTest, OnlyPlainFilesAreFetched) {
  EXPECT_TRUE(is_plain_file_name("model-00001-of-00002.safetensors"));
  for (const char* name : {"", ".hidden", "..", "a/b", "a b", "a\\b", "a:b", "\xC3\xA4"}) {
    EXPECT_FALSE(is_plain_file_name(name)) << name;
  }
  EXPECT_FALSE(is_plain_file_name(std::string(201, 'a')));
}

// huggingface_hub: etag.lstrip("W/").strip('"'), its TestNormalizeEtag.
TEST(RepoNameTest, EtagsBecomeNamesOfBlobs) {
  EXPECT_EQ(normalized_etag("\"a16a55fda99d2f2e7b69cce5cf93ff4ad3049930\""),
            "a16a55fda99d2f2e7b69cce5cf93ff4ad3049930");
  EXPECT_EQ(normalized_etag("W/\"a16a55\""), "a16a55");
  EXPECT_EQ(normalized_etag("a16a55"), "a16a55");
  EXPECT_EQ(normalized_etag("\"\""), "");
  EXPECT_EQ(normalized_etag(""), "");
  EXPECT_EQ(normalized_etag("W/W/\"x\"\""), "x");
  EXPECT_TRUE(is_blob_name("a16a55-3"));
  for (const char* etag : {"", ".", "..", "../a", "a/b", "a b", "a\"b", "a.incomplete"})
    EXPECT_FALSE(is_blob_name(etag)) << etag;
}

TEST(RepoNameTest, HashesAreLowerCase) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
  EXPECT_TRUE(is_sha256(std::string(64, '0')));
  EXPECT_FALSE(is_sha256(std::string(64, 'g')));
}

}  // namespace
}  // namespace transept
