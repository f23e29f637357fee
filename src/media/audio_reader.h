// Audio of any accepted container and coding, decoded piece by piece to mono floats at one rate, in memory that does
// not grow with its length. The one seam to FFmpeg: no type of it is seen here, and only audio_reader's own files
// include it. What it decodes is untrusted: containers and codings come from allow-lists, nothing but the bytes given
// is ever opened (no protocol, no playlist, no external reference), and the length is capped while decoding.
//
// A reader belongs to one thread at a time; different readers are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "media/audio_types.h"

namespace transept {

class AudioReader final {
 public:
  struct Options {
    int32_t sampling_rate = 16000;  // of what read() gives, hertz; kMinSamplingRate..kMaxSamplingRate
    double max_seconds = 14400;     // longer audio is an error that says both lengths
  };

  // Finds the container and the first audio track and decodes until there is sound, so that whatever cannot be read at
  // all is an error here: not audio, a container or coding that is not accepted, no audio track, an impossible rate or
  // number of channels, no sample in it, a length by the header beyond max_seconds. Messages give the reason and
  // not the name; the caller prefixes that.
  static StatusOr<std::unique_ptr<AudioReader>> open(AudioBytes audio, const Options& options);

  // Raw samples as if they had been read. At options.sampling_rate they pass unchanged, else they are resampled (in
  // floating point). Errors name the field ("samples", "samples[7]", "sampling_rate"): no samples, one that is not
  // finite or beyond +-32768, a rate out of range, more than max_seconds. (A handful of samples may resample to none.)
  static StatusOr<std::unique_ptr<AudioReader>> from_samples(RawAudio audio, const Options& options);

  ~AudioReader();
  AudioReader(const AudioReader&) = delete;
  AudioReader& operator=(const AudioReader&) = delete;

  // The next samples: mono, in [-1, 1], as `ffmpeg -i FILE -f s16le -ac 1 -ar RATE` gives them, over 32768
  // (openai-whisper, audio.py, load_audio). Fills `out` unless the audio ends first; 0 (for a non-empty `out`): the
  // end. A damaged packet is left out and a file that ends early ends, as ffmpeg does it; see warning(). Errors, which
  // stay: more than max_seconds of audio; input made to cost time or memory beyond all measure; a file that was cut
  // since it was opened, or cannot be read any more.
  StatusOr<size_t> read(std::span<float> out);

  const AudioInfo& info() const;
  double seconds_read() const;  // of what read() has given

  // What was passed over so far, for people: "3 damaged packets were left out", or "".
  std::string warning() const;

 private:
  class Impl;
  explicit AudioReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// All that is left of a reader: for audio that is known to be short (options.max_seconds bounds it).
StatusOr<std::vector<float>> read_all(AudioReader& reader);

}  // namespace transept
