// The folder and the secret in it are this user's alone, its sockets have short paths, and nothing of it is left.
#include "apps/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "base/folder_testing.h"
#include "base/scoped_variable_testing.h"
#include "encoder_cache/ec_secret.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScopedVariable;
using testing::TestFolder;

mode_t mode(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

Status create_error(const std::vector<std::string>& parents, std::string_view name = "e63") {
  return PrivateFolder::create(parents, name).status();
}

TEST(PrivateFolder, IsClosedToOthersAndRemovedAtTheEnd) {
  const TestFolder parent;
  const std::vector<std::string> parents = {parent.path() + "//"};
  std::optional<PrivateFolder> folder(PrivateFolder::create(parents, "broker").value());
  const std::string path = folder->path();
  EXPECT_EQ(std::filesystem::path(path).parent_path(), parent.path());
  EXPECT_EQ(mode(path), 0700u);
  ASSERT_TRUE(folder->write("secret", "0123").ok());
  EXPECT_EQ(mode(path + "/secret"), 0600u);
  EXPECT_EQ(folder->write("secret", "0123").code(), absl::StatusCode::kUnavailable) << "never somebody else's file";
  std::filesystem::create_directories(path + "/a/b");
  PrivateFolder moved = std::move(*folder);
  folder.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
  { const PrivateFolder last = std::move(moved); }
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
}

TEST(PrivateFolder, TheNextParentIsTriedWhereOneDoesNotTakeIt) {
  const TestFolder parent;
  const std::vector<std::string> parents = {parent.path() + "/missing", "relative",
                                            parent.path() + "/" + std::string(90, 'x'), parent.path()};
  std::filesystem::create_directory(parents[2]);
  const auto folder = PrivateFolder::create(parents, "broker");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(std::filesystem::path(folder->path()).parent_path(), parent.path());
}

TEST(PrivateFolder, SaysWhyNoneTakesIt) {
  const TestFolder parent;
  const std::string long_parent = parent.path() + "/" + std::string(90, 'x');
  std::filesystem::create_directory(long_parent);
  const Status status = create_error({parent.path() + "/missing", "relative", long_parent});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(error_message(status),
              AllOf(HasSubstr("TMPDIR"), HasSubstr("/missing: No such file or directory"),
                    HasSubstr("relative: is no absolute path"), HasSubstr("the system allows 107")));
  EXPECT_TRUE(std::filesystem::is_empty(long_parent));
}

TEST(PrivateFolder, TheLongestPathOfASocketIsAllowedAndNoneThatIsLonger) {
  const TestFolder parent;
  // "/transept-XXXXXX/" has 17 bytes.
  const size_t fitting = PrivateFolder::kMaxSocketPathBytes - 17 - parent.path().size();
  const std::vector<std::string> parents = {parent.path()};
  EXPECT_TRUE(PrivateFolder::create(parents, std::string(fitting, 'n')).ok());
  EXPECT_THAT(error_message(create_error(parents, std::string(fitting + 1, 'n'))), HasSubstr("of 108 bytes"));
}

void make_older(const std::string& path, std::chrono::seconds by) {
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - by);
}

std::string owner_file(const std::string& folder) { return folder + "/" + std::string(PrivateFolder::kOwnerFile); }

TEST(PrivateFolder, OneWhoseOwnerWasKilledIsRemovedByTheNext) {
  const TestFolder parent;
  const std::vector<std::string> parents = {parent.path()};
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto folder = PrivateFolder::create(parents, "broker");
    ::_exit(folder.ok() && folder->write("secret", "0123").ok() ? 0 : 1);  // and no destructor runs
  }
  int status = -1;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  ASSERT_EQ(status, 0);
  const std::string left = std::filesystem::directory_iterator(parent.path())->path().string();
  ASSERT_TRUE(std::filesystem::exists(left + "/secret"));

  ASSERT_TRUE(PrivateFolder::create(parents, "broker").ok());
  EXPECT_TRUE(std::filesystem::exists(left)) << "one that is young may be about to get its owner";
  make_older(owner_file(left), PrivateFolder::kLeastAge);
  ASSERT_TRUE(PrivateFolder::create(parents, "broker").ok());
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(PrivateFolder, NothingElseIsRemoved) {
  namespace fs = std::filesystem;
  const TestFolder parent;
  const std::vector<std::string> parents = {parent.path()};
  const auto folder_of = [&](const std::string& name, fs::perms mode) {
    std::string path = parent.path() + "/" + name;
    fs::create_directory(path);
    fs::permissions(path, mode);
    return path;
  };
  const auto add_owner = [&](const std::string& path) {
    parent.write(std::filesystem::relative(owner_file(path), parent.path()).string(), "");
    make_older(owner_file(path), std::chrono::hours(1));
  };
  std::vector<std::string> kept = {folder_of("transept-models", fs::perms::owner_all),
                                   folder_of("transept-public", fs::perms::owner_all | fs::perms::others_read),
                                   folder_of("transept-another", fs::perms::owner_all),
                                   folder_of("personal-abcdef", fs::perms::owner_all)};
  for (size_t i = 1; i < kept.size(); ++i) add_owner(kept[i]);
  fs::create_symlink(kept[1], parent.path() + "/transept-linked");
  const auto alive = PrivateFolder::create(parents, "broker");
  ASSERT_TRUE(alive.ok());
  make_older(owner_file(alive->path()), std::chrono::hours(1));
  kept.push_back(alive->path());

  ASSERT_TRUE(PrivateFolder::create(parents, "broker").ok());
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST(RuntimeFolders, AreTheVariablesInOrder) {
  const ScopedVariable runtime("XDG_RUNTIME_DIR", "/run/user/1"), temporary("TMPDIR", "/var/tmp");
  EXPECT_THAT(runtime_folders(), ElementsAre("/run/user/1", "/var/tmp", "/tmp"));
  const ScopedVariable none("XDG_RUNTIME_DIR", "");
  EXPECT_THAT(runtime_folders(), ElementsAre("/var/tmp", "/tmp"));
}

TEST(RandomSecret, IsASecretThatInstancesTake) {
  const std::string secret = random_secret().value();
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(secret, random_secret().value());
  const TestFolder parent;
  const std::vector<std::string> parents = {parent.path()};
  const PrivateFolder folder = PrivateFolder::create(parents, "broker").value();
  ASSERT_TRUE(folder.write("secret", secret).ok());
  EXPECT_TRUE(EcSecret::read(folder.path() + "/secret").ok());
}

}  // namespace
}  // namespace transept
