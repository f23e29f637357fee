// multi_modal_data to model inputs: which families take what, what one item may be, how much of it; and the front ends
// as preprocessor_config.json describes them.
#include "multimodal/registry.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::base64_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::json_of;
using testing::kMoonshine;
using testing::kTinyFrontEnd;
using testing::kTinyWhisper;
using testing::registry_of;
using testing::samples_of_wav;
using testing::TestFolder;
using testing::wav_of;

Json samples_item(int64_t count, int32_t rate = 16000) {
  Json::Object item;
  item.emplace_back("samples", Json(Json::Array(static_cast<size_t>(count), Json(0.125))));
  item.emplace_back("sampling_rate", Json(rate));
  return Json(std::move(item));
}

Json audio(Json item) {
  Json::Object data;
  data.emplace_back("audio", std::move(item));
  return Json(std::move(data));
}

std::unique_ptr<MultiModalRegistry> good_registry(std::string_view config, std::string_view preprocessor = "") {
  auto registry = registry_of(config, preprocessor);
  EXPECT_TRUE(registry.ok()) << registry.status();
  return registry.ok() ? std::move(registry).value() : std::make_unique<MultiModalRegistry>();
}

std::string message_of(const MultiModalRegistry& registry, const Json& data, const MediaLimits& limits = {}) {
  const Status status = registry.process(data, {}, limits).status();
  EXPECT_FALSE(status.ok()) << data.dump().substr(0, 100);
  EXPECT_EQ(error_param(status), "multi_modal_data");
  return error_message(status);
}

TEST(Registry, KnowsTheFamiliesThatTakeAudio) {
  EXPECT_NE(good_registry(kTinyWhisper, kTinyFrontEnd)->audio(), nullptr);
  EXPECT_NE(good_registry(kMoonshine)->audio(), nullptr);
  EXPECT_NE(good_registry(R"({"architectures": ["MoonshineForConditionalGeneration"], "vocab_size": 10})")->audio(),
            nullptr);
  const auto text = good_registry(R"({"model_type": "bart", "vocab_size": 10})");
  EXPECT_EQ(text->audio(), nullptr);
  EXPECT_THAT(message_of(*text, audio(samples_item(4))), AllOf(HasSubstr("bart"), HasSubstr("takes no audio")));
}

TEST(Registry, TakesOneItem) {
  const auto registry = good_registry(kTinyWhisper, kTinyFrontEnd);
  EXPECT_TRUE(registry->process(audio(samples_item(4)), {}, {}).ok());
  EXPECT_TRUE(registry->process(audio(Json(Json::Array{samples_item(4)})), {}, {}).ok());
  const auto with_null = json_of(R"({"image": null, "audio": {"samples": [0, 1], "sampling_rate": 16000}})");
  EXPECT_TRUE(registry->process(with_null, {}, {}).ok());
  const struct {
    std::string_view data, part;
  } cases[] = {
      {R"({"image": "a.png"})", "takes no image input"},
      {R"({"audio": {"samples": [0], "sampling_rate": 16000}, "video": [1]})", "takes no video input"},
      {R"({"audio": null})", "holds no audio"},
      {R"({"audio": [null]})", "holds no audio"},
      {"{}", "holds no audio"},
      {R"({"audio": []})", "holds no audio"},
      {R"({"audio": [{"samples": [0], "sampling_rate": 16000}, {"samples": [0], "sampling_rate": 16000}]})", "2 items"},
      {R"({"audio": [[{"samples": [0], "sampling_rate": 16000}]]})", "expected a path"},
      {R"({"audio": 7})", "expected a path"},
      {R"({"audio": "a.wav"})", "paths are not allowed"},
      {"7", "an object that names a modality, not a number"},
      {"null", "an object that names a modality, not null"},
      {"[]", "an object that names a modality, not a list"},
  };
  for (const auto& [data, part] : cases) EXPECT_THAT(message_of(*registry, json_of(data)), HasSubstr(part)) << data;
  const std::string long_name(100'000, 'x');
  Json::Object data;
  data.emplace_back(long_name, Json(1));
  EXPECT_LT(message_of(*registry, Json(std::move(data))).size(), 200u);
}

TEST(Registry, MoreThanAWindowIsRefusedByBothLengths) {
  const auto registry = good_registry(kTinyWhisper, kTinyFrontEnd);
  EXPECT_TRUE(registry->process(audio(samples_item(2560)), {}, {}).ok());
  EXPECT_THAT(message_of(*registry, audio(samples_item(2561))), HasSubstr("transept transcribe"));
  EXPECT_THAT(message_of(*registry, audio(samples_item(8000))),
              AllOf(HasSubstr("0.5 s"), HasSubstr("0.2 s"), HasSubstr("transept transcribe")));
  const MediaLimits first{.first_window_alone = true};
  const auto cut = registry->process(audio(samples_item(8000)), {}, first);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_DOUBLE_EQ(cut->front()->audio_seconds, 0.16);
  EXPECT_EQ(cut->front()->values, registry->process(audio(samples_item(2560)), {}, {})->front()->values);
}

// A file of exactly a window at another rate is a window, however the resampler rounds.
TEST(Registry, AWindowOfAnyRateIsAWindow) {
  const auto registry = good_registry(kTinyWhisper, kTinyFrontEnd);
  for (const int32_t rate : {8000, 11025, 22050, 24000, 32000, 44100, 48000, 96000}) {
    const auto features = registry->process(audio(samples_item(int64_t{rate} * 16 / 100, rate)), {}, {});
    EXPECT_TRUE(features.ok()) << rate << ": " << features.status();
  }
}

// Nothing beyond the positions is decoded: a long file costs no memory before it is refused.
TEST(Registry, AnEncoderWithoutAWindowTakesAsManyPositionsAsItIsTold) {
  const auto registry = good_registry(kMoonshine);
  const AudioProcessor& processor = *registry->audio();
  EXPECT_FALSE(processor.max_samples().has_value());
  for (const int32_t positions : {1, 2, 7, 100, 8192}) {
    const int64_t most = processor.max_samples_of(positions);
    const std::vector<float> samples(static_cast<size_t>(most) + 1);
    EXPECT_EQ(processor.features(std::span(samples).first(static_cast<size_t>(most)))->num_positions, positions);
    EXPECT_EQ(processor.features(samples)->num_positions, positions + 1);
  }
  const MediaLimits limits{.max_positions = 10};
  const int64_t most = processor.max_samples_of(10);
  EXPECT_TRUE(registry->process(audio(samples_item(most)), {}, limits).ok());
  EXPECT_THAT(message_of(*registry, audio(samples_item(160000)), limits),
              AllOf(HasSubstr("10.0 s"), HasSubstr("0.3 s"), HasSubstr("transept transcribe")));
  MediaLimits first = limits;
  first.first_window_alone = true;
  EXPECT_EQ(registry->process(audio(samples_item(160000)), {}, first)->front()->num_positions, 10);
}

// What comes as bytes of another process (POST /v1/encode): models read it without looking.
TEST(Registry, ChecksFeaturesThatItDidNotMake) {
  const auto mel = good_registry(kTinyWhisper, kTinyFrontEnd), wave = good_registry(kMoonshine);
  const EncoderFeatures of_mel = *mel->process(audio(samples_item(100)), {}, {})->front();
  const EncoderFeatures of_wave = *wave->process(audio(samples_item(1000)), {}, {})->front();
  EXPECT_TRUE(mel->check(of_mel).ok());
  EXPECT_TRUE(wave->check(of_wave).ok());
  const auto message = [](const MultiModalRegistry& registry, const EncoderFeatures& features) {
    const Status status = registry.check(features);
    EXPECT_FALSE(status.ok());
    return error_message(status);
  };
  EXPECT_THAT(message(*mel, of_wave), HasSubstr("makes no audio features of this shape"));
  EXPECT_THAT(message(*wave, of_mel), HasSubstr("makes no audio features of this shape"));
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{6, 16}, {5, 15}, {5, 17}, {80}, {5, 4, 4}}) {
    EncoderFeatures other = of_mel;
    other.shape = shape;
    EXPECT_THAT(message(*mel, other), HasSubstr("of this shape"));
  }
  for (const auto& [positions, rows] : {std::pair(9, 0), std::pair(7, 0), std::pair(8, 8), std::pair(INT32_MAX, 0)}) {
    EncoderFeatures other = of_mel;
    other.num_positions = positions;
    other.num_rows = rows;
    EXPECT_THAT(message(*mel, other), HasSubstr("have 8 positions and 0 rows")) << positions;
  }
  EncoderFeatures none = of_wave;
  none.shape = {1};
  EXPECT_THAT(message(*wave, none), HasSubstr("of this shape"));
  EncoderFeatures picture = of_mel;
  picture.modality = Modality::kImage;
  EXPECT_THAT(message(*mel, picture), HasSubstr("(whisper) takes no image input"));
  EXPECT_THAT(message(*good_registry(R"({"model_type": "bart", "vocab_size": 10})"), of_mel),
              HasSubstr("takes no audio"));
}

TEST(Registry, ChecksPatchesThatItDidNotMake) {
  const TestFolder dir;
  dir.write("config.json",
            R"({"model_type": "pix2struct", "vision_config": {"patch_embed_hidden_size": 12, "seq_len": 5}})");
  dir.write("preprocessor_config.json",
            R"({"image_processor_type": "Pix2StructImageProcessor", "max_patches": 4, "patch_size": 2})");
  const auto registry = MultiModalRegistry::create(ModelConfig::load(dir.path()).value());
  ASSERT_TRUE(registry.ok()) << registry.status();
  const std::string pixels(3 * 6 * 4, 'x');
  const Json media = json_of(str_cat(R"({"image": {"width": 6, "height": 4, "rgb": ")", base64_of(pixels), "\"}}"));
  const EncoderFeatures patches = *(*registry)->process(media, {}, {})->front();
  EXPECT_TRUE((*registry)->check(patches).ok());
  EXPECT_EQ(patches.num_positions, patches.shape[0]);
  for (const float wrong : {5.0f, -1.0f, std::nanf(""), 1e30f}) {
    EncoderFeatures other = patches;
    other.values[1] = wrong;
    const Status status = (*registry)->check(other);
    EXPECT_THAT(error_message(status), HasSubstr("row or column")) << wrong;
    EXPECT_EQ(error_param(status), "values");
  }
  EncoderFeatures other = patches;
  other.shape = {1, 28};
  EXPECT_THAT(error_message((*registry)->check(other)), HasSubstr("of this shape"));
  other = patches;
  other.num_positions += 1;
  EXPECT_THAT(error_message((*registry)->check(other)), HasSubstr("positions"));
}

// A picture of more patches in a column than the tower has rows: its processor and its tower contradict each other.
TEST(Registry, APictureMayHaveMorePatchesThanTheTower) {
  const TestFolder dir;
  dir.write("config.json",
            R"({"model_type": "pix2struct", "vision_config": {"patch_embed_hidden_size": 12, "seq_len": 5}})");
  dir.write("preprocessor_config.json",
            R"({"image_processor_type": "Pix2StructImageProcessor", "max_patches": 9, "patch_size": 2})");
  const auto registry = MultiModalRegistry::create(ModelConfig::load(dir.path()).value());
  ASSERT_TRUE(registry.ok()) << registry.status();
  const auto message = [&](int width, int height) {
    const std::string pixels(static_cast<size_t>(3 * width * height), 'x');
    const Json media = json_of(str_cat(R"({"image": {"width": )", width, R"(, "height": )", height, R"(, "rgb": ")",
                                       base64_of(pixels), "\"}}"));
    return error_message((*registry)->process(media, {}, {}).status());
  };
  EXPECT_THAT(message(6, 6), HasSubstr("image: preprocessor_config.json gives 9 patches, and the tower takes up to 5"));
}

// ---- Front ends

TEST(LogMelProcessor, GivesWhatLogMelGives) {
  const auto registry = good_registry(kTinyWhisper, kTinyFrontEnd);
  const LogMel log_mel = LogMel::create({.num_mel_bins = 5}).value();
  for (const int64_t count : {1, 159, 1000, 2560}) {
    const std::vector<float> samples = samples_of_wav(wav_of(count));
    const auto features = registry->audio()->features(samples);
    EXPECT_THAT(features->shape, ElementsAre(5, 16));
    EXPECT_EQ(features->num_positions, 8);
    EXPECT_DOUBLE_EQ(features->audio_seconds, static_cast<double>(count) / 16000);
    std::vector<float> expected(5 * 16);
    log_mel.window(samples, 2560, expected);
    EXPECT_EQ(features->values, expected) << count;
  }
}

TEST(LogMelProcessor, FramesOfALongerStreamAreAWindowToo) {
  const auto registry = good_registry(kTinyWhisper, kTinyFrontEnd);
  const AudioProcessor& processor = *registry->audio();
  const std::vector<float> samples = samples_of_wav(wav_of(2560));
  LogMelStream stream(*processor.log_mel());
  std::vector<float> frames;
  stream.push(samples, frames);
  stream.finish(frames);
  const auto of_frames = processor.features_of_frames(frames, stream.max(), 0.16);
  const auto of_samples = processor.features(samples);
  ASSERT_EQ(of_frames->values.size(), of_samples->values.size());
  for (size_t i = 0; i < of_frames->values.size(); ++i) {
    EXPECT_NEAR(of_frames->values[i], of_samples->values[i], 1e-5) << i;
  }
  EXPECT_EQ(processor.features_of_frames({}, 0, 0)->shape, of_samples->shape);
}

// Older folders have no preprocessor_config.json.
TEST(LogMelProcessor, WithoutAFileItIsWhispers) {
  const auto registry = good_registry(R"({"model_type": "whisper", "vocab_size": 10, "num_mel_bins": 128})");
  EXPECT_EQ(registry->audio()->sampling_rate(), 16000);
  EXPECT_EQ(registry->audio()->max_samples(), 480000);
  const auto features = registry->audio()->features(std::vector<float>(10));
  EXPECT_THAT(features->shape, ElementsAre(128, 3000));
  EXPECT_EQ(features->num_positions, 1500);
}

TEST(LogMelProcessor, WhatIsWrongIsNamedWithItsFile) {
  const struct {
    std::string_view preprocessor, field, part;
  } cases[] = {
      {R"({"feature_size": 80})", "feature_size", "num_mel_bins 5"},
      {R"({"feature_size": "5"})", "feature_size", "whole number"},
      {R"({"feature_size": 0})", "feature_size", "from 1"},
      {R"({"sampling_rate": 999})", "sampling_rate", "from 1000"},
      {R"({"sampling_rate": 1e12})", "sampling_rate", "from 1000"},
      {R"({"n_fft": 1})", "n_fft", "from 2"},
      {R"({"n_fft": 100000})", "n_fft", "to"},
      {R"({"n_fft": 401, "n_samples": 2560})", "n_fft", ""},
      {R"({"hop_length": 0})", "hop_length", "from 1"},
      {R"({"hop_length": 401})", "hop_length", "to 400"},
      {R"({"chunk_length": 0})", "chunk_length", "from 1"},
      {R"({"chunk_length": 1e9})", "chunk_length", "from 1"},
      {R"({"n_samples": 0})", "n_samples", "from 1"},
      {R"({"n_samples": 2720})", "n_samples", "17 frames"},
      {R"({"n_samples": 100})", "n_samples", "0 frames"},
      {R"({"chunk_length": 30})", "n_samples", "max_source_positions 8"},
  };
  for (const auto& [preprocessor, field, part] : cases) {
    const Status status = registry_of(kTinyWhisper, preprocessor).status();
    EXPECT_FALSE(status.ok()) << preprocessor;
    EXPECT_THAT(error_message(status), AllOf(HasSubstr(field), HasSubstr(part))) << preprocessor;
    EXPECT_THAT(error_message(status), HasSubstr("preprocessor_config.json")) << preprocessor;
  }
  for (const std::string_view broken : {"[]", "{", "7", "\xff"}) {
    EXPECT_THAT(error_message(registry_of(kTinyWhisper, broken).status()), HasSubstr("preprocessor_config.json"));
    EXPECT_THAT(error_message(registry_of(kMoonshine, broken).status()), HasSubstr("preprocessor_config.json"));
  }
  const Status bins = registry_of(R"({"model_type": "whisper", "vocab_size": 10, "num_mel_bins": -1})").status();
  EXPECT_THAT(error_message(bins), AllOf(HasSubstr("config.json"), HasSubstr("num_mel_bins")));
}

// A request must not take gigabytes because a folder says so.
TEST(LogMelProcessor, AWindowIsOfBoundedSize) {
  const Status status = registry_of(R"({"model_type": "whisper", "vocab_size": 10, "num_mel_bins": 1024,
      "max_source_positions": 1000000})",
                                    R"({"hop_length": 1, "n_samples": 2000000})")
                            .status();
  EXPECT_THAT(error_message(status), AllOf(HasSubstr("n_samples"), HasSubstr("not supported")));
}

TEST(WaveformProcessor, GivesTheSamples) {
  const auto registry = good_registry(kMoonshine, R"({"sampling_rate": 16000, "do_normalize": false})");
  const AudioProcessor& processor = *registry->audio();
  EXPECT_EQ(processor.log_mel(), nullptr);
  const std::vector<float> samples = samples_of_wav(wav_of(5001));
  const auto features = processor.features(samples);
  EXPECT_EQ(features->values, samples);
  EXPECT_THAT(features->shape, ElementsAre(5001));
  EXPECT_EQ(features->num_positions, 11);  // transformers: _get_feat_extract_output_lengths(5001)
  EXPECT_DOUBLE_EQ(features->audio_seconds, 5001 / 16000.0);
  // Less than one position's worth is padded with silence.
  for (const size_t count : {0, 1, 127, 894}) {
    const auto padded = processor.features(std::span(samples).first(count));
    EXPECT_EQ(padded->values.size(), 895u);
    EXPECT_EQ(padded->num_positions, 1);
    EXPECT_TRUE(
        std::equal(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count), padded->values.begin()));
    EXPECT_DOUBLE_EQ(padded->audio_seconds, static_cast<double>(count) / 16000);
  }
}

TEST(WaveformProcessor, WhatIsWrongIsNamedWithItsFile) {
  for (const auto& [preprocessor, field] :
       {std::pair(R"({"sampling_rate": 0})", "sampling_rate"),
        std::pair(R"({"sampling_rate": "16000"})", "sampling_rate"),
        std::pair(R"({"do_normalize": true})", "do_normalize"), std::pair(R"({"do_normalize": 0})", "do_normalize")}) {
    const Status status = registry_of(kMoonshine, preprocessor).status();
    EXPECT_THAT(error_message(status), AllOf(HasSubstr("preprocessor_config.json"), HasSubstr(field))) << preprocessor;
  }
}

}  // namespace
}  // namespace transept
