// Which windows of an audio file have no speech, by the detector of voice: they need no encode, and what models make
// of silence ("you", "Thank you.") is not in the transcript. A value: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speech/decoding_rules.h"
#include "speech/voice_activity.h"

namespace transept {

// Clips shorter than this may hold a word where no voice is found in them: it takes the detector a while to tell noise.
inline constexpr int64_t kTooShortToJudge = 100;  // frames

class SilentWindows final {
 public:
  // Of a whole file's frames. Audio that is too short to judge is silent if there is nothing in it at all.
  explicit SilentWindows(std::span<const FrameVoice> voice);

  // Whether there is no speech in these frames and within 0.2 s on both sides.
  bool is_silent(const FrameRange& window) const;
  // The first frame of the range with speech in it or 0.2 s after it; the range's end: there is none.
  int64_t first_speech(const FrameRange& range) const;

 private:
  std::vector<FrameRange> speech_;  // ascending, apart
};

}  // namespace transept
