// Finds the windows of an audio file without speech, by the voice detector. They need no encode, and what models
// hallucinate in silence ("you", "Thank you.") stays out of the transcript. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/encoder_features.h"
#include "multimodal/audio_processor.h"
#include "speech/decoding_rules.h"
#include "speech/voice_activity.h"

namespace transept {

// Clips shorter than this may hold a word although the detector finds no voice: it needs some time to estimate the
// noise.
inline constexpr int64_t kTooShortToJudge = 100;  // frames

class SilentWindows final {
 public:
  // `voice`: all frames of the file. If the file is shorter than kTooShortToJudge and has no voice, all of it counts as
  // speech, unless it is digital silence.
  explicit SilentWindows(std::span<const FrameVoice> voice);

  // True if there is no speech in these frames or within 0.2 s on either side.
  bool is_silent(const FrameRange& window) const;
  // Returns the first frame of the range with speech within 0.2 s of it; range.end if there is none.
  int64_t first_speech(const FrameRange& range) const;

 private:
  std::vector<FrameRange> speech_;  // ascending, disjoint; 0.2 s of padding included
};

// True if one window, as `processor` has made its features, holds no speech in its audio_seconds. The levels of log-mel
// features are those that the encoder reads: what is 80 dB below the loudest is at that floor. False where it cannot be
// told: the front end's frames are not 0.01 s.
bool is_silent(const EncoderFeatures& features, const AudioProcessor& processor);

}  // namespace transept
