#include "hub/find_cached.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace transept {
namespace {

namespace fs = std::filesystem;
using State = CachedModel::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kCommit(40, 'a');

class FindCachedTest : public ::testing::Test {
 protected:
  FindCachedTest() { EXPECT_TRUE(repo_.write_ref("main", kCommit).ok()); }

  void add(const std::string& name, std::string_view content = "x") {
    fs::create_directories(repo_.snapshot(kCommit));
    std::ofstream(repo_.pointer(kCommit, name)) << content;
  }
  // `size`: of every file but weights.
  void list(const std::vector<std::string>& names, std::optional<int64_t> size_of_weights = {}, int64_t size = 0) {
    std::vector<ListedFile> files;
    for (const std::string& name : names) {
      ListedFile file;
      file.path = name;
      file.size = size;
      if (name.ends_with(".safetensors") && size_of_weights.has_value()) {
        file.lfs_size = size_of_weights;
        file.lfs_sha256 = std::string(64, 'c');
      }
      files.push_back(file);
    }
    ASSERT_TRUE(repo_.write_tree(kCommit, files).ok());
  }
  CachedModel find(ModelParts parts = ModelParts::kAll) { return find_cached(repo_, "main", parts); }

  testing::TestFolder folder_;
  CacheRepo repo_{folder_.path(), "org/name"};
};

TEST_F(FindCachedTest, Nothing) {
  EXPECT_EQ(find().state, State::kNone);
  EXPECT_EQ(find_cached(repo_, "other", ModelParts::kAll).state, State::kNone);
  EXPECT_EQ(words_on_lack(find()), "does not have it");
  add("config.json", "{}");
  EXPECT_EQ(find().state, State::kNone) << "no weights";
  EXPECT_FALSE(find().may_run);
}

TEST_F(FindCachedTest, AListingDecides) {
  list({"config.json", "tokenizer.json", "model.safetensors", "README.md"}, 3);
  add("config.json", "{}");
  add("model.safetensors", "123");
  CachedModel found = find();
  EXPECT_EQ(found.state, State::kPartial);
  EXPECT_TRUE(found.may_run);
  EXPECT_THAT(found.missing, ElementsAre("tokenizer.json"));
  add("tokenizer.json");
  EXPECT_EQ(find().state, State::kComplete) << "the model has no generation_config.json";
  EXPECT_EQ(find().snapshot, repo_.snapshot(kCommit));
  add("model.safetensors", "12");
  found = find();
  EXPECT_EQ(found.state, State::kPartial) << "cut short";
  EXPECT_FALSE(found.may_run);
  EXPECT_THAT(found.missing, ElementsAre("model.safetensors (cut: 2 of 3 bytes)"));
  EXPECT_EQ(find(ModelParts::kTokenizer).state, State::kComplete);
}

TEST_F(FindCachedTest, ASmallFileThatWasCutDoesNotRun) {
  list({"config.json", "merges.txt", "vocab.json", "model.safetensors"}, 3, 9);
  add("config.json", R"({"a": 11})");
  add("merges.txt", "a b\nc d\ne");
  add("vocab.json", "{}");
  add("model.safetensors", "123");
  EXPECT_EQ(find().state, State::kComplete) << "a shorter object of JSON was changed by hand";
  add("merges.txt", "a b\n");
  EXPECT_EQ(find().state, State::kPartial);
  EXPECT_FALSE(find().may_run);
  EXPECT_THAT(find().missing, ElementsAre("merges.txt (cut: 4 of 9 bytes)"));
  EXPECT_EQ(words_on_lack(find()), "lacks merges.txt (cut: 4 of 9 bytes) of it");
  add("vocab.json", R"({"a":)");
  EXPECT_THAT(find().missing, ElementsAre("vocab.json (cut: 5 of 9 bytes)", "merges.txt (cut: 4 of 9 bytes)"));
}

TEST_F(FindCachedTest, AllShardsOfTheIndex) {
  list({"config.json", "model.safetensors.index.json", "1.safetensors", "2.safetensors"});
  add("config.json", "{}");
  EXPECT_THAT(find().missing,
              ElementsAre("model.safetensors.index.json", "the shards of model.safetensors.index.json"));
  add("model.safetensors.index.json", R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  add("1.safetensors");
  EXPECT_THAT(find().missing, ElementsAre("2.safetensors"));
  EXPECT_FALSE(find().may_run);
  add("2.safetensors");
  EXPECT_EQ(find().state, State::kComplete);
}

TEST_F(FindCachedTest, WithoutAListingNotesCount) {
  add("config.json", R"({"model_type": "whisper"})");
  add("model.safetensors");
  add("tokenizer.json");
  EXPECT_EQ(find().state, State::kUncertain);
  EXPECT_TRUE(find().may_run);
  EXPECT_THAT(find().missing,
              ElementsAre("generation_config.json", "tokenizer_config.json", "preprocessor_config.json"));
  add("generation_config.json");
  add("preprocessor_config.json");
  ASSERT_TRUE(repo_.mark_missing(kCommit, "tokenizer_config.json").ok());
  EXPECT_EQ(find().state, State::kComplete);
  EXPECT_THAT(find().missing, IsEmpty());
  fs::remove(repo_.pointer(kCommit, "tokenizer.json"));
  EXPECT_EQ(find().state, State::kUncertain) << "no vocabulary";
}

TEST_F(FindCachedTest, OtherWeightsThanTheListedMayRun) {
  list({"config.json", "model.safetensors", "pytorch_model.bin"});
  add("config.json", "{}");
  add("pytorch_model.bin");
  EXPECT_EQ(find().state, State::kPartial);
  EXPECT_TRUE(find().may_run);
}

}  // namespace
}  // namespace transept
