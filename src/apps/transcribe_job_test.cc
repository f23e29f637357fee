// Several files at once, by a stand-in for the transcriber: order, failures, what ends everything.
#include "apps/transcribe_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/folder_testing.h"
#include "base/mutex.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using transept::testing::TestFolder;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, Closer>;

std::string text_of(const FilePtr& file) {
  std::string text(static_cast<size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

TranscribeResult result_of(const std::string& text, double seconds, const TranscribeObserver& observer) {
  TranscribeResult result;
  result.transcript = {.text = text, .language = "en", .duration = seconds};
  result.transcript.segments.push_back({.start = 0, .end = seconds, .text = text});
  result.counts.num_windows = 2;
  if (observer.on_segment) observer.on_segment(result.transcript.segments.front());
  if (observer.on_progress) observer.on_progress(seconds, seconds);
  return result;
}

class TranscribeJobTest : public ::testing::Test {
 protected:
  TranscribeJobTest() {
    settings_.num_workers = 3;
    settings_.files = {.folder = folder_.path(), .formats = {TranscriptFormat::kTxt}};
  }

  std::vector<FoundFile> inputs(const std::vector<std::string>& names) {
    std::vector<FoundFile> list;
    for (const std::string& name : names) {
      folder_.write(name, "x");
      list.push_back({.path = folder_.path() + "/" + name});
    }
    name_outputs(list, settings_.files);
    return list;
  }
  Status run(TranscribeJob& job) { return job.run(); }
  std::string written(const std::string& name) const {
    std::ifstream file(folder_.path() + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Without the temporary folder's name.
  std::string plain(std::string text) const {
    const std::string prefix = folder_.path() + "/";
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) text.erase(at, prefix.size());
    return text;
  }

  TestFolder folder_;
  TranscribeSettings settings_;
  FilePtr out_{std::tmpfile()}, notes_{std::tmpfile()};
  OrderedConsole console_{out_.get(), notes_.get()};
};

const auto kEngineIsWell = [] { return ok_status(); };

TEST_F(TranscribeJobTest, FilesAreToldInTheirOrderHoweverTheyEnd) {
  Mutex mutex;
  CondVar changed;
  int num_calls = 0;
  // The first to be called waits for the two others.
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver& observer,
                              const TranscribeLimits&) {
    {
      const MutexLock lock(mutex);
      const int call = num_calls++;
      changed.notify_all();
      while (call == 0 && num_calls < 3) changed.wait(mutex);
    }
    return StatusOr<TranscribeResult>(result_of(" text", 2, observer));
  };
  TranscribeJob job(transcribe, kEngineIsWell, settings_, inputs({"a.wav", "b.wav", "c.wav"}), console_);
  ASSERT_TRUE(run(job).ok());
  EXPECT_EQ(plain(text_of(out_)),
            "==> a.wav <==\n[00:00.000 --> 00:02.000]  text\n==> b.wav <==\n[00:00.000 --> 00:02.000]  text\n"
            "==> c.wav <==\n[00:00.000 --> 00:02.000]  text\n");
  EXPECT_EQ(written("a.txt") + written("b.txt") + written("c.txt"), "text\ntext\ntext\n");
  EXPECT_EQ(job.counts().num_written, 3);
  EXPECT_EQ(job.counts().audio_seconds, 6);
  EXPECT_EQ(job.counts().windows.num_windows, 6);
  EXPECT_THAT(job.unfinished(), IsEmpty());
  const std::string notes = plain(text_of(notes_));
  EXPECT_THAT(notes, HasSubstr("a.wav: 2.0 s of audio in "));
  EXPECT_THAT(notes, HasSubstr("sequential, 2 windows, 0 fallbacks\n"));
  EXPECT_THAT(notes, HasSubstr("3 files: 6.0 s of audio in "));
}

TEST_F(TranscribeJobTest, ABadFileIsNamedAndTheOthersGoOn) {
  settings_.num_workers = 1;
  std::vector<FoundFile> list = inputs({"a.wav", "b.wav", "c.wav"});
  list.insert(list.begin(), {.path = "texts", .name = "texts", .problem = not_found("no audio in the folder")});
  int call = 0;
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver& observer,
                              const TranscribeLimits&) -> StatusOr<TranscribeResult> {
    if (call++ == 1) return field_error("max_audio_seconds", "lasts 9 s; the limit is 5 s");
    return result_of(" text", 1, observer);
  };
  TranscribeJob job(transcribe, kEngineIsWell, settings_, std::move(list), console_);
  ASSERT_TRUE(run(job).ok());
  EXPECT_EQ(job.counts().num_failed, 2);
  EXPECT_EQ(written("a.txt") + written("b.txt") + written("c.txt"), "text\ntext\n");
  const std::string notes = plain(text_of(notes_));
  EXPECT_THAT(notes, HasSubstr("transept transcribe: texts: no audio in the folder\n"));
  EXPECT_THAT(notes, HasSubstr("transept transcribe: b.wav: lasts 9 s; the limit is 5 s\n"));
  EXPECT_THAT(notes, HasSubstr("; 2 failed\n"));
}

TEST_F(TranscribeJobTest, AnOptionThatNoFileCanBeServedWithEndsEverything) {
  std::atomic<int> num_calls = 0;
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver&,
                              const TranscribeLimits&) -> StatusOr<TranscribeResult> {
    ++num_calls;
    return field_error("word_timestamps", "the model has no alignment heads");
  };
  std::vector<std::string> names;
  names.reserve(50);
  for (int i = 0; i < 50; ++i) names.push_back(str_cat(i, ".wav"));
  TranscribeJob job(transcribe, kEngineIsWell, settings_, inputs(names), console_);
  EXPECT_EQ(error_param(run(job)), "word_timestamps");
  EXPECT_LE(num_calls, 3);  // those that were on their way
  EXPECT_EQ(text_of(notes_), "");
}

// A file that another's fatal error stops is neither told nor counted.
TEST_F(TranscribeJobTest, WhatEndsEverythingStopsTheFilesInFlight) {
  settings_.num_workers = 2;
  std::atomic<int> num_calls = 0, num_stopped = 0;
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver&,
                              const TranscribeLimits& limits) -> StatusOr<TranscribeResult> {
    if (num_calls++ == 1) return field_error("language", "the model does not know it");
    while (!limits.stop_token.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++num_stopped;
    return absl::CancelledError("stopped");
  };
  TranscribeJob job(transcribe, kEngineIsWell, settings_, inputs({"a.wav", "b.wav", "c.wav"}), console_);
  EXPECT_EQ(error_param(run(job)), "language");
  EXPECT_EQ(num_stopped, 1);
  EXPECT_EQ(num_calls, 2);
  EXPECT_EQ(job.counts().num_failed, 1);
  EXPECT_EQ(text_of(notes_), "");
}

TEST_F(TranscribeJobTest, AFailedEngineEndsEverything) {
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver&,
                              const TranscribeLimits&) -> StatusOr<TranscribeResult> {
    return absl::UnavailableError("stopped");
  };
  TranscribeJob job(
      transcribe, [] { return absl::InternalError("a step failed"); }, settings_, inputs({"a.wav", "b.wav"}), console_);
  EXPECT_EQ(error_message(run(job)), "a step failed");
}

TEST_F(TranscribeJobTest, ResultsOnStandardOutputComeInOrderAndAlone) {
  settings_.to_stdout = true;
  settings_.files.formats = {TranscriptFormat::kJson};
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver& observer,
                              const TranscribeLimits&) {
    EXPECT_FALSE(observer.on_segment);
    return StatusOr<TranscribeResult>(result_of(" text", 1, observer));
  };
  TranscribeJob job(transcribe, kEngineIsWell, settings_, inputs({"a.wav", "b.wav"}), console_);
  ASSERT_TRUE(run(job).ok());
  const std::string text = text_of(out_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_TRUE(text.starts_with("{\"text\":"));
  EXPECT_EQ(written("a.json"), "");
}

TEST_F(TranscribeJobTest, WhatCannotBeWrittenIsThatFilesFailure) {
  std::filesystem::create_directory(folder_.path() + "/a.txt");
  const auto transcribe = [&](const AudioSource&, const TranscribeOptions&, const TranscribeObserver& observer,
                              const TranscribeLimits&) {
    return StatusOr<TranscribeResult>(result_of(" text", 1, observer));
  };
  TranscribeJob job(transcribe, kEngineIsWell, settings_, inputs({"a.wav", "b.wav"}), console_);
  ASSERT_TRUE(run(job).ok());
  EXPECT_EQ(job.counts().num_failed, 1);
  EXPECT_EQ(written("b.txt"), "text\n");
  EXPECT_THAT(plain(text_of(notes_)), HasSubstr("transept transcribe: a.wav: a.txt: "));
}

TEST(Words, OfNotes) {
  EXPECT_EQ(title_case("haitian creole"), "Haitian Creole");
  EXPECT_EQ(speed_text(120, 4), "120.0 s of audio in 4.0 s (30.0x real time)");
  EXPECT_EQ(windows_text({.num_windows = 1, .num_requests = 9, .num_fallbacks = 2}), "1 window, 2 fallbacks");
}

}  // namespace
}  // namespace transept
