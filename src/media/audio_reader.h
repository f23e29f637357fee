// Decodes audio of any accepted container and codec, piece by piece, to mono floats at one rate, in memory that does
// not grow with its length. The only public header over FFmpeg: it exposes no type of FFmpeg, and only .cc files and
// internal headers of this folder include those. The input is untrusted: containers and codecs are on allow-lists,
// nothing but the given bytes is ever opened (no protocol, no playlist, no external reference), and decoding enforces
// the limit of length. Without FFmpeg's libraries WAV of one or two channels is read (wav_input.h), and rates are
// changed by sinc_resampler.h.
//
// Owned by the caller; used by one thread at a time. Different readers are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "media/audio_types.h"

namespace transept {

// Loads FFmpeg's libraries, as the first file does. Errors: kNotFound: one is missing (names it). Thread-safe.
Status load_audio_decoders();

// Which FFmpeg they are: "5.1.6-0+deb12u1"; "" without them. Thread-safe.
std::string audio_decoders_version();

class AudioReader final {
 public:
  struct Options {
    int32_t sampling_rate = 16000;  // of the output, hertz; kMinSamplingRate..kMaxSamplingRate
    double max_seconds = 14400;     // longer audio is an error
  };

  // Finds the container and the first audio track, and decodes until the first sample, so unreadable input fails here.
  // Errors: kInvalidArgument for options out of range, no audio, a container or codec that is not accepted, no audio
  // track, a rate or number of channels out of range, no sample, a length by the header more than a second above
  // max_seconds, or unreadable bytes; kUnimplemented if FFmpeg lacks the decoder; kNotFound if FFmpeg is not installed
  // and the file is no WAV; kResourceExhausted without memory. Messages give the reason; the caller adds the name.
  static StatusOr<std::unique_ptr<AudioReader>> open(AudioBytes audio, const Options& options);

  // Reads raw samples, of which it takes no copy. At options.sampling_rate they pass unchanged; otherwise they are
  // resampled in floating point, and very few may resample to none. Errors: kInvalidArgument; with a param ("samples",
  // "samples[7]", "sampling_rate") for no samples, a sample that is not finite or beyond +-32768, a rate out of range;
  // without param for more than max_seconds and options out of range.
  static StatusOr<std::unique_ptr<AudioReader>> from_samples(AudioSamples audio, const Options& options);

  ~AudioReader();
  AudioReader(const AudioReader&) = delete;
  AudioReader& operator=(const AudioReader&) = delete;

  // Reads the next samples: mono, as `ffmpeg -i FILE -f s16le -ac 1 -ar RATE` gives them, divided by 32768, so in [-1,
  // 1] (openai-whisper, audio.py, load_audio); raw samples keep their range. Fills `out` unless the audio ends first.
  // Returns the count; 0 for a non-empty `out` is the end. Skips damaged packets and ends early where the file does, as
  // ffmpeg does (warning()). Errors: kInvalidArgument for more than max_seconds of audio, input crafted to cost
  // unbounded time or memory, or a file that was truncated since open() or cannot be read; kResourceExhausted without
  // memory. After an error every read fails with it.
  StatusOr<size_t> read(std::span<float> out);

  const AudioInfo& info() const;
  double seconds_read() const;  // length of the samples that read() returned

  // Returns what was skipped so far, for people: "3 damaged packets were left out"; "" if nothing was.
  std::string warning() const;

 private:
  class Impl;
  explicit AudioReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads all remaining samples. For short audio: options.max_seconds bounds the memory. Errors: as read().
StatusOr<std::vector<float>> read_all(AudioReader& reader);

}  // namespace transept
