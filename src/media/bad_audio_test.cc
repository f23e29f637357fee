// Files that are cut, damaged, lying or hostile: an answer that names the reason, in bounded time and memory, and never
// a crash. What each of ../shared/audio/broken must give stands in its broken.jsonl.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <random>

#include "base/source_dir_testing.h"
#include "media/audio_reader.h"
#include "media/media_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The smallest of each container and coding.
std::vector<std::pair<std::string, std::string>> seeds() {
  std::vector<std::pair<std::string, std::string>> files;
  const std::string folder = str_cat(source_dir(), "/tests/fuzz/audio_reader_fuzz");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.emplace_back(entry.path().filename().string(), file_text(entry.path().string()));
  }
  std::sort(files.begin(), files.end());
  EXPECT_GE(files.size(), 30u);
  return files;
}

// Decodes what can be decoded; samples must be ones.
void use(const std::string& content) {
  const auto samples = decode_text(content, {.max_seconds = 20});
  if (!samples.ok()) {
    ASSERT_FALSE(error_message(samples.status()).empty());
    return;
  }
  ASSERT_LE(samples->size(), 20u * 16000);
  for (const float x : *samples) ASSERT_TRUE(x >= -1 && x <= 1);
}

std::string reason(std::string content, const AudioReader::Options& options = {}) {
  const auto samples = decode_text(std::move(content), options);
  EXPECT_FALSE(samples.ok());
  return samples.ok() ? "" : error_message(samples.status());
}

TEST(BadAudio, EveryPrefix) {
  for (const auto& [name, content] : seeds()) {
    SCOPED_TRACE(name);
    for (size_t size = 0; size < content.size(); size += size < 128 ? 1 : size < 1500 ? 23 : 211) {
      ASSERT_NO_FATAL_FAILURE(use(content.substr(0, size))) << size;
    }
  }
}

TEST(BadAudio, FlippedBits) {
  std::mt19937 random(14);
  for (const auto& [name, content] : seeds()) {
    SCOPED_TRACE(name);
    for (int round = 0; round < 60; ++round) {
      std::string damaged = content;
      const size_t reach =
          round % 2 == 0 ? std::min<size_t>(200, content.size()) : content.size();  // headers more often
      for (int i = 0; i <= round % 5; ++i) damaged[random() % reach] ^= static_cast<char>(1 << random() % 8);
      ASSERT_NO_FATAL_FAILURE(use(damaged)) << round;
    }
  }
}

TEST(BadAudio, NothingThatNamesOtherFiles) {
  // FFmpeg 6 and later know this one by a file's name alone.
  EXPECT_THAT(reason("#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.wav\n"),
              ::testing::AnyOf(HasSubstr("'hls', which is not accepted"), HasSubstr("is no audio")));
  EXPECT_THAT(reason("ffconcat version 1.0\nfile 'other.wav'\n"), HasSubstr("'concat', which is not accepted"));
  EXPECT_THAT(reason("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n"),
              HasSubstr("not accepted"));
}

TEST(BadAudio, NumbersThatCannotBe) {
  const std::string data(8000, '\0');
  EXPECT_EQ(reason(""), "is empty (0 bytes)");
  EXPECT_THAT(reason("Dear Sir or Madam, this is a letter and no sound at all."), HasSubstr("is no audio"));
  EXPECT_THAT(reason(make_wav({.channels = 0}, data)), HasSubstr("cannot be"));
  EXPECT_THAT(reason(make_wav({.channels = 65}, data)), HasSubstr("has 65 channels; accepted are 1 to 64"));
  EXPECT_THAT(reason(make_wav({.channels = 65535}, data)),  // FFmpeg 7 and later do not tell the number
              ::testing::AnyOf(HasSubstr("65535 channels"), HasSubstr("cannot be decoded as pcm_s16le")));
  EXPECT_THAT(reason(make_wav({.rate = 1}, data)), HasSubstr("a sampling rate of 1 Hz; accepted are 1000 to 768000"));
  EXPECT_THAT(reason(make_wav({.rate = 1000000}, data)), HasSubstr("1000000 Hz"));
  EXPECT_THAT(reason(make_wav({.rate = 0}, data)), HasSubstr("cannot be read as wav"));
  EXPECT_THAT(reason(make_wav({.format = 0x1234}, data)), HasSubstr("coding that is not known"));
  EXPECT_THAT(reason(make_wav({.format = 0x31}, data)), HasSubstr("'gsm_ms', which is not accepted"));
  EXPECT_EQ(reason(make_wav({}, "")), "holds no sound");
}

// ---- MP4 files that lie: boxes are a length, a name and what they hold.
std::string big(uint64_t value, int num_bytes) {
  std::string bytes = little(value, num_bytes);
  std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

template <typename... Parts>
std::string box(std::string_view name, const Parts&... parts) {
  const std::string inside = str_cat(parts...);
  return str_cat(big(inside.size() + 8, 4), name, inside);
}

struct Track {
  uint32_t num_samples = 1;
  uint32_t sample_size = 1;  // the same for all
  uint32_t num_chunks = 1;   // all at the file's beginning, samples divided among them
};

std::string make_track(const Track& track) {
  const std::string zeros(64, '\0');
  const auto zero = [&](size_t count) { return zeros.substr(0, count); };
  const std::string esds = box("esds", zero(4), "\x03\x17", zero(3), "\x04\x0f\x40\x15", zero(11), "\x05\x02\x14\x08");
  const std::string entry =
      box("mp4a", zero(6), big(1, 2), zero(8), big(1, 2), big(16, 2), zero(4), big(16000, 2), zero(2), esds);
  std::string offsets;
  for (uint32_t i = 0; i < track.num_chunks; ++i) offsets += big(0, 4);
  const std::string table =
      box("stbl", box("stsd", zero(4), big(1, 4), entry),
          box("stts", zero(4), big(1, 4), big(track.num_samples, 4), big(1024, 4)),
          box("stsc", zero(4), big(1, 4), big(1, 4), big(track.num_samples / track.num_chunks, 4), big(1, 4)),
          box("stsz", zero(4), big(track.sample_size, 4), big(track.num_samples, 4)),
          box("stco", zero(4), big(track.num_chunks, 4), offsets));
  return box("trak", box("mdia", box("mdhd", zero(12), big(16000, 4), big(16000, 4), zero(4)),
                         box("hdlr", zero(8), "soun", zero(13)), box("minf", table)));
}

std::string make_mp4(std::initializer_list<Track> tracks, size_t data_bytes) {
  std::string all;
  for (const Track& track : tracks) all += make_track(track);
  return str_cat(box("ftyp", "M4A ", big(0, 4)), box("moov", all), box("mdat", std::string(data_bytes, '\x21')));
}

TEST(BadAudio, AnIndexThatReadsTheSameBytesAgainAndAgain) {
  const double before = cpu_seconds();
  const std::string content = make_mp4({{.num_samples = 4000, .sample_size = 1 << 20, .num_chunks = 4000}}, 1 << 20);
  EXPECT_THAT(reason(content), HasSubstr("again and again"));
  EXPECT_LT(cpu_seconds() - before, 5);
}

TEST(BadAudio, AnIndexThatClaimsAllMemory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const uint32_t count : {1u << 24, 1u << 28, 0x7fffffffu, 0xffffffffu}) {  // the first: an index of 400 MB
    use(make_mp4({{.num_samples = count}}, 1 << 10));
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 192 * 1024) << "KiB";
}

TEST(BadAudio, MoreTracksThanAnybodyHas) {
  std::string tracks;
  for (int i = 0; i < 500; ++i) tracks += make_track({});
  use(str_cat(box("ftyp", "M4A ", big(0, 4)), box("moov", tracks), box("mdat", std::string(100, '\0'))));
}

// Frames that decode to nothing: each costs work, and the length of what is heard says nothing about it.
TEST(BadAudio, PacketsWithoutSoundAreCounted) {
  const std::string content = make_mp4({{.num_samples = 300'000}}, 1 << 20);
  EXPECT_THAT(reason(content), HasSubstr("more than 200000 packets that hold no sound"));
}

// By somebody else, while it is read: an error, where mapped bytes would be the process's end.
TEST(BadAudio, AFileThatShrinksIsAnErrorThatSaysBothLengths) {
  const std::string path = str_cat(::testing::TempDir(), "bad_audio_test_", ::getpid(), ".wav");
  const std::string content = make_wav({}, std::string(size_t{4} << 20, '\x11'));
  const auto write = [&] { std::ofstream(path, std::ios::binary) << content; };
  write();
  const auto bytes = AudioBytes::from_file(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto reader = AudioReader::open(*bytes, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::filesystem::resize_file(path, size_t{1} << 20);
  const std::string both = str_cat("was cut while it was read: it had ", content.size(), " bytes, and has 1048576 now");
  EXPECT_EQ(error_message(read_all(**reader).status()), both);
  std::filesystem::resize_file(path, 0);
  const Status reopened = AudioReader::open(*bytes, {}).status();
  EXPECT_THAT(error_message(reopened), HasSubstr("and has 0 now"));
  write();
  EXPECT_TRUE(AudioReader::open(*bytes, {}).ok()) << "what is there again is read again";
  std::filesystem::remove(path);
}

TEST(BadAudio, SharedBrokenFiles) {
  if (!std::filesystem::exists(shared_path("audio/broken"))) GTEST_SKIP() << "no ../shared/audio";
  for (const Json& row : read_jsonl(shared_path("audio/broken/broken.jsonl"))) {
    const std::string file = row.find("file")->as_string(), expect = row.find("expect")->as_string();
    SCOPED_TRACE(file);
    const double before = cpu_seconds();
    const auto bytes = AudioBytes::from_file(shared_path(str_cat("audio/", file)));
    EXPECT_EQ(bytes.ok(), row.find("absent") == nullptr);
    if (!bytes.ok()) continue;
    const auto reader = AudioReader::open(*bytes, {.max_seconds = row.find("bomb") != nullptr ? 3600.0 : 14400.0});
    StatusOr<std::vector<float>> samples = reader.ok() ? read_all(**reader) : reader.status();
    EXPECT_FALSE(expect == "error" && samples.ok());
    EXPECT_TRUE((expect != "ok" && expect != "partial") || samples.ok()) << samples.status();
    EXPECT_FALSE(samples.ok() && samples->empty());
    EXPECT_LT(cpu_seconds() - before, 5);
  }
}

}  // namespace
}  // namespace transept
