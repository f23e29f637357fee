// Transcribes a file as subtitles: transcribe MODEL FILE [OPTIONS] > out.srt
// OPTIONS: a JSON object, for instance '{"language": "en", "word_timestamps": true}'. Segments show on standard error
// as they are decided.
#include <stdio.h>
#include <transept.h>

static int fail(const char* what, transept_error* error) {
  fprintf(stderr, "transcribe: %s: %s\n", what, transept_error_message(error));
  transept_error_free(error);
  return 1;
}

static int32_t show(void* data, const transept_segment* segment) {
  (void)data;
  fprintf(stderr, "[%7.2f --> %7.2f] %.*s\n", segment->start, segment->end, (int)segment->text.size,
          segment->text.data);
  return 0;  // anything else ends the transcription
}

static int transcribe(transept_model* model, const char* path, const char* options_json) {
  transept_audio audio = {.struct_size = sizeof audio};
  audio.path = path;
  transept_transcribe_options options = {.struct_size = sizeof options};
  options.options_json = transept_str(options_json);
  options.on_segment = show;
  transept_error* error = NULL;
  transept_transcript* transcript = NULL;
  if (transept_transcribe(model, &audio, &options, &transcript, &error) != TRANSEPT_OK) return fail(path, error);
  char* text = NULL;
  size_t size = 0;
  int failed = 0;
  if (transept_transcript_write(transcript, "srt", transept_str(NULL), &text, &size, &error) != TRANSEPT_OK) {
    failed = fail(path, error);
  } else {
    fwrite(text, 1, size, stdout);
  }
  transept_free(text);
  transept_transcript_free(transcript);
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: transcribe MODEL FILE [OPTIONS] > out.srt\n");
    return 2;
  }
  transept_error* error = NULL;
  transept_model* model = NULL;
  if (transept_model_load(argv[1], NULL, &model, &error) != TRANSEPT_OK) return fail(argv[1], error);
  const int failed = transcribe(model, argv[2], argc > 3 ? argv[3] : NULL);
  transept_model_free(model, NULL);
  return failed;
}
