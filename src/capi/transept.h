// Transept as a library: models, requests, streams, transcripts. C99; the C++ face over it is transept.hpp.
//
//   transept_model* model = NULL;
//   transept_error* error = NULL;
//   if (transept_model_load("path/to/folder", NULL, &model, &error) != TRANSEPT_OK) { ... }
//   transept_request request = {.struct_size = sizeof request};
//   request.prompt = transept_str("Some text.");
//   transept_result* result = NULL;
//   if (transept_generate(model, &request, &result, &error) != TRANSEPT_OK) { ... }
//
// Rules of every function (docs/library.md has them at length):
//
// Errors. A function that can fail returns a transept_code. Its last parameter, which may be NULL, receives an object
// with the code, a message and the field that the error is about; the caller frees it. On failure the other outputs are
// NULL or 0. No C++ exception leaves a function. Null pointers, sizes, ranges and UTF-8 of JSON are checked.
//
// Structs with a struct_size grow at their end in later versions. The caller sets struct_size to sizeof and all other
// members to zero, which is the default, or to what they shall be. A library that is older than its caller refuses a
// member that it does not know, unless the member is zero. Structs without struct_size never change.
//
// Memory. A function that gives a handle has a function of the handle's name that frees it; NULL is allowed there.
// Inputs are copied, or read before the function returns, unless its comment says otherwise. Text that a handle gives
// lives as long as the handle, and ends with a zero byte that `size` does not count.
//
// Threads. "Any thread" means any number of threads at once over one handle. "One thread" means that calls over one
// handle must not overlap; such a call is refused (TRANSEPT_FAILED_PRECONDITION) or, where the comment says so,
// undefined. Handles are independent of each other. No handle may be used while or after it is freed.
//
// Processes. A child that fork() made has no engine threads. Every call over a handle that is older than the fork fails
// there with TRANSEPT_FORKED, and functions that free do nothing. Load models after the fork.
#ifndef TRANSEPT_H_
#define TRANSEPT_H_

#include <stddef.h>
#include <stdint.h>

#define TRANSEPT_VERSION_MAJOR 0
#define TRANSEPT_VERSION_MINOR 1
#define TRANSEPT_VERSION_PATCH 0
#define TRANSEPT_VERSION "0.1.0"

#define TRANSEPT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// ---- Codes, errors, text

typedef int32_t transept_code;
enum {
  TRANSEPT_OK = 0,
  TRANSEPT_INVALID_ARGUMENT = 1,    // an argument, option or field; transept_error_field names it
  TRANSEPT_OUT_OF_RANGE = 2,        // an input that is longer than the model's positions
  TRANSEPT_UNIMPLEMENTED = 3,       // known and not supported
  TRANSEPT_NOT_FOUND = 4,           // a file, a folder
  TRANSEPT_RESOURCE_EXHAUSTED = 5,  // the queue is full; memory for audio
  TRANSEPT_UNAVAILABLE = 6,         // the model was stopped or drains
  TRANSEPT_DEADLINE_EXCEEDED = 7,
  TRANSEPT_CANCELLED = 8,  // by a callback or a transept_cancellation
  TRANSEPT_DATA_LOSS = 9,  // a file that cannot be read to its end
  TRANSEPT_INTERNAL = 10,
  TRANSEPT_OUT_OF_MEMORY = 11,
  TRANSEPT_FORKED = 12,               // the handle belongs to the parent process
  TRANSEPT_FAILED_PRECONDITION = 13,  // a call at the wrong time: from inside a callback, on a handle in use
  TRANSEPT_PERMISSION_DENIED = 14
};

typedef struct transept_error transept_error;
TRANSEPT_API transept_code transept_error_code(const transept_error* error);   // any thread; of NULL: TRANSEPT_OK
TRANSEPT_API const char* transept_error_message(const transept_error* error);  // any thread; UTF-8, never NULL
TRANSEPT_API const char* transept_error_field(const transept_error* error);    // any thread; "": none
TRANSEPT_API void transept_error_free(transept_error* error);                  // one thread

// "invalid_argument"; "unknown" for any other number. Any thread; the text is constant.
TRANSEPT_API const char* transept_code_name(transept_code code);

// Bytes with a length. As an input: data NULL is absent, and no zero byte is needed behind it.
typedef struct transept_text {
  const char* data;
  size_t size;
} transept_text;

// A text from a zero-terminated string, or absent from NULL.
static inline transept_text transept_str(const char* string) {
  transept_text text = {string, 0};
  while (string && string[text.size] != 0) ++text.size;
  return text;
}

// The version of the library that runs, which may differ from TRANSEPT_VERSION. Any thread.
TRANSEPT_API const char* transept_version(void);

// Frees what a function gave as `char**`, `int32_t**` or `float**`. NULL is allowed. Any thread.
TRANSEPT_API void transept_free(void* memory);

// ---- Log

enum { TRANSEPT_LOG_ERROR = 0, TRANSEPT_LOG_WARNING = 1, TRANSEPT_LOG_INFO = 2 };

// One line without its end. Called on the thread that logs, one call at a time. Must not throw, nor call
// transept_log_set.
typedef void (*transept_log_fn)(void* data, int32_t level, transept_text line);

// Sends log lines up to `level` to `log`; NULL: to standard error. Process-wide. Without it, warnings and errors go to
// standard error. When it returns, the callback before it is not running and is never called again. Any thread. Errors:
// INVALID_ARGUMENT (level), FAILED_PRECONDITION (from inside the callback).
TRANSEPT_API transept_code transept_log_set(int32_t level, transept_log_fn log, void* data, transept_error** error);

// ---- Cancellation

// Ends the calls that it is given to, from any other thread. Outlives them or not, as the caller likes.
typedef struct transept_cancellation transept_cancellation;
TRANSEPT_API transept_code transept_cancellation_create(transept_cancellation** cancellation, transept_error** error);
// Any thread; not from a signal handler. Cannot be undone.
TRANSEPT_API transept_code transept_cancellation_cancel(transept_cancellation* cancellation, transept_error** error);
TRANSEPT_API void transept_cancellation_free(transept_cancellation* cancellation);  // one thread

// ---- Models

// A loaded model with its engine's threads. A process may have any number of them.
typedef struct transept_model transept_model;

typedef struct transept_model_options {
  size_t struct_size;
  int32_t threads;              // compute threads of each replica; 0: the processors, divided among the replicas
  int32_t max_queued_requests;  // requests that wait for their first step; 0: 512
  // An object with any of: attention_backend, block_size, cpu_affinity, device, download_dir, dtype, encode_slice,
  // header_font, hf_token, isa, kv_cache_dtype, kv_cache_memory (bytes), local_files_only, max_model_len,
  // max_num_batched_tokens, max_num_encoder_tokens, max_num_seqs, mllama_strict_mask, preemption_mode, quantization,
  // replicas, revision, seed, share_identical_inputs, shortlist, swap_space (bytes), threads, watermark. The meaning
  // and the defaults are those of the flags of `transept generate`; hf_token and local_files_only are HF_TOKEN and
  // HF_HUB_OFFLINE of this call.
  transept_text options_json;
  // While files of a model of the hub come: its name, the bytes that are there, and those that there will be. NULL: not
  // told. One call at a time, on a thread of the library; it must not call the library. Not called where all is cached.
  void (*on_download)(void* data, const char* name, int64_t done, int64_t total);
  void* data;  // for on_download
} transept_model_options;

// Loads a model and starts its threads. `name` is a folder in Hugging Face's layout, a bundled model, ORG/NAME[@REV] of
// the hub, or a short name of openai-whisper's ("tiny"). A model of the hub that is not whole in its cache is fetched
// first, which takes as long as it takes (docs/hub.md; HF_HUB_OFFLINE=1 forbids it). `options` may be NULL. Any thread.
// Errors: what is wrong with the name, the folder or an option; UNAVAILABLE (the hub cannot be reached),
// PERMISSION_DENIED (the hub wants a token), DATA_LOSS (a file came with other bytes than the hub says).
TRANSEPT_API transept_code transept_model_load(const char* name, const transept_model_options* options,
                                               transept_model** model, transept_error** error);

// Refuses new requests from here on (UNAVAILABLE), and waits until those in flight have ended. Any thread. Errors:
// DEADLINE_EXCEEDED (says how many are left after `timeout_seconds`), FAILED_PRECONDITION (from inside on_ready).
TRANSEPT_API transept_code transept_model_drain(transept_model* model, double timeout_seconds, transept_error** error);

// Stops the engine after its current step. Requests in flight end with UNAVAILABLE, and so do calls that wait for them
// on other threads. The handle stays valid: transept_tokenize and the JSON functions still work. Any thread, also from
// the callbacks of transept_generate_stream. A second call does nothing. Errors: FAILED_PRECONDITION (from inside
// on_ready).
TRANSEPT_API transept_code transept_model_stop(transept_model* model, transept_error** error);

// Stops, waits until calls that began on other threads have returned, and frees. Streams, results, transcripts and
// encoded inputs outlive the model; streams end with UNAVAILABLE. One thread. Errors: FAILED_PRECONDITION (from inside
// a callback of this library; nothing is freed then).
TRANSEPT_API transept_code transept_model_free(transept_model* model, transept_error** error);

// What the model is: family, sizes, limits, types, threads, KV blocks. One JSON object; transept_free it. Any thread.
TRANSEPT_API transept_code transept_model_info(const transept_model* model, char** json, transept_error** error);

// Counters since loading and the state after the engine's last step. One JSON object; transept_free it. Any thread.
TRANSEPT_API transept_code transept_model_stats(const transept_model* model, char** json, transept_error** error);

// ---- Texts and ids

enum {
  TRANSEPT_TOKENIZE_DECODER_SIDE = 1,      // the decoder's vocabulary, where the sides differ
  TRANSEPT_TOKENIZE_NO_SPECIAL_TOKENS = 2  // without the tokens that the tokenizer adds
};

typedef struct transept_tokenize_options {
  size_t struct_size;
  uint32_t flags;  // TRANSEPT_TOKENIZE_...
  transept_text source_lang, target_lang;
} transept_tokenize_options;

// Gives the ids of a text; transept_free them. Invalid UTF-8 is read as U+FFFD. `options` may be NULL. Any thread.
// Errors: INVALID_ARGUMENT (an unknown language; a text that is too long), FAILED_PRECONDITION (no tokenizer).
TRANSEPT_API transept_code transept_tokenize(const transept_model* model, transept_text text,
                                             const transept_tokenize_options* options, int32_t** ids, size_t* num_ids,
                                             transept_error** error);

// Gives the text of ids, zero-terminated; transept_free it. `size` may be NULL. Any thread. Errors: INVALID_ARGUMENT
// (an id outside the vocabulary), FAILED_PRECONDITION (no tokenizer).
TRANSEPT_API transept_code transept_detokenize(const transept_model* model, const int32_t* ids, size_t num_ids,
                                               int32_t skip_special_tokens, char** text, size_t* size,
                                               transept_error** error);

// Gives the spelling of a token in the vocabulary, zero-terminated ("" where the id has none); transept_free it. Tokens
// are pieces of text with the marks of the tokenizer ("\xe2\x96\x81word", "<s>"). `size` may be NULL. Any thread.
// Errors: INVALID_ARGUMENT (flags other than TRANSEPT_TOKENIZE_DECODER_SIDE; an id outside the vocabulary),
// FAILED_PRECONDITION (no tokenizer).
TRANSEPT_API transept_code transept_token_spelling(const transept_model* model, int32_t id, uint32_t flags, char** text,
                                                   size_t* size, transept_error** error);

// ---- Requests

// The encoder's side of a request, encoded once and pinned for several requests over it. The engine may evict it when
// it needs the memory; the next request then encodes it again.
typedef struct transept_encoded transept_encoded;
typedef struct transept_result transept_result;
typedef struct transept_stream transept_stream;

enum {
  TRANSEPT_REQUEST_STREAM = 1,         // transept_submit alone: results as they come, each with what is new
  TRANSEPT_REQUEST_SCORE = 2,          // generates nothing; the sum of log-probabilities of the decoder's prompt
  TRANSEPT_REQUEST_ENCODER_OUTPUT = 4  // result_info has the rows of the encoder's output
};

// The encoder's side is one of: prompt, prompt_ids, samples, encoded, or "prompt" in fields_json. The decoder's side is
// decoder_prompt, decoder_ids, "decoder_prompt" in fields_json, or absent.
typedef struct transept_request {
  size_t struct_size;
  transept_text prompt;
  const int32_t* prompt_ids;
  size_t num_prompt_ids;
  const float* samples;  // audio of one window, mono, full scale 1; transept_transcribe takes longer audio
  size_t num_samples;
  int32_t sampling_rate;  // hertz; 0: 16000
  uint32_t flags;         // TRANSEPT_REQUEST_...
  const transept_encoded* encoded;
  transept_text decoder_prompt;
  const int32_t* decoder_ids;
  size_t num_decoder_ids;
  // Every other field of docs/api.md, as one object: {"max_tokens": 32, "num_beams": 4, "target_lang": "fr_XX"}.
  transept_text fields_json;
  double timeout_seconds;  // time in the queue counts; 0: none
  // Ends the request early: its result has the tokens so far and TRANSEPT_FINISH_ABORT. The request keeps what it needs
  // of the cancellation. Not for transept_encode.
  transept_cancellation* cancellation;
  // transept_submit alone: called by an engine thread when the stream goes from empty to readable and when it ends,
  // also before transept_submit returns. It blocks the engine: it passes the notification on and returns. It may call
  // transept_submit, transept_stream_abort, transept_stream_free, and transept_stream_next with timeout 0; what would
  // wait is refused (FAILED_PRECONDITION). Not called once transept_stream_free has returned. Must not throw.
  void (*on_ready)(void* data);
  void* on_ready_data;
} transept_request;

// A piece of a stream. Not 0: the request is aborted, unless this was the last piece, and its result has
// TRANSEPT_FINISH_ABORT. The callback is not called again.
typedef int32_t (*transept_delta_fn)(void* data, const transept_result* delta);

// Runs a request and waits for its whole result. Any thread. Errors: those of the request by field; RESOURCE_EXHAUSTED
// (the queue is full), UNAVAILABLE, DEADLINE_EXCEEDED, FAILED_PRECONDITION (from inside on_ready).
TRANSEPT_API transept_code transept_generate(transept_model* model, const transept_request* request,
                                             transept_result** result, transept_error** error);

// The same, and calls `on_delta` on this thread for each piece as it comes, the last one included. `result`, which may
// be NULL, receives the whole. The callback may use the model, but not free it. Any thread. Errors: those of
// transept_generate. Beam search and best_of give one piece, at their end.
TRANSEPT_API transept_code transept_generate_stream(transept_model* model, const transept_request* request,
                                                    transept_delta_fn on_delta, void* data, transept_result** result,
                                                    transept_error** error);

// Adds a request and does not wait. Any thread, on_ready included. Errors: those of transept_generate that are known
// before the first step; the stream gives all others.
TRANSEPT_API transept_code transept_submit(transept_model* model, const transept_request* request,
                                           transept_stream** stream, transept_error** error);

// Gives what has come since the last call, and waits for it up to `timeout_seconds` (negative: no limit). *result is
// NULL if nothing came in time. With TRANSEPT_REQUEST_STREAM results are pieces, and the last one is finished;
// otherwise there is one. One thread; a second thread is refused. Errors: those of the request, which end the stream;
// FAILED_PRECONDITION (the stream has ended; from inside on_ready with a timeout other than 0).
TRANSEPT_API transept_code transept_stream_next(transept_stream* stream, double timeout_seconds,
                                                transept_result** result, transept_error** error);
// 1: the finished result or the error was given. Any thread.
TRANSEPT_API int32_t transept_stream_has_ended(const transept_stream* stream);
// The stream goes on to its finished result, which has TRANSEPT_FINISH_ABORT. Does nothing once the request has ended.
// Any thread.
TRANSEPT_API transept_code transept_stream_abort(transept_stream* stream, transept_error** error);
// Aborts the request if it has not ended. One thread.
TRANSEPT_API void transept_stream_free(transept_stream* stream);

// Pins the encoder's side of a request. Waits for the current step. Fields of the decoder's side are not read, nor is a
// text beside pictures that stand within the decoder's prompt: requests over these give it as decoder_prompt. Any
// thread. Errors: those of the fields; an input that never fits; UNAVAILABLE; FAILED_PRECONDITION (from inside
// on_ready).
TRANSEPT_API transept_code transept_encode(transept_model* model, const transept_request* request,
                                           transept_encoded** encoded, transept_error** error);
// Rows of the encoder's output. Any thread; of NULL: 0.
TRANSEPT_API int32_t transept_encoded_num_positions(const transept_encoded* encoded);
// One thread. Requests over it keep what they need.
TRANSEPT_API void transept_encoded_free(transept_encoded* encoded);

// ---- Results. Immutable: any thread, except for transept_result_free (one thread).

enum { TRANSEPT_FINISH_NONE = 0, TRANSEPT_FINISH_STOP = 1, TRANSEPT_FINISH_LENGTH = 2, TRANSEPT_FINISH_ABORT = 3 };

typedef struct transept_output {
  size_t struct_size;
  transept_text text;
  const int32_t* token_ids;  // generated tokens, the end token included
  size_t num_token_ids;
  double cumulative_logprob;  // natural
  double beam_score;          // ranks the answers of a beam search; NaN without one
  int32_t index;
  int32_t finish_reason;  // TRANSEPT_FINISH_...; NONE: the answer goes on (a piece of a stream)
} transept_output;

typedef struct transept_result_info {
  size_t struct_size;
  size_t num_outputs;
  const int32_t* encoder_ids;
  size_t num_encoder_ids;
  const int32_t* decoder_ids;  // the decoder's prompt as it ran
  size_t num_decoder_ids;
  // TRANSEPT_REQUEST_ENCODER_OUTPUT: [num_encoder_rows, encoder_width], row-major. Empty if another request's encode
  // of the same input was reused: load with share_identical_inputs false to rule that out.
  const float* encoder_output;
  size_t num_encoder_rows, encoder_width;
  double score;          // TRANSEPT_REQUEST_SCORE; else NaN
  double audio_seconds;  // of the encoder's audio
  // Seconds; negative: has not happened. From arrival to the first step, to the first token, to this result.
  double queue_seconds, first_token_seconds, total_seconds;
  int32_t is_finished;
} transept_result_info;

// Fills `info` as far as its struct_size reaches. Any thread. Errors: INVALID_ARGUMENT.
TRANSEPT_API transept_code transept_result_get_info(const transept_result* result, transept_result_info* info,
                                                    transept_error** error);
// Fills `output` with answer `index`, best first. Any thread. Errors: INVALID_ARGUMENT (no such answer).
TRANSEPT_API transept_code transept_result_get_output(const transept_result* result, size_t index,
                                                      transept_output* output, transept_error** error);
// The text of the best answer; "" if there is none. Any thread.
TRANSEPT_API transept_text transept_result_text(const transept_result* result);
// The result as docs/api.md has it ("A result"), log-probabilities and alignments included; transept_free it. Any
// thread.
TRANSEPT_API transept_code transept_result_json(const transept_result* result, char** json, transept_error** error);
// One thread, once no other uses it.
TRANSEPT_API void transept_result_free(transept_result* result);

// ---- Transcripts of speech

// One of path, bytes and samples.
typedef struct transept_audio {
  size_t struct_size;
  const char* path;   // a file of any container and coding that docs/transcribe.md lists
  const void* bytes;  // such a file in memory; not copied: read until the call returns
  size_t num_bytes;
  const float* samples;  // mono, full scale 1; not copied: read until the call returns
  size_t num_samples;
  int32_t sampling_rate;  // of samples, hertz; 0: 16000
} transept_audio;

// Decodes audio to mono samples at `sampling_rate` hertz (0: 16000), as transept_transcribe reads it; transept_free
// them. Longer audio than `max_seconds` (0: 4 hours) is an error. Needs no model. Any thread. Errors: INVALID_ARGUMENT
// (audio that cannot be read; a rate out of range), NOT_FOUND (the file; FFmpeg's libraries, for path and bytes).
TRANSEPT_API transept_code transept_decode_audio(const transept_audio* audio, int32_t sampling_rate, double max_seconds,
                                                 float** samples, size_t* num_samples, transept_error** error);

typedef struct transept_word {
  transept_text word;  // with its leading space, where the language writes them
  double start, end;   // seconds from the beginning of the audio
  double probability;
} transept_word;

typedef struct transept_segment {
  size_t struct_size;
  transept_text text;
  double start, end;  // seconds from the beginning of the audio
  const int32_t* token_ids;
  size_t num_token_ids;
  const transept_word* words;  // with word_timestamps
  size_t num_words;
  double temperature, avg_logprob, compression_ratio, no_speech_prob;  // of its window
  int32_t id;
  int32_t seek;  // the frame of 0.01 s at which its window begins
} transept_segment;

typedef struct transept_language {
  transept_text code;
  double probability;  // among the model's languages
} transept_language;

typedef struct transept_transcribe_options {
  size_t struct_size;
  transept_text language;  // a code or an English name; absent: detected
  transept_text task;      // "transcribe", the default, or "translate" to English
  // The other options of openai-whisper's transcribe(), by its names and with its defaults: {"beam_size": 5,
  // "word_timestamps": true, "initial_prompt": "..."}; also mode ("sequential", "batched"), batch_size, hotwords,
  // skip_silence, max_audio_seconds, seed. null: the option is not set. docs/library.md has the list.
  transept_text options_json;
  double timeout_seconds;               // 0: none
  transept_cancellation* cancellation;  // ends the call with CANCELLED
  // Callbacks, each of which may be NULL. They come from any of the call's threads, one at a time, and must not throw.
  // Not 0 ends the call with CANCELLED. What they are given lives until they return. They may use the model, but not
  // free it.
  void* data;
  int32_t (*on_segment)(void* data, const transept_segment* segment);  // in order, once final
  int32_t (*on_progress)(void* data, double done_seconds, double all_seconds);
  int32_t (*on_language)(void* data, transept_text code, double probability);  // once, if it is detected
  int32_t (*on_duration)(void* data, double seconds);                          // once, before the others
  // Once, if the language is detected: the guesses, most probable first.
  int32_t (*on_languages)(void* data, const transept_language* languages, size_t num_languages);
} transept_transcribe_options;

typedef struct transept_transcript transept_transcript;

// Transcribes audio of any length, and waits for the whole transcript. In batched mode it starts threads. `options` may
// be NULL. Any thread. Errors: INVALID_ARGUMENT (an option by name; audio that cannot be read), NOT_FOUND (the file;
// FFmpeg's libraries, for path and bytes), UNIMPLEMENTED (the model takes no audio), CANCELLED, DEADLINE_EXCEEDED,
// UNAVAILABLE, FAILED_PRECONDITION (from inside on_ready).
TRANSEPT_API transept_code transept_transcribe(transept_model* model, const transept_audio* audio,
                                               const transept_transcribe_options* options,
                                               transept_transcript** transcript, transept_error** error);

// Immutable: any thread, except for transept_transcript_free (one thread). Of NULL: empty text, 0.
TRANSEPT_API transept_text transept_transcript_text(const transept_transcript* transcript);
TRANSEPT_API transept_text
transept_transcript_language(const transept_transcript* transcript);                      // a code; "": no speech
TRANSEPT_API double transept_transcript_duration(const transept_transcript* transcript);  // seconds of audio
TRANSEPT_API size_t transept_transcript_num_segments(const transept_transcript* transcript);
// Fills `segment` as far as its struct_size reaches. Any thread. Errors: INVALID_ARGUMENT (no such segment).
TRANSEPT_API transept_code transept_transcript_get_segment(const transept_transcript* transcript, size_t index,
                                                           transept_segment* segment, transept_error** error);
// The transcript as a file of `format`: txt, vtt, srt, tsv or json, byte for byte that of `transept transcribe`.
// `options_json`, which may be absent: highlight_words, max_line_width, max_line_count, max_words_per_line. Zero-
// terminated; transept_free it. `size` may be NULL. Any thread. Errors: INVALID_ARGUMENT.
TRANSEPT_API transept_code transept_transcript_write(const transept_transcript* transcript, const char* format,
                                                     transept_text options_json, char** text, size_t* size,
                                                     transept_error** error);
TRANSEPT_API void transept_transcript_free(transept_transcript* transcript);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TRANSEPT_H_
