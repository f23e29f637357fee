// What is spoken in an audio file, laid end to end: sequential mode with vad_filter decodes this, and pauses of over
// two seconds not at all. Frames of the joined audio stand for frames of the file. Immutable, so thread-safe.
//
// Source: faster_whisper/vad.py (collect_chunks, SpeechTimestampsMap), transcribe.py (restore_speech_timestamps), with
// the voice detector of this program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speech/decoding_rules.h"
#include "speech/transcript.h"
#include "speech/voice_activity.h"

namespace transept {

class SpokenAudio final {
 public:
  // `voice`: all frames of the file; `clips`: the parts of it that are asked for. A clip that is too short to judge
  // (kTooShortToJudge) is spoken.
  SpokenAudio(std::span<const FrameVoice> voice, std::span<const FrameRange> clips);

  int64_t num_frames() const { return num_frames_; }  // of the joined audio
  // What is spoken of each clip, in joined frames. May be empty.
  const std::vector<FrameRange>& clips() const { return clips_; }
  // The parts of the file that joined frames are, in order. REQUIRES: 0 <= begin <= end <= num_frames().
  std::vector<FrameRange> parts(const FrameRange& joined) const;

  // The frame of the file at a joined one. A frame between two parts is the end of the first.
  int64_t file_frame(int64_t joined) const;
  // Sets the times of a segment of the joined audio to those of the file. A word lies in one part, that of its middle.
  void restore_times(Segment& segment) const;

 private:
  struct Part {
    FrameRange file;
    int64_t begin = 0;  // in joined frames
    int64_t end() const { return begin + file.end - file.begin; }
  };
  // The part that holds a joined time; an end is that of the part before it. REQUIRES: there are parts.
  const Part& part_at(double seconds, bool is_end) const;

  std::vector<Part> parts_;
  std::vector<FrameRange> clips_;
  int64_t num_frames_ = 0;
};

}  // namespace transept
