// Transcribes a file as subtitles: transcribe MODEL FILE [OPTIONS] > out.srt
// OPTIONS: a JSON object, for instance '{"language": "en", "word_timestamps": true}'. Segments show on standard error
// as they are decided.
#include <iostream>
#include <transept.hpp>

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: transcribe MODEL FILE [OPTIONS] > out.srt\n";
    return 2;
  }
  try {
    transept::Model model(argv[1]);
    transept::TranscribeOptions options;
    options.json = argc > 3 ? argv[3] : "";
    options.on_segment = [](const transept::Segment& segment) {
      std::cerr << '[' << segment.start << " --> " << segment.end << "] " << segment.text << '\n';
      return true;  // false ends the transcription
    };
    std::cout << model.transcribe(transept::Audio::file(argv[2]), options).write("srt");
  } catch (const transept::Error& error) {
    std::cerr << "transcribe: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
