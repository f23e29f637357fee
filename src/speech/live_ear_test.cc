#include "speech/live_ear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "speech/audio_windows.h"
#include "speech/live_recording.h"
#include "speech/live_testing.h"

namespace transept::testing {
namespace {

struct Heard {
  std::vector<FrameVoice> voice;
  std::shared_ptr<const EncoderFeatures> features;
  int64_t num_frames = 0;
};

Heard hear(const AudioProcessor& processor, const std::vector<int16_t>& samples, int32_t rate, size_t piece) {
  LiveEar ear(processor, voice_log_mel(processor).value(), rate);
  Heard heard;
  for (size_t at = 0; at < samples.size(); at += piece) {
    ear.push(std::span(samples).subspan(at, std::min(piece, samples.size() - at)), heard.voice);
    EXPECT_LE(ear.num_frames() - std::ssize(heard.voice), 10);  // 0.1 s
    ear.forget(100);
  }
  heard.num_frames = ear.num_frames();
  heard.features = ear.features(120, 320);
  ear.finish(heard.voice);
  return heard;
}

TEST(LiveEar, HearsTheSameHoweverAudioComes) {
  House house;
  const AudioProcessor& processor = *house.model().media->audio();
  for (const int32_t rate : {8000, 16000, 44100}) {
    const std::vector<int16_t> samples = synthetic_audio_at(rate, 4, 5, {{1, 2}});
    const Heard whole = hear(processor, samples, rate, samples.size());
    EXPECT_EQ(std::ssize(whole.voice), 500);
    for (const size_t piece : {size_t{1}, size_t{997}}) {
      if (piece == 1 && rate != 8000) continue;
      const Heard cut = hear(processor, samples, rate, piece);
      EXPECT_EQ(cut.num_frames, whole.num_frames);
      EXPECT_EQ(cut.features->values, whole.features->values);
      ASSERT_EQ(cut.voice.size(), whole.voice.size());
      for (size_t i = 0; i < cut.voice.size(); ++i) EXPECT_EQ(cut.voice[i].probability, whole.voice[i].probability);
    }
  }
}

// A window of its own is what the processor makes of these samples, but for the edges, which hear their neighbours.
TEST(LiveEar, FeaturesAreTheProcessors) {
  House house;
  const AudioProcessor& processor = *house.model().media->audio();
  const std::vector<int16_t> samples = synthetic_audio(4, 16000 * 3);
  LiveEar ear(processor, voice_log_mel(processor).value(), 16000);
  std::vector<FrameVoice> voice;
  ear.push(samples, voice);
  const auto features = ear.features(0, 290);
  const RawAudio raw = raw_audio(samples);
  const auto wanted = processor.features(raw.samples);
  ASSERT_EQ(features->values.size(), wanted->values.size());
  for (size_t bin = 0; bin < 80; ++bin) {
    for (size_t frame = 0; frame < 290; ++frame) {
      EXPECT_NEAR(features->values[bin * 3000 + frame], wanted->values[bin * 3000 + frame], 1e-5);
    }
  }
}

TEST(LiveEar, KeepsWhatIsNotForgotten) {
  House house;
  const AudioProcessor& processor = *house.model().media->audio();
  LiveEar ear(processor, voice_log_mel(processor).value(), 16000);
  std::vector<FrameVoice> voice;
  ear.push(std::vector<int16_t>(16000 * 10), voice);
  ear.forget(50);
  EXPECT_EQ(ear.first_frame(), 0);  // too little to move the rest
  ear.forget(700);
  EXPECT_EQ(ear.first_frame(), 700);
  const int64_t num_frames = ear.num_frames();
  EXPECT_GE(num_frames, 998);
  ear.forget(5000);
  EXPECT_EQ(ear.first_frame(), num_frames);
  EXPECT_EQ(ear.num_frames(), num_frames);
}

TEST(LiveRecording, GivesBackWhatItTook) {
  LiveRecording recording;
  std::vector<int16_t> all = synthetic_audio(3, 300000);
  std::mt19937 random(2);
  int64_t begin = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t count = std::min<size_t>(1 + random() % 9000, all.size() - at);
    recording.append(std::span(all).subspan(at, count));
    at += count;
    ASSERT_EQ(recording.end(), static_cast<int64_t>(at));
    if (random() % 3 == 0) begin = std::max(begin, static_cast<int64_t>(random() % at));
    recording.forget(begin);
    ASSERT_EQ(recording.begin(), begin);
    ASSERT_EQ(recording.size(), static_cast<int64_t>(at) - begin);
    const int64_t from = begin + (recording.end() - begin) / 3;
    const AudioBytes file = recording.wav(from, recording.end(), 16000);
    const auto reader = AudioReader::open(file, {});
    if (from == recording.end()) continue;
    ASSERT_TRUE(reader.ok()) << reader.status();
    const std::vector<float> samples = read_all(**reader).value();
    ASSERT_EQ(std::ssize(samples), recording.end() - from);
    for (size_t i = 0; i < samples.size(); ++i) {
      ASSERT_EQ(samples[i], static_cast<float>(all[static_cast<size_t>(from) + i]) / 32768.0f);
    }
  }
}

TEST(LiveRecording, WritesTheFileThatOthersWrite) {
  LiveRecording recording;
  recording.append(std::vector<int16_t>{1, -2, 300, -32768});
  recording.forget(1);
  const AudioBytes file = recording.wav(1, 4, 44100);
  std::string bytes(file.size(), '\0');
  ASSERT_TRUE(file.read(0, std::span(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size())).ok());
  EXPECT_EQ(bytes, make_wav({.rate = 44100}, bytes_of(std::vector<int16_t>{-2, 300, -32768})));
}

}  // namespace
}  // namespace transept::testing
