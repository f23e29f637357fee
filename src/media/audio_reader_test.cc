// Every container and coding gives the samples that the ffmpeg program gives (5.1's; tests/ffmpeg has other releases);
// reading in pieces, other rates and raw samples give what they should; lengths are capped and memory does not grow
// with them.
#include "media/audio_reader.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "base/sanitized_testing.h"
#include "media/media_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

std::vector<float> sine(double hertz, int rate, int count) {
  std::vector<float> samples(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    samples[static_cast<size_t>(i)] = static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * hertz * i / rate));
  }
  return samples;
}

TEST(AudioReader, EveryFormatGivesWhatFfmpegGives) {
  const std::vector<Json> files = read_jsonl(fixture_path("expected.jsonl"));
  ASSERT_GE(files.size(), 36u);
  for (const Json& file : files) {
    const std::string name = file.find("file")->as_string();
    SCOPED_TRACE(name);
    auto reader = open_text(file_text(fixture_path(name)));
    ASSERT_TRUE(reader.ok()) << reader.status();
    const AudioInfo info = (*reader)->info();
    EXPECT_EQ(info.codec, file.find("codec")->as_string());
    EXPECT_EQ(info.sampling_rate, file.find("sampling_rate")->as_int());
    EXPECT_EQ(info.num_channels, file.find("num_channels")->as_int());
    const auto samples = read_all(**reader);
    ASSERT_TRUE(samples.ok()) << samples.status();
    if (name == "chained.ogg" && refuses_other_links()) {
      EXPECT_THAT((*reader)->warning(), HasSubstr("breaks off"));
      continue;
    }
    ASSERT_EQ(static_cast<int64_t>(samples->size()), file.find("num_samples")->as_int());
    const Json::Array& expected = file.find("samples")->as_array();
    const auto stride = static_cast<size_t>(file.find("stride")->as_int());
    // Decoders and the resampler change between releases: tests/ffmpeg compares the others' bits.
    if (ffmpeg_release().first != 5) continue;
    for (size_t i = 0; i < expected.size(); ++i) {
      const float ours = (*samples)[i * stride] * 32768;
      ASSERT_EQ(ours, std::round(ours)) << "sample " << i * stride << " is no 16-bit number";
      ASSERT_NEAR(ours, expected[i].as_double(), file.find("tolerance")->as_double()) << "sample " << i * stride;
    }
    EXPECT_DOUBLE_EQ((*reader)->seconds_read(), static_cast<double>(samples->size()) / 16000);
    EXPECT_EQ((*reader)->warning(), "");
  }
}

// The second track is another sound; mono.mp3 is the same as the first, but for what the coding costs.
TEST(AudioReader, TakesTheFirstAudioTrack) {
  const std::vector<float> track = decode_file(fixture_path("video.mp4")), mono = decode_file(fixture_path("s16.wav"));
  double error = 0, power = 0;
  for (size_t i = 0; i < mono.size(); ++i) {
    error += std::pow(track[i] - mono[i], 2);
    power += std::pow(mono[i], 2);
  }
  EXPECT_LT(error, 0.2 * power);
}

TEST(AudioReader, PiecesOfAnySizeMakeTheSameSamples) {
  std::mt19937 random(1);
  for (const char* name : {"stereo44.wav", "aac.m4a", "mono.flac", "chained.ogg"}) {
    const std::vector<float> whole = decode_file(fixture_path(name));
    auto reader = open_text(file_text(fixture_path(name)));
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::vector<float> pieces;
    for (;;) {
      std::vector<float> piece(1 + random() % 700);
      const auto count = (*reader)->read(piece);
      ASSERT_TRUE(count.ok()) << count.status();
      pieces.insert(pieces.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*count));
      if (*count < piece.size()) break;
    }
    EXPECT_EQ(pieces, whole) << name;
    std::vector<float> more(8);
    EXPECT_EQ((*reader)->read(more).value(), 0u) << "the end stays the end";
  }
}

TEST(AudioReader, FromFileMapsTheFile) {
  const auto bytes = AudioBytes::from_file(fixture_path("mono.opus"));
  ASSERT_TRUE(bytes.ok());
  auto reader = AudioReader::open(*bytes, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read_all(**reader).value(), decode_file(fixture_path("mono.opus")));
  EXPECT_FALSE(AudioBytes::from_file(fixture_path("absent.wav")).ok());
}

TEST(AudioReader, AnyRateAsked) {
  const std::string tone = make_wav({.rate = 48000}, bytes_of([] {
                                      std::vector<int16_t> samples;
                                      for (const float x : sine(1000, 48000, 48000))
                                        samples.push_back(static_cast<int16_t>(x * 32767));
                                      return samples;
                                    }()));
  for (const int rate : {8000, 16000, 22050, 44100, 48000}) {
    const auto samples = decode_text(tone, {.sampling_rate = rate});
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_NEAR(static_cast<double>(samples->size()), rate, 2) << rate;
    const std::vector<float> expected = sine(1000, rate, rate);
    for (size_t i = 200; i + 200 < expected.size(); ++i)
      ASSERT_NEAR((*samples)[i], expected[i], 2e-3) << rate << " " << i;
  }
}

TEST(AudioReader, ChannelsWithoutAPlaceAreMixedInEqualParts) {
  std::vector<int16_t> samples;
  for (int i = 0; i < 1000; ++i) {
    for (int channel = 0; channel < 12; ++channel) samples.push_back(static_cast<int16_t>(channel == 3 ? 12000 : 0));
  }
  const auto mono = decode_text(make_wav({.channels = 12}, bytes_of(samples)));
  ASSERT_TRUE(mono.ok()) << mono.status();
  ASSERT_EQ(mono->size(), 1000u);
  for (const float x : *mono) EXPECT_NEAR(x, 1000.0 / 32768, 1.0 / 32768);
}

TEST(AudioReader, FloatsThatAreNoSoundBecomeSilenceOrFullScale) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> samples = {0.5f, NAN, 0.25f, inf, -inf, 3e38f, -3e38f, 0.5f};
  const auto read = decode_text(make_wav({.format = 3, .bits = 32}, bytes_of(samples)));
  ASSERT_TRUE(read.ok()) << read.status();
  const float top = 32767.0f / 32768;
  EXPECT_THAT(*read, ::testing::ElementsAre(0.5f, 0.0f, 0.25f, top, -1.0f, top, -1.0f, 0.5f));
  std::vector<double> doubles(samples.begin(), samples.end());
  EXPECT_EQ(decode_text(make_wav({.format = 3, .bits = 64}, bytes_of(doubles))).value(), *read);
  // Resampled, so that one bad sample would spread.
  std::vector<float> many;
  for (int i = 0; i < 100; ++i) many.insert(many.end(), samples.begin(), samples.end());
  const auto resampled = decode_text(make_wav({.format = 3, .rate = 8000, .bits = 32}, bytes_of(many)));
  ASSERT_TRUE(resampled.ok()) << resampled.status();
  EXPECT_EQ(resampled->size(), 1600u);
  for (const float x : *resampled) EXPECT_TRUE(std::isfinite(x) && std::abs(x) <= 1);
}

TEST(AudioReader, RawSamplesPassAsTheyAre) {
  const std::vector<float> samples = {0.1f, -0.123456789f, 1.5f, 0};
  auto reader = AudioReader::from_samples(RawAudio{.samples = samples, .sampling_rate = 16000}, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->info().duration_seconds, 4.0 / 16000);
  EXPECT_EQ(read_all(**reader).value(), samples);
}

TEST(AudioReader, RawSamplesAreNotCopied) {
  RawAudio raw{.samples = std::vector<float>(100000, 0.25f), .sampling_rate = 16000};
  const float* data = raw.samples.data();
  const AudioSamples samples(std::move(raw));
  EXPECT_EQ(samples.samples().data(), data);
  // What a view shows is read when it is read: the caller's memory, and no copy of it.
  std::vector<float> memory(100000, 0.5f);
  auto reader = AudioReader::from_samples(AudioSamples(nullptr, memory, 16000), {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  memory.back() = -1;
  EXPECT_EQ(read_all(**reader).value().back(), -1);
}

TEST(AudioReader, RawSamplesOfAnotherRateAreResampled) {
  auto reader = AudioReader::from_samples(RawAudio{.samples = sine(440, 44100, 44100), .sampling_rate = 44100}, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto samples = read_all(**reader);
  ASSERT_TRUE(samples.ok());
  EXPECT_NEAR(static_cast<double>(samples->size()), 16000, 2);
  const std::vector<float> expected = sine(440, 16000, 16000);
  for (size_t i = 200; i + 200 < expected.size(); ++i) ASSERT_NEAR((*samples)[i], expected[i], 1e-4) << i;
}

TEST(AudioReader, RawSamplesThatCannotBeAreRefusedByField) {
  const auto refused = [](std::vector<float> samples, int32_t rate) {
    const auto reader =
        AudioReader::from_samples(RawAudio{.samples = std::move(samples), .sampling_rate = rate}, {.max_seconds = 2});
    EXPECT_FALSE(reader.ok());
    return reader.ok() ? "" : str_cat(error_param(reader.status()), " ", error_message(reader.status()));
  };
  EXPECT_THAT(refused({}, 16000), HasSubstr("samples is empty"));
  EXPECT_THAT(refused({0, NAN}, 16000), HasSubstr("samples[1] is not a finite"));
  EXPECT_THAT(refused({0, 0, -std::numeric_limits<float>::infinity()}, 16000), HasSubstr("samples[2]"));
  EXPECT_THAT(refused({1e30f}, 16000), HasSubstr("samples[0]"));
  EXPECT_THAT(refused({0}, 0), HasSubstr("sampling_rate"));
  EXPECT_THAT(refused({0}, -16000), HasSubstr("sampling_rate"));
  EXPECT_THAT(refused({0}, 768001), HasSubstr("sampling_rate"));
  EXPECT_THAT(refused(std::vector<float>(2001), 1000), HasSubstr("lasts 2 s; the limit is 2 s"));
}

TEST(AudioReader, ImpossibleOptionsAreErrors) {
  for (const AudioReader::Options& options :
       {AudioReader::Options{.sampling_rate = 0}, AudioReader::Options{.sampling_rate = 1 << 30},
        AudioReader::Options{.max_seconds = 0}, AudioReader::Options{.max_seconds = NAN}}) {
    EXPECT_FALSE(open_text(file_text(fixture_path("s16.wav")), options).ok());
  }
}

TEST(AudioReaderLength, AHeaderThatClaimsMoreIsRefusedWithBothLengths) {
  std::string content = file_text(fixture_path("mono.flac"));
  // The last 36 bits of bytes 18 to 25 are the number of samples: 10 hours.
  const uint64_t claimed = uint64_t{36000} * 16000;
  for (int i = 0; i < 4; ++i) content[static_cast<size_t>(25 - i)] = static_cast<char>(claimed >> (8 * i));
  const auto reader = open_text(content, {.max_seconds = 3600});
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(error_message(reader.status()), "lasts 36000 s; the limit is 3600 s");
}

TEST(AudioReaderLength, MoreThanTheHeaderSaysIsStoppedWhileDecoding) {
  const std::string one = file_text(fixture_path("adts.aac"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += one;
  const auto all = decode_text(many);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_GT(all->size(), 16000u * 25);

  auto reader = open_text(many, {.max_seconds = 5.25});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> out(16000);
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = (*reader)->read(out).status();
  EXPECT_EQ(error_message(status), "lasts more than 5.25 s, which is the limit");
  EXPECT_LE((*reader)->seconds_read(), 5.25);
  EXPECT_EQ((*reader)->read(out).status(), status) << "an error stays";
}

TEST(AudioReaderLength, ExactlyTheLimitIsRead) {
  const std::string second = make_wav({}, std::string(32000, '\1'));
  EXPECT_EQ(decode_text(second, {.max_seconds = 1}).value().size(), 16000u);
  EXPECT_FALSE(decode_text(make_wav({}, std::string(32002, '\1')), {.max_seconds = 1}).ok());
}

// Streaming writers leave sizes of 0 or 2^32 - 1 in the header; what is there is what there is.
TEST(AudioReaderLength, UnclosedWavIsNoLongFile) {
  for (const uint32_t size : {0xffffffffu, 0x7fffffffu, 4000000u}) {
    std::string content = make_wav({}, std::string(32000, '\1'));
    content.replace(4, 4, little(0xffffffff, 4));
    content.replace(40, 4, little(size, 4));
    const auto samples = decode_text(content, {.max_seconds = 10});
    ASSERT_TRUE(samples.ok()) << size << ": " << samples.status();
    EXPECT_EQ(samples->size(), 16000u);
  }
}

TEST(AudioReaderLength, AFileThatEndsEarlySaysSo) {
  std::string content = file_text(fixture_path("mono.flac"));
  std::string two = content;
  two[25] = static_cast<char>(0x00);
  two[24] = static_cast<char>(0x80);  // 32768 samples, 2 s, where 0.2 s are
  auto reader = open_text(two);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(read_all(**reader).value().size(), 3200u);
  EXPECT_THAT((*reader)->warning(), HasSubstr("ends after 0.2 s of the 2 s that its header promises"));
}

TEST(AudioReaderLength, MemoryDoesNotGrowWithLength) {
  // An hour at 16 kHz: 115 MB of zero pages that cost nothing, which as floats would be 230 MB.
  const size_t data = size_t{3600} * 32000;
  const std::string header = make_wav({}, "").replace(40, 4, little(data, 4));
  void* pages =
      mmap(nullptr, header.size() + data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memcpy(pages, header.data(), header.size());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  {
    auto reader = AudioReader::open({nullptr, {static_cast<uint8_t*>(pages), header.size() + data}}, {});
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::vector<float> out(16000);
    size_t total = 0;
    for (size_t count = 1; count > 0; total += count) count = (*reader)->read(out).value();
    EXPECT_EQ(total, data / 2);
  }
  getrusage(RUSAGE_SELF, &after);
  constexpr long kMost = (kSanitized ? 512 : 64) * 1024;  // sanitizers keep what was freed
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kMost) << "KiB";
  munmap(pages, header.size() + data);
}

TEST(AudioReaderChange, RateAndChannelsMayChangeOnTheWay) {
  if (refuses_other_links()) return;  // EveryFormatGivesWhatFfmpegGives has its warning
  const std::string chained = file_text(fixture_path("chained.ogg"));
  const size_t once = decode_text(chained).value().size();
  const auto thrice = decode_text(chained + chained + chained);
  ASSERT_TRUE(thrice.ok()) << thrice.status();
  EXPECT_GT(thrice->size(), 2 * once);
}

TEST(AudioReaderChange, ButNotForEver) {
  if (refuses_other_links()) return;
  const std::string chained = file_text(fixture_path("chained.ogg"));
  std::string many;
  for (int i = 0; i < 200; ++i) many += chained;
  const auto samples = decode_text(many);
  ASSERT_FALSE(samples.ok());
  EXPECT_THAT(error_message(samples.status()), HasSubstr("changes its sampling rate or channels more than 256 times"));
}

// How alike two sounds are, in [-1, 1].
double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

TEST(AudioReaderGolden, SharedFormatsAreTheSameSound) {
  if (!std::filesystem::exists(shared_path("audio/formats"))) GTEST_SKIP() << "no ../shared/audio";
  const std::vector<float> clip = decode_file(shared_path("audio/jfk.wav"));
  ASSERT_EQ(clip.size(), 176000u);
  for (const Json& row : read_jsonl(shared_path("audio/formats/index.jsonl"))) {
    const std::string file = row.find("file")->as_string();
    std::vector<float> samples = decode_file(shared_path(str_cat("audio/", file)));
    ASSERT_GE(samples.size(), clip.size()) << file;
    EXPECT_LT(samples.size(), clip.size() + 2048) << file;
    // Bare AAC frames do not say that the first 1024 samples are the encoder's delay; all others do, or have none.
    if (file == "formats/aac_adts.aac") samples.erase(samples.begin(), samples.begin() + 1024);
    // 8.1 leaves some 4 ms of the delay of Opus in Matroska, and so does PyAV with it (tests/ffmpeg).
    const bool is_opus_in_matroska = file == "formats/opus_webm.webm" || file == "formats/opus_mkv.mkv";
    if (is_opus_in_matroska && ffmpeg_release() >= std::pair(8, 1)) continue;
    EXPECT_GT(correlation(samples, clip), 0.99) << file;
  }
}

}  // namespace
}  // namespace transept
