// Translates standard input line by line: translate MODEL [FIELDS] < in.txt > out.txt
// FIELDS: a JSON object of request fields, for instance '{"source_lang": "en_XX", "target_lang": "fr_XX"}'.
// Up to 64 lines are in flight at once; they share the engine's batch, and their translations come out in order.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <transept.h>

enum { kInFlight = 64 };

static int fail(const char* what, transept_error* error) {
  fprintf(stderr, "translate: %s: %s\n", what, transept_error_message(error));
  transept_error_free(error);
  return 1;
}

// Waits for one translation, and writes it.
static int finish(transept_stream** stream) {
  transept_error* error = NULL;
  transept_result* result = NULL;
  if (transept_stream_next(*stream, -1, &result, &error) != TRANSEPT_OK) return fail("a line", error);
  const transept_text text = transept_result_text(result);
  fwrite(text.data, 1, text.size, stdout);
  putchar('\n');
  transept_result_free(result);
  transept_stream_free(*stream);
  *stream = NULL;
  return 0;
}

static int translate_lines(transept_model* model, const char* fields) {
  transept_stream* streams[kInFlight] = {NULL};
  char* line = NULL;
  size_t capacity = 0, count = 0;
  int failed = 0;
  for (ssize_t size = 0; !failed && (size = getline(&line, &capacity, stdin)) >= 0; ++count) {
    transept_stream** slot = &streams[count % kInFlight];
    if (*slot != NULL) failed = finish(slot);
    if (failed) break;
    if (size > 0 && line[size - 1] == '\n') --size;
    transept_request request = {.struct_size = sizeof request};
    request.prompt.data = line;
    request.prompt.size = (size_t)size;
    request.fields_json = transept_str(fields);
    transept_error* error = NULL;
    if (transept_submit(model, &request, slot, &error) != TRANSEPT_OK) failed = fail("a line", error);
  }
  for (size_t i = 0; i < kInFlight; ++i) {
    transept_stream** slot = &streams[(count + i) % kInFlight];
    if (*slot != NULL && !failed) failed = finish(slot);
    transept_stream_free(*slot);
  }
  free(line);
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: translate MODEL [FIELDS] < in.txt > out.txt\n");
    return 2;
  }
  transept_error* error = NULL;
  transept_model* model = NULL;
  if (transept_model_load(argv[1], NULL, &model, &error) != TRANSEPT_OK) return fail(argv[1], error);
  const int failed = translate_lines(model, argc > 2 ? argv[2] : NULL);
  transept_model_free(model, NULL);
  return failed;
}
