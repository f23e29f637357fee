// Shows an answer as it is generated: stream MODEL TEXT [FIELDS]
// FIELDS: a JSON object of request fields, for instance '{"max_tokens": 64}'.
#include <stdio.h>
#include <transept.h>

static int32_t show(void* data, const transept_result* delta) {
  (void)data;
  const transept_text text = transept_result_text(delta);
  fwrite(text.data, 1, text.size, stdout);
  fflush(stdout);
  return 0;  // anything else aborts the request
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: stream MODEL TEXT [FIELDS]\n");
    return 2;
  }
  transept_error* error = NULL;
  transept_model* model = NULL;
  transept_code code = transept_model_load(argv[1], NULL, &model, &error);
  if (code == TRANSEPT_OK) {
    transept_request request = {.struct_size = sizeof request};
    request.prompt = transept_str(argv[2]);
    request.fields_json = transept_str(argc > 3 ? argv[3] : NULL);
    code = transept_generate_stream(model, &request, show, NULL, NULL, &error);
  }
  if (code == TRANSEPT_OK) putchar('\n');
  if (code != TRANSEPT_OK) fprintf(stderr, "stream: %s: %s\n", transept_code_name(code), transept_error_message(error));
  transept_error_free(error);
  transept_model_free(model, NULL);
  return code == TRANSEPT_OK ? 0 : 1;
}
