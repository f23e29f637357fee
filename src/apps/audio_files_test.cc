// What is read for an argument, and what its results are called.
#include "apps/audio_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "apps/transcript_files.h"
#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transept::testing::TestFolder;

std::vector<std::string> paths_of(const FoundFiles& found, const TestFolder& folder) {
  std::vector<std::string> paths;
  for (const FoundFile& input : found.inputs) {
    const std::string path = std::filesystem::path(input.path).lexically_normal().string();
    paths.push_back(path.starts_with(folder.path() + "/") ? path.substr(folder.path().size() + 1) : path);
    if (!input.problem.ok()) paths.back() += str_cat(": ", error_message(input.problem));
  }
  return paths;
}

std::vector<std::string> names_of(std::vector<std::string> paths, const TranscriptFiles& files = {}) {
  std::vector<FoundFile> inputs;
  inputs.reserve(paths.size());
  for (std::string& path : paths) inputs.push_back({.path = std::move(path)});
  name_outputs(inputs, files);
  std::vector<std::string> names;
  names.reserve(inputs.size());
  for (FoundFile& input : inputs) names.push_back(std::move(input.name));
  return names;
}

class FindAudio : public ::testing::Test {
 protected:
  FindAudio() {
    for (const char* name : {"b.wav", "A.MP3", "notes.txt", ".hidden.wav", "no_extension", "c.avi"})
      folder_.write(name, "x");
    std::filesystem::create_directories(folder_.path() + "/below/deep");
    std::filesystem::create_directories(folder_.path() + "/.git");
    std::filesystem::create_directories(folder_.path() + "/texts");
    for (const char* name : {"below/a.flac", "below/deep/z.ogg", ".git/x.wav", "texts/x.txt"}) folder_.write(name, "x");
    std::filesystem::create_directory_symlink(folder_.path(), folder_.path() + "/below/loop");
  }
  std::string in(const std::string& name) const { return folder_.path() + "/" + name; }
  std::vector<std::string> found(const std::vector<std::string>& arguments, bool recursive = false) const {
    return paths_of(find_audio(arguments, recursive), folder_);
  }

  TestFolder folder_;
};

TEST_F(FindAudio, AFolderIsItsAudioSorted) {
  EXPECT_THAT(found({folder_.path()}), ElementsAre("A.MP3", "b.wav", "c.avi"));
  EXPECT_THAT(found({folder_.path() + "/"}, true),
              ElementsAre("A.MP3", "b.wav", "c.avi", "below/a.flac", "below/deep/z.ogg"));
}

TEST_F(FindAudio, PipesInAFolderAreLeftOutAndDeadLinksAreTold) {
  ASSERT_EQ(::mkfifo(in("pipe.wav").c_str(), 0600), 0);
  std::filesystem::create_symlink(in("gone.wav"), in("texts/dead.wav"));
  EXPECT_THAT(found({folder_.path()}), ElementsAre("A.MP3", "b.wav", "c.avi"));
  EXPECT_THAT(found({in("texts")}), ElementsAre("texts/dead.wav"));
  EXPECT_THAT(found({in("pipe.wav")}), ElementsAre("pipe.wav"));
}

TEST_F(FindAudio, WhatGivesNothingIsAProblemAndTheOthersGoOn) {
  EXPECT_THAT(found({in("texts"), in("b.wav"), in("*.opus")}),
              ElementsAre(HasSubstr("texts: no audio in the folder (--recursive"), "b.wav",
                          HasSubstr("*.opus: no file has a name like that")));
  EXPECT_THAT(found({in("texts")}, true), ElementsAre(HasSubstr("and those below it")));
}

TEST_F(FindAudio, AnArgumentThatIsAFileIsTakenWhateverItIsCalled) {
  EXPECT_THAT(found({in("no_extension"), in("notes.txt"), in("gone.wav"), "-"}),
              ElementsAre("no_extension", "notes.txt", "gone.wav", "-"));
}

TEST_F(FindAudio, PatternsThatNoShellExpandedAreExpanded) {
  EXPECT_THAT(found({in("*.wav"), in("below/?.flac"), in("[A-B].*")}), ElementsAre("b.wav", "below/a.flac", "A.MP3"));
  folder_.write("take [1].wav", "x");  // a name that looks like one
  EXPECT_THAT(found({in("take [1].wav")}), ElementsAre("take [1].wav"));
  EXPECT_THAT(found({in("bel*")}), ElementsAre("below/a.flac"));  // a folder among what it finds
}

TEST_F(FindAudio, WhatIsGivenTwiceIsDoneOnce) {
  const std::vector<std::string> arguments = {in("b.wav"), in("below/../b.wav"), in("*.wav"), folder_.path(), "-", "-"};
  const FoundFiles twice = find_audio(arguments, false);
  EXPECT_THAT(paths_of(twice, folder_), ElementsAre("b.wav", "A.MP3", "c.avi", "-"));
  EXPECT_EQ(twice.num_repeated, 4u);
  // A folder whose files were all given before is not an empty one.
  EXPECT_THAT(found({in("below/a.flac"), in("below")}), ElementsAre("below/a.flac"));
}

TEST(NameOutputs, AreStemsAndNeverTheSameTwice) {
  EXPECT_THAT(names_of({"a.wav", "dir/b.tar.mp3", "-", "no_extension", "dir/.hidden"}),
              ElementsAre("a", "b.tar", "stdin", "no_extension", ".hidden"));
  EXPECT_THAT(names_of({"a.wav", "a.mp3", "x/a.mp3", "y/a.mp3", "y/a.wav", "a"}),
              ElementsAre("a", "a.mp3", "a.mp3-2", "a.mp3-3", "a.wav", "a-2"));
  EXPECT_THAT(names_of({"a.mp3.wav", "b/a.mp3", "a.mp3"}), ElementsAre("a.mp3", "a", "a.mp3-2"));
  EXPECT_THAT(names_of({"stdin.wav", "-"}), ElementsAre("stdin", "stdin-2"));
}

TEST(NameOutputs, NoResultIsWrittenOverAnInput) {
  TranscriptFiles files;
  files.formats = {TranscriptFormat::kTxt, TranscriptFormat::kJson};
  EXPECT_THAT(names_of({"talk.wav", "./talk.json"}, files), ElementsAre("talk.wav", "talk.json"));
  files.folder = "elsewhere";
  EXPECT_THAT(names_of({"talk.wav", "./talk.json"}, files), ElementsAre("talk", "talk.json"));
}

TEST(HasOutputs, IfAllFormatsAreThere) {
  const TestFolder folder;
  TranscriptFiles files;
  files.folder = folder.path();
  files.formats = {TranscriptFormat::kTxt, TranscriptFormat::kSrt};
  const FoundFile input{.path = "a.wav", .name = "a"};
  EXPECT_FALSE(has_outputs(files, input));
  folder.write("a.txt", "");
  EXPECT_FALSE(has_outputs(files, input));
  folder.write("a.srt", "");
  EXPECT_TRUE(has_outputs(files, input));
}

TEST(WriteOutputs, WritesEveryFormatWholeAndLeavesNothingElse) {
  const TestFolder folder;
  TranscriptFiles files;
  files.folder = folder.path();
  files.formats.assign(kTranscriptFormats.begin(), kTranscriptFormats.end());
  Transcript transcript{.text = " Hello.", .language = "en", .segments = {}};
  transcript.segments.push_back({.start = 0, .end = 1.5, .text = " Hello."});
  const FoundFile input{.path = "a.wav", .name = "a"};
  folder.write("a.txt", "older, and longer than what comes\n");
  ASSERT_TRUE(write_outputs(files, input, transcript).ok());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("a.txt", "a.vtt", "a.srt", "a.tsv", "a.json"));
  std::ifstream text(folder.path() + "/a.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(text), {}), "Hello.\n");
}

TEST(WriteFile, FailsByNameAndLeavesNothingBehind) {
  const TestFolder folder;
  std::filesystem::create_directory(folder.path() + "/a.txt");
  const Status in_the_way = write_file(folder.path() + "/a.txt", "x");
  EXPECT_THAT(error_message(in_the_way), HasSubstr("/a.txt: "));
  EXPECT_THAT(error_message(write_file(folder.path() + "/gone/a.txt", "x")), HasSubstr("gone/a.txt: No such file"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ReadAudio, ErrorsLeaveThePathToWhoeverReportsThem) {
  const TestFolder folder;
  const auto reason = [&](const std::string& path) {
    return error_message(read_audio(path, [] { return false; }).status());
  };
  EXPECT_EQ(reason(folder.path() + "/gone.wav"), "No such file or directory");
  EXPECT_EQ(reason(folder.path()), "is a folder");
  folder.write("a.wav", "sound");
  EXPECT_TRUE(read_audio(folder.path() + "/a.wav", [] { return false; }).ok());
  // It is there, and cannot be opened, not even by root.
  rlimit descriptors{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  const rlimit none{0, descriptors.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string why = reason(folder.path() + "/a.wav");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  EXPECT_EQ(why, "Too many open files");
}

TEST(ReadAudio, StreamsAreReadWholeUpToALimit) {
  const TestFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto written = [&](size_t bytes, size_t limit) {
    std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << std::string(bytes, 'x'); });
    Status status = read_audio(
                        pipe, [] { return false; }, limit)
                        .status();
    writer.join();
    return status;
  };
  EXPECT_TRUE(written(200'000, 200'000).ok());
  EXPECT_THAT(error_message(read_audio(
                                "/dev/zero", [] { return false; }, 1 << 20)
                                .status()),
              HasSubstr("more than the 1048576 bytes"));
  // Nobody writes: who waits can be called off.
  EXPECT_TRUE(absl::IsCancelled(read_audio(pipe, [] { return true; }).status()));
}

}  // namespace
}  // namespace transept
