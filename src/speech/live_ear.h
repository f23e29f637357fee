// Listens to audio as it comes: brings it to the model's rate, detects voice, and keeps what hypotheses may be made of.
// (Finals are made of the samples themselves: live_recording.h.) Memory is bounded by what the owner forgets.
//
// Not thread-safe. A frame is 0.01 s; frame 0 is the first that was heard.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/encoder_features.h"
#include "media/log_mel.h"
#include "media/sinc_resampler.h"
#include "multimodal/audio_processor.h"
#include "speech/voice_activity.h"

namespace transept {

class LiveEar final {
 public:
  // Borrows the processor. `voice_mel`: of a model of samples (voice_log_mel); unused otherwise. `sampling_rate`: of
  // the audio, hertz. REQUIRES: check_frames() is ok.
  LiveEar(const AudioProcessor& processor, const LogMel& voice_mel, int32_t sampling_rate);

  // Takes the next samples; appends the voice of the frames that are decided now, 0.1 s behind at most.
  void push(std::span<const int16_t> samples, std::vector<FrameVoice>& decided);
  // The audio ends: appends the voice of the remaining frames. Nothing may follow.
  void finish(std::vector<FrameVoice>& decided);

  int64_t num_frames() const { return first_frame_ + std::ssize(rows_) / width_; }  // whole ones so far
  int64_t first_frame() const { return first_frame_; }                              // that is not forgotten
  // Forgets all frames before this one.
  void forget(int64_t frame);

  // The encoder's features of frames [begin, end) as a window of their own, normalised by their own maximum. REQUIRES:
  // first_frame() <= begin < end <= num_frames(), and 30 s at most.
  std::shared_ptr<const EncoderFeatures> features(int64_t begin, int64_t end) const;

 private:
  void listen(std::span<const float> samples, bool is_end, std::vector<FrameVoice>& decided);

  const AudioProcessor& processor_;
  SincResampler resampler_;
  int64_t width_;        // floats of a row
  int64_t voice_width_;  // and of one that the detector takes
  LogMelStream mel_;
  VoiceActivityDetector detector_;
  int64_t first_frame_ = 0;
  std::vector<float> rows_;  // log-mel values or samples, from first_frame_ on; the last row of samples may be a part
  std::vector<float> voice_rows_, floats_, resampled_;
};

}  // namespace transept
