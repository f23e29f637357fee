// For tools/measure_voice.py: frames of log10 mel power on stdin (float32, 80 bins a frame), spans of speech and
// windows on stdout: "speech START END", "window START END". Arguments: "causal" decides as live audio does;
// "probabilities" adds "probability P...".
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "speech/speech_spans.h"

int main(int argc, char** argv) {
  constexpr int kBins = 80;
  bool is_causal = false, with_probabilities = false;
  for (int i = 1; i < argc; ++i) {
    is_causal = is_causal || std::strcmp(argv[i], "causal") == 0;
    with_probabilities = with_probabilities || std::strcmp(argv[i], "probabilities") == 0;
  }
  std::string bytes;
  char buffer[1 << 16];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) bytes.append(buffer, n);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  const std::vector<transept::FrameVoice> frames =
      transept::detect_voice(values, kBins, is_causal ? transept::VoiceMode::kCausal : transept::VoiceMode::kBothSides);
  const std::vector<transept::SpeechSpan> spans = transept::find_speech(frames);
  for (const auto& span : spans) std::printf("speech %.2f %.2f\n", span.start, span.end);
  for (const auto& window : transept::cut_windows(spans, frames)) {
    std::printf("window %.2f %.2f\n", window.start, window.end);
  }
  if (with_probabilities) {
    std::printf("probability");
    for (const auto& frame : frames) std::printf(" %.4f", static_cast<double>(frame.probability));
    std::printf("\n");
  }
  return 0;
}
