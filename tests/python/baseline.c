/* What the same work takes in C: baseline MODEL COUNT [AUDIO]. Prints the median seconds of a request or a
   transcription, and the median of those that this thread computed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transept.h"

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  transept_model* model = NULL;
  transept_model_options options = {.struct_size = sizeof options};
  if (argc > 3) options.options_json = transept_str("{\"dtype\": \"float32\"}");
  options.threads = argc > 3 ? 0 : 1;
  if (argc < 3 || transept_model_load(argv[1], &options, &model, NULL) != TRANSEPT_OK) return 1;
  const int count = atoi(argv[2]);
  double* times = calloc((size_t)count, sizeof *times);
  double* computed = calloc((size_t)count, sizeof *computed);
  for (int i = 0; i < count; ++i) {
    const double begin = now(CLOCK_MONOTONIC), begin_computing = now(CLOCK_THREAD_CPUTIME_ID);
    if (argc > 3) {
      transept_audio audio = {.struct_size = sizeof audio, .path = argv[3]};
      transept_transcribe_options how = {.struct_size = sizeof how, .language = transept_str("en")};
      how.options_json =
          transept_str("{\"beam_size\": 1, \"temperature_increment_on_fallback\": null, \"sure_language\": 0}");
      transept_transcript* transcript = NULL;
      if (transept_transcribe(model, &audio, &how, &transcript, NULL) != TRANSEPT_OK) return 1;
      transept_transcript_free(transcript);
    } else {
      transept_request request = {.struct_size = sizeof request};
      request.prompt = transept_str("a b");
      request.fields_json = transept_str("{\"max_tokens\": 1, \"temperature\": 0}");
      transept_result* result = NULL;
      if (transept_generate(model, &request, &result, NULL) != TRANSEPT_OK) return 1;
      transept_result_free(result);
    }
    times[i] = now(CLOCK_MONOTONIC) - begin;
    computed[i] = now(CLOCK_THREAD_CPUTIME_ID) - begin_computing;
  }
  qsort(times, (size_t)count, sizeof *times, by_size);
  qsort(computed, (size_t)count, sizeof *computed, by_size);
  printf("%.9f %.9f\n", times[count / 2], computed[count / 2]);
  return transept_model_free(model, NULL) == TRANSEPT_OK ? 0 : 1;
}
