// Every level against the definition (a Fourier transform by its sum, dense filters, double precision); streams against
// whole windows; the reference's answers for the clips of ../shared.
#include "media/log_mel.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "media/log_mel_tables.h"
#include "media/media_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

double slaney_hertz(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27); }
double slaney_mel(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200 : 15 + 27 * std::log(hertz / 1000) / std::log(6.4);
}

// librosa.filters.mel, [bins, n_fft / 2 + 1].
std::vector<std::vector<double>> dense_filters(const LogMelOptions& options) {
  std::vector<std::vector<double>> filters;
  const double top = slaney_mel(options.sampling_rate / 2.0);
  for (int bin = 0; bin < options.num_mel_bins; ++bin) {
    double edges[3];
    for (int i = 0; i < 3; ++i) edges[i] = slaney_hertz(top * (bin + i) / (options.num_mel_bins + 1));
    auto& filter = filters.emplace_back();
    for (int k = 0; k <= options.n_fft / 2; ++k) {
      const double hertz = 1.0 * options.sampling_rate * k / options.n_fft;
      const double up = (hertz - edges[0]) / (edges[1] - edges[0]), down = (edges[2] - hertz) / (edges[2] - edges[1]);
      filter.push_back(std::max(0.0, std::min(up, down)) * 2 / (edges[2] - edges[0]));
    }
  }
  return filters;
}

// Raw log10 values [frames, bins], by the definition. REQUIRES: more samples than n_fft / 2.
std::vector<double> obvious(const LogMelOptions& options, const std::vector<float>& samples) {
  const int n = options.n_fft, pad = n / 2;
  const auto filters = dense_filters(options);
  std::vector<std::complex<double>> roots;
  roots.reserve(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) roots.push_back(std::polar(1.0, -2 * std::numbers::pi * i / n));
  std::vector<double> out;
  const auto size = static_cast<int>(samples.size());
  for (int frame = 0; frame < size / options.hop_length; ++frame) {
    std::vector<double> x;
    for (int i = 0; i < n; ++i) {
      int at = frame * options.hop_length + i - pad;
      at = at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
      x.push_back(samples[static_cast<size_t>(at)] * (0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / n)));
    }
    std::vector<double> power;
    for (int k = 0; k <= n / 2; ++k) {
      std::complex<double> sum = 0;
      for (int i = 0; i < n; ++i) sum += x[static_cast<size_t>(i)] * roots[static_cast<size_t>(int64_t{i} * k % n)];
      power.push_back(std::norm(sum));
    }
    for (const auto& filter : filters) {
      double sum = 0;
      for (size_t k = 0; k < filter.size(); ++k) sum += filter[k] * power[k];
      out.push_back(std::log10(std::max(sum, 1e-10)));
    }
  }
  return out;
}

// Speech-like: tones over noise that swell and fall, with a pause.
std::vector<float> make_sound(int count) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise;
  std::vector<float> samples;
  for (int i = 0; i < count; ++i) {
    const double t = i / 16000.0, swell = std::abs(std::sin(7 * t)) * (i / 4000 % 3 == 2 ? 0.0001 : 1);
    const double tones =
        std::sin(2 * std::numbers::pi * 150 * t) + 0.5 * std::sin(2 * std::numbers::pi * 1200 * t * (1 + t));
    samples.push_back(static_cast<float>(swell * (0.3 * tones + 0.05 * noise(random))));
  }
  return samples;
}

// All levels that are told apart here.
std::vector<Isa> levels() {
  std::vector<Isa> present;
  for (const Isa isa : present_isas()) {
    if (isa <= Isa::kAvx2) present.push_back(isa);
  }
  return present;
}

std::vector<float> raw_frames(const LogMel& log_mel, const std::vector<float>& samples, int64_t num_zeros = 0) {
  std::vector<float> frames;
  LogMelStream stream(log_mel);
  stream.push(samples, frames);
  stream.finish(frames, num_zeros);
  return frames;
}

double max_difference(const std::vector<float>& ours, const std::vector<double>& expected) {
  EXPECT_EQ(ours.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(ours.size(), expected.size()); ++i)
    worst = std::max(worst, std::abs(ours[i] - expected[i]));
  return worst;
}

TEST(LogMel, EveryLevelIsTheDefinition) {
  for (const Isa isa : levels()) {
    for (const LogMelOptions& options :
         {LogMelOptions{}, LogMelOptions{.num_mel_bins = 128},
          LogMelOptions{.num_mel_bins = 40, .n_fft = 512, .hop_length = 128},
          LogMelOptions{.num_mel_bins = 20, .n_fft = 2 * 3 * 7 * 11, .hop_length = 100},
          LogMelOptions{.num_mel_bins = 10, .n_fft = 26, .hop_length = 26},
          LogMelOptions{.num_mel_bins = 3, .n_fft = 2, .hop_length = 1},
          LogMelOptions{.num_mel_bins = 64, .n_fft = 1024, .hop_length = 320, .sampling_rate = 48000}}) {
      SCOPED_TRACE(str_cat(isa_name(isa), ", ", options.num_mel_bins, " bins, n_fft ", options.n_fft));
      const auto log_mel = LogMel::create(options, isa);
      ASSERT_TRUE(log_mel.ok()) << log_mel.status();
      const std::vector<float> sound = make_sound(options.n_fft > 26 ? 9000 : 1000);
      // Beside loud bins of the same frame, the quietest are not exact in single precision.
      EXPECT_LT(max_difference(raw_frames(*log_mel, sound), obvious(options, sound)), 1e-3);
    }
  }
}

TEST(LogMel, WindowIsNormalisedByItsOwnMaximum) {
  const LogMelOptions options;
  std::vector<float> sound = make_sound(9000);
  const int64_t length = 16000;
  std::vector<float> padded = sound;
  padded.resize(static_cast<size_t>(length));
  const std::vector<double> raw = obvious(options, padded);
  const double max = *std::max_element(raw.begin(), raw.end());
  for (const Isa isa : levels()) {
    const LogMel log_mel = LogMel::create(options, isa).value();
    ASSERT_EQ(log_mel.num_frames(length), 100);
    std::vector<float> out(80 * 100);
    log_mel.window(sound, length, out);
    for (size_t bin = 0; bin < 80; ++bin) {
      for (size_t t = 0; t < 100; ++t) {
        ASSERT_NEAR(out[bin * 100 + t], (std::max(raw[t * 80 + bin], max - 8) + 4) / 4, 1e-5) << bin << " " << t;
      }
    }
    // Longer audio is cut: what follows changes nothing.
    std::vector<float> longer = padded, again(80 * 100);
    longer.resize(20000, 0.9f);
    log_mel.window(longer, length, again);
    EXPECT_EQ(again, out);
  }
}

TEST(LogMel, SilenceAndNothingAreDefined) {
  const LogMel log_mel = LogMel::create({}).value();
  std::vector<float> out(80 * 10);
  log_mel.window({}, 1600, out);
  for (const float x : out) EXPECT_FLOAT_EQ(x, -1.5f);  // (log10(1e-10) + 4) / 4
  log_mel.window({}, 159, {});
  std::vector<float> frames;
  LogMelStream stream(log_mel);
  stream.finish(frames);
  EXPECT_TRUE(frames.empty());
  EXPECT_EQ(stream.max(), -10);
}

// Edges longer than the audio are mirrored on and on.
TEST(LogMel, AudioShorterThanItsEdge) {
  const LogMel log_mel = LogMel::create({.num_mel_bins = 8, .n_fft = 16, .hop_length = 2}).value();
  const std::vector<float> constant(3, 0.5f);
  const std::vector<float> frames = raw_frames(log_mel, constant);
  EXPECT_EQ(frames.size(), 8u);
  EXPECT_EQ(frames, [&] {
    std::vector<float> first = raw_frames(log_mel, std::vector<float>(100, 0.5f));
    first.resize(8);
    return first;
  }());
  const std::vector<float> two = {0.25f, 0.5f};
  EXPECT_EQ(raw_frames(log_mel, two).size(), 8u);
  const LogMel each = LogMel::create({.num_mel_bins = 8, .n_fft = 16, .hop_length = 1}).value();
  const std::vector<float> one = {0.25f};
  EXPECT_EQ(raw_frames(each, one).size(), 8u);
}

// The silence that finish() is told of, against the same pushed as samples: to the bit.
TEST(LogMelStream, SilenceAtTheEndIsThatOfZeros) {
  for (const LogMelOptions& options :
       {LogMelOptions{}, LogMelOptions{.num_mel_bins = 16, .n_fft = 64, .hop_length = 64},
        LogMelOptions{.num_mel_bins = 5, .n_fft = 50, .hop_length = 7},
        LogMelOptions{.num_mel_bins = 3, .n_fft = 2, .hop_length = 1}}) {
    for (const Isa isa : levels()) {
      const LogMel log_mel = LogMel::create(options, isa).value();
      const int n = options.n_fft;
      for (const int count : {0, 1, n / 2, n - 1, n + 1, 10 * n + 3}) {
        const std::vector<float> sound = make_sound(count);
        for (const int zeros : {0, 1, n / 2, n, 2 * n - 1, 2 * n, 2 * n + 1, 3 * n + options.hop_length, 20 * n + 5}) {
          SCOPED_TRACE(str_cat(isa_name(isa), ", n_fft ", n, ", ", count, " samples, ", zeros, " zeros"));
          std::vector<float> longer = sound;
          longer.resize(static_cast<size_t>(count) + static_cast<size_t>(zeros));
          std::vector<float> frames;
          LogMelStream stream(log_mel), reference(log_mel);
          stream.push(sound, frames);
          stream.finish(frames, zeros);
          std::vector<float> expected;
          reference.push(longer, expected);
          reference.finish(expected);
          ASSERT_EQ(frames, expected);
          ASSERT_EQ(stream.max(), reference.max());
          ASSERT_EQ(stream.num_samples(), count + zeros);
        }
      }
    }
  }
}

TEST(LogMelStream, PiecesOfAnySizeMakeTheSameFrames) {
  std::mt19937 random(5);
  for (const LogMelOptions& options :
       {LogMelOptions{}, LogMelOptions{.num_mel_bins = 16, .n_fft = 64, .hop_length = 64}}) {
    const LogMel log_mel = LogMel::create(options).value();
    std::vector<float> sound = make_sound(50'000);
    // Frames of zeros alone are not transformed; in the whole they are, with others.
    std::fill(sound.begin() + 20'000, sound.begin() + 24'000, 0.0f);
    for (const int64_t zeros : {0, 1, 161, 40'000}) {
      const std::vector<float> whole = raw_frames(log_mel, sound, zeros);
      EXPECT_EQ(static_cast<int64_t>(whole.size()), log_mel.num_frames(50'000 + zeros) * options.num_mel_bins);
      for (const size_t largest : {1u, 7u, 500u, 30'000u}) {
        std::vector<float> frames;
        LogMelStream stream(log_mel);
        for (size_t at = 0; at < sound.size();) {
          const size_t count = std::min(sound.size() - at, 1 + random() % largest);
          stream.push(std::span(sound).subspan(at, count), frames);
          at += count;
          // What is certain is there: all but the frames that reach over the end.
          ASSERT_GE(static_cast<int64_t>(frames.size()) / options.num_mel_bins,
                    static_cast<int64_t>(at) / options.hop_length - options.n_fft / 2 / options.hop_length - 1);
        }
        stream.finish(frames, zeros);
        ASSERT_EQ(frames, whole) << largest;
        EXPECT_EQ(stream.max(), *std::max_element(whole.begin(), whole.end()));
      }
    }
  }
}

TEST(LogMelStream, NormalizeCutsWindowsOutOfALongerStream) {
  const LogMel log_mel = LogMel::create({.num_mel_bins = 16}).value();
  const std::vector<float> raw = raw_frames(log_mel, make_sound(8000));  // 50 frames
  const float max = 2;
  std::vector<float> out(16 * 20);
  log_mel.normalize(std::span(raw).subspan(16 * 35, 16 * 15), max, 20, out);
  for (size_t bin = 0; bin < 16; ++bin) {
    for (size_t t = 0; t < 20; ++t) {
      const float expected = t < 15 ? (std::max(raw[(35 + t) * 16 + bin], max - 8) + 4) / 4 : 0;
      ASSERT_EQ(out[bin * 20 + t], expected) << bin << " " << t;
    }
  }
}

TEST(LogMel, OptionsOutOfRangeAreNamed) {
  const auto refused = [](const LogMelOptions& options) {
    const auto log_mel = LogMel::create(options);
    EXPECT_FALSE(log_mel.ok());
    return log_mel.ok() ? "" : error_param(log_mel.status());
  };
  EXPECT_EQ(refused({.num_mel_bins = 0}), "feature_size");
  EXPECT_EQ(refused({.num_mel_bins = 1025}), "feature_size");
  EXPECT_EQ(refused({.n_fft = 401}), "n_fft");
  EXPECT_EQ(refused({.n_fft = 0}), "n_fft");
  EXPECT_EQ(refused({.n_fft = 1 << 20}), "n_fft");
  EXPECT_EQ(refused({.hop_length = 0}), "hop_length");
  EXPECT_EQ(refused({.hop_length = 401}), "hop_length");
  EXPECT_EQ(refused({.sampling_rate = -1}), "sampling_rate");
}

TEST(LogMel, FiltersAreOfAreaOneAndSparse) {
  const MelFilters filters = make_mel_filters({.num_mel_bins = 80});
  const auto dense = dense_filters({.num_mel_bins = 80});
  size_t at = 0, nonzero = 0;
  for (size_t bin = 0; bin < 80; ++bin) {
    for (size_t k = 0; k < dense[bin].size(); ++k) {
      nonzero += dense[bin][k] > 0 ? 1 : 0;
      const auto i = static_cast<int64_t>(k) - filters.first[bin];
      const bool inside = i >= 0 && i < filters.count[bin];
      EXPECT_NEAR(inside ? filters.weights[at + static_cast<size_t>(i)] : 0.0, dense[bin][k], 1e-9);
    }
    at += static_cast<size_t>(filters.count[bin]);
  }
  EXPECT_EQ(at, filters.weights.size());
  EXPECT_NEAR(static_cast<double>(at), static_cast<double>(nonzero), 2);
}

// ---- the reference's answers
std::vector<float> npy_floats(const std::string& gz_path) {
  const std::string temporary = str_cat(::testing::TempDir(), "media_golden.npy");
  EXPECT_EQ(std::system(str_cat("gzip -dc '", gz_path, "' > '", temporary, "'").c_str()), 0);
  const std::string content = file_text(temporary);
  const size_t header = 10 + static_cast<unsigned char>(content[8]) + 256 * static_cast<unsigned char>(content[9]);
  EXPECT_THAT(content.substr(0, header), HasSubstr("'<f4'"));
  std::vector<float> values((content.size() - header) / sizeof(float));
  std::memcpy(values.data(), content.data() + header, values.size() * sizeof(float));
  return values;
}

TEST(LogMelGolden, SharedFeatures) {
  const std::string folder = shared_path("golden/audio/");
  if (!std::filesystem::exists(folder + "features.jsonl")) GTEST_SKIP() << "no ../shared/golden/audio";
  for (const Json& row : read_jsonl(folder + "features.jsonl")) {
    const auto bins = static_cast<size_t>(row.find("shape")->as_array()[0].as_int());
    const auto frames = static_cast<size_t>(row.find("shape")->as_array()[1].as_int());
    const auto stride = static_cast<size_t>(row.find("column_stride")->as_int());
    const std::vector<float> samples = decode_file(shared_path(row.find("audio")->as_string()));
    const std::vector<float> expected = npy_floats(folder + row.find("file")->as_string());
    const size_t columns = (frames + stride - 1) / stride;
    ASSERT_EQ(expected.size(), bins * columns);
    for (const Isa isa : levels()) {
      SCOPED_TRACE(str_cat(row.find("id")->as_string(), " ", isa_name(isa)));
      std::vector<float> out(bins * frames);
      LogMel::create({.num_mel_bins = static_cast<int32_t>(bins)}, isa)
          ->window(samples, static_cast<int64_t>(frames) * 160, out);
      double worst = 0;
      for (size_t bin = 0; bin < bins; ++bin) {
        double mean = 0;
        for (size_t t = 0; t < frames; ++t) mean += out[bin * frames + t] / static_cast<double>(frames);
        EXPECT_NEAR(mean, row.find("bin_mean")->as_array()[bin].as_double(), 1e-5);
        for (size_t column = 0; column < columns; ++column) {
          worst =
              std::max<double>(worst, std::abs(out[bin * frames + column * stride] - expected[bin * columns + column]));
        }
      }
      EXPECT_LT(worst, row.find("tolerance")->as_double());
    }
  }
}

}  // namespace
}  // namespace transept
