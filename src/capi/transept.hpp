// Transept in C++17: the functions of transept.h as classes that own their handles, with exceptions for errors. Header
// only; transept.h says what each function does, takes and refuses, and which of them any thread may call.
//
//   transept::Model model("path/to/folder");
//   std::cout << model.generate(transept::Request("Some text.").fields(R"({"max_tokens": 32})")).text() << "\n";
//
// Objects are movable, not copyable, and safe to destroy in any order. Texts and spans that an object gives live as
// long as the object. An exception that a callback throws ends the call, and leaves the call.
#ifndef TRANSEPT_HPP_
#define TRANSEPT_HPP_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transept.h"

namespace transept {
inline namespace api {  // a name of its own in programs that hold the library's objects, too

// A failed call. what() is the message.
class Error : public std::runtime_error {
 public:
  Error(transept_code code, const char* message, const char* field)
      : std::runtime_error(message), code_(code), field_(field) {}
  transept_code code() const noexcept { return code_; }
  const std::string& field() const noexcept { return field_; }  // "": none

 private:
  transept_code code_;
  std::string field_;
};

// Contiguous values that another object owns.
template <typename T>
class Span {
 public:
  Span() = default;
  Span(const T* data, std::size_t size) : data_(data), size_(size) {}
  Span(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}  // NOLINT: as std::span
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

struct Free {
  void operator()(void* memory) const { transept_free(memory); }
  void operator()(transept_cancellation* handle) const { transept_cancellation_free(handle); }
  void operator()(transept_encoded* handle) const { transept_encoded_free(handle); }
  void operator()(transept_result* handle) const { transept_result_free(handle); }
  void operator()(transept_stream* handle) const { transept_stream_free(handle); }
  void operator()(transept_transcript* handle) const { transept_transcript_free(handle); }
  void operator()(transept_model* handle) const { transept_model_free(handle, nullptr); }
};
template <typename T>
using Handle = std::unique_ptr<T, Free>;

// Calls a function of transept.h whose last argument is the error.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
  transept_error* error = nullptr;
  const transept_code code = function(arguments..., &error);
  if (code == TRANSEPT_OK) return;
  const Error thrown(code, transept_error_message(error), transept_error_field(error));
  transept_error_free(error);
  throw thrown;
}

inline transept_text text(std::string_view view) { return {view.data(), view.size()}; }
// A name or a path as C has it, whole: a NUL would cut it.
inline const char* whole(const std::string& text, const char* field) {
  if (text.find('\0') == std::string::npos) return text.c_str();
  throw Error(TRANSEPT_INVALID_ARGUMENT, (std::string(field) + " must not hold a NUL").c_str(), field);
}
inline std::string_view view(transept_text text) { return {text.data, text.size}; }

// What a callback throws, until its call has returned.
class Caught {
 public:
  template <typename Callback>
  std::int32_t run(Callback&& callback) noexcept {
    try {
      return callback() ? 0 : 1;
    } catch (...) {
      if (!exception_) exception_ = std::current_exception();
      return 1;
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::exception_ptr exception_;
};

}  // namespace detail

inline std::string_view version() { return transept_version(); }

// Ends the calls that it is given to. cancel(): any thread.
class Cancellation {
 public:
  Cancellation() {
    transept_cancellation* handle = nullptr;
    detail::call(transept_cancellation_create, &handle);
    handle_.reset(handle);
  }
  void cancel() { detail::call(transept_cancellation_cancel, handle_.get()); }
  transept_cancellation* get() const { return handle_.get(); }

 private:
  detail::Handle<transept_cancellation> handle_;
};

// The encoder's side of requests, encoded once.
class Encoded {
 public:
  explicit Encoded(transept_encoded* handle) : handle_(handle) {}
  std::int32_t num_positions() const { return transept_encoded_num_positions(handle_.get()); }
  const transept_encoded* get() const { return handle_.get(); }

 private:
  detail::Handle<transept_encoded> handle_;
};

// A request, set up in one expression. It owns its texts and ids; samples, the encoded input and the cancellation are
// the caller's, and must live until the call that takes the request returns (the cancellation: see transept.h).
class Request {
 public:
  Request() = default;
  explicit Request(std::string prompt) : prompt_(std::move(prompt)) {}
  explicit Request(std::vector<std::int32_t> ids) : prompt_ids_(std::move(ids)) {}
  explicit Request(const Encoded& encoded) : encoded_(encoded.get()) {}

  // Audio of one window, mono; `sampling_rate` in hertz.
  Request& samples(Span<float> samples, std::int32_t sampling_rate = 16000) {
    samples_ = samples;
    sampling_rate_ = sampling_rate;
    return *this;
  }
  Request& decoder_prompt(std::string text) { return set(decoder_prompt_, std::move(text)); }
  Request& decoder_prompt(std::vector<std::int32_t> ids) { return set(decoder_ids_, std::move(ids)); }
  // Every other field of docs/api.md: one JSON object.
  Request& fields(std::string json) { return set(fields_, std::move(json)); }
  Request& timeout(double seconds) { return set(timeout_, seconds); }
  Request& cancellation(const Cancellation& cancellation) { return set(cancellation_, cancellation.get()); }
  Request& score() { return flag(TRANSEPT_REQUEST_SCORE); }
  Request& stream() { return flag(TRANSEPT_REQUEST_STREAM); }
  Request& encoder_output() { return flag(TRANSEPT_REQUEST_ENCODER_OUTPUT); }
  // See transept_request: on an engine's thread, for Model::submit alone.
  Request& on_ready(void (*function)(void*), void* data) {
    on_ready_ = function;
    on_ready_data_ = data;
    return *this;
  }

  // Points into this.
  transept_request get() const {
    transept_request request = transept_request();
    request.struct_size = sizeof request;
    if (prompt_) request.prompt = detail::text(*prompt_);
    if (prompt_ids_) request.prompt_ids = data(*prompt_ids_);
    if (prompt_ids_) request.num_prompt_ids = prompt_ids_->size();
    request.samples = samples_.data();
    request.num_samples = samples_.size();
    request.sampling_rate = sampling_rate_;
    request.flags = flags_;
    request.encoded = encoded_;
    if (decoder_prompt_) request.decoder_prompt = detail::text(*decoder_prompt_);
    if (decoder_ids_) request.decoder_ids = data(*decoder_ids_);
    if (decoder_ids_) request.num_decoder_ids = decoder_ids_->size();
    request.fields_json = detail::text(fields_);
    request.timeout_seconds = timeout_;
    request.cancellation = cancellation_;
    request.on_ready = on_ready_;
    request.on_ready_data = on_ready_data_;
    return request;
  }

 private:
  template <typename T, typename Value>
  Request& set(T& member, Value&& value) {
    member = std::forward<Value>(value);
    return *this;
  }
  Request& flag(std::uint32_t bit) { return set(flags_, flags_ | bit); }
  // Of an empty list, too, a pointer that is not null: it is given, and refused as empty.
  static const std::int32_t* data(const std::vector<std::int32_t>& ids) {
    static const std::int32_t kNone = 0;
    return ids.empty() ? &kNone : ids.data();
  }

  std::optional<std::string> prompt_, decoder_prompt_;
  std::optional<std::vector<std::int32_t>> prompt_ids_, decoder_ids_;
  Span<float> samples_;
  std::int32_t sampling_rate_ = 0;
  const transept_encoded* encoded_ = nullptr;
  std::string fields_;
  double timeout_ = 0;
  transept_cancellation* cancellation_ = nullptr;
  std::uint32_t flags_ = 0;
  void (*on_ready_)(void*) = nullptr;
  void* on_ready_data_ = nullptr;
};

// One answer. Points into its result.
struct Output {
  std::string_view text;
  Span<std::int32_t> token_ids;
  double cumulative_logprob = 0;
  double beam_score = 0;  // NaN without beam search
  std::int32_t index = 0;
  std::int32_t finish_reason = TRANSEPT_FINISH_NONE;
};

// A result that a callback is given. Not owned.
class ResultView {
 public:
  explicit ResultView(const transept_result* handle) : result_(handle) {}

  std::string_view text() const { return detail::view(transept_result_text(result_)); }
  std::size_t size() const { return info().num_outputs; }
  Output operator[](std::size_t index) const {
    transept_output output = transept_output();
    output.struct_size = sizeof output;
    detail::call(transept_result_get_output, result_, index, &output);
    return {detail::view(output.text),
            {output.token_ids, output.num_token_ids},
            output.cumulative_logprob,
            output.beam_score,
            output.index,
            output.finish_reason};
  }
  transept_result_info info() const {
    transept_result_info info = transept_result_info();
    info.struct_size = sizeof info;
    detail::call(transept_result_get_info, result_, &info);
    return info;
  }
  bool is_finished() const { return info().is_finished != 0; }
  double score() const { return info().score; }
  std::string json() const {
    char* json = nullptr;
    detail::call(transept_result_json, result_, &json);
    const detail::Handle<char> owner(json);
    return json;
  }

 private:
  const transept_result* result_;
};

class Result : public ResultView {
 public:
  explicit Result(transept_result* handle) : ResultView(handle), handle_(handle) {}

 private:
  detail::Handle<transept_result> handle_;
};

// One request's results as they come. abort(): any thread; all else: one thread.
class Stream {
 public:
  explicit Stream(transept_stream* handle) : handle_(handle) {}

  // Waits for what comes next, up to `timeout_seconds` (negative: no limit); nullopt: nothing came. REQUIRES: not
  // ended.
  std::optional<Result> next(double timeout_seconds = -1) {
    transept_result* result = nullptr;
    detail::call(transept_stream_next, handle_.get(), timeout_seconds, &result);
    if (result == nullptr) return std::nullopt;
    return std::optional<Result>(std::in_place, result);
  }
  bool has_ended() const { return transept_stream_has_ended(handle_.get()) != 0; }
  void abort() { detail::call(transept_stream_abort, handle_.get()); }

 private:
  detail::Handle<transept_stream> handle_;
};

// Audio of any length. Not copied: lives until the call returns.
class Audio {
 public:
  static Audio file(std::string path) {
    Audio audio;
    audio.path_ = std::move(path);
    return audio;
  }
  static Audio bytes(const void* data, std::size_t size) {
    Audio audio;
    audio.audio_.bytes = data;
    audio.audio_.num_bytes = size;
    return audio;
  }
  static Audio samples(Span<float> samples, std::int32_t sampling_rate = 16000) {
    Audio audio;
    audio.audio_.samples = samples.data();
    audio.audio_.num_samples = samples.size();
    audio.audio_.sampling_rate = sampling_rate;
    return audio;
  }

  transept_audio get() const {
    transept_audio audio = audio_;
    audio.struct_size = sizeof audio;
    if (path_) audio.path = detail::whole(*path_, "path");
    return audio;
  }

 private:
  std::optional<std::string> path_;
  transept_audio audio_ = transept_audio();
};

// Mono samples at `sampling_rate` hertz.
inline std::vector<float> decode_audio(const Audio& audio, std::int32_t sampling_rate = 16000, double max_seconds = 0) {
  const transept_audio source = audio.get();
  float* samples = nullptr;
  std::size_t size = 0;
  detail::call(transept_decode_audio, &source, sampling_rate, max_seconds, &samples, &size);
  const detail::Handle<float> owner(samples);
  return std::vector<float>(samples, samples + size);
}

// One segment. Points into its transcript, or into what its callback was given.
struct Segment {
  explicit Segment(const transept_segment& segment)
      : id(segment.id),
        text(detail::view(segment.text)),
        start(segment.start),
        end(segment.end),
        token_ids(segment.token_ids, segment.num_token_ids),
        words(segment.words, segment.num_words),
        temperature(segment.temperature),
        avg_logprob(segment.avg_logprob),
        compression_ratio(segment.compression_ratio),
        no_speech_prob(segment.no_speech_prob),
        seek(segment.seek) {}

  std::int32_t id;
  std::string_view text;
  double start, end;
  Span<std::int32_t> token_ids;
  Span<transept_word> words;
  double temperature, avg_logprob, compression_ratio, no_speech_prob;
  std::int32_t seek;
};

class Transcript {
 public:
  explicit Transcript(transept_transcript* handle) : handle_(handle) {}

  std::string_view text() const { return detail::view(transept_transcript_text(handle_.get())); }
  std::string_view language() const { return detail::view(transept_transcript_language(handle_.get())); }
  double duration() const { return transept_transcript_duration(handle_.get()); }
  std::size_t size() const { return transept_transcript_num_segments(handle_.get()); }
  Segment operator[](std::size_t index) const {
    transept_segment segment = transept_segment();
    segment.struct_size = sizeof segment;
    detail::call(transept_transcript_get_segment, handle_.get(), index, &segment);
    return Segment(segment);
  }
  // txt, vtt, srt, tsv or json.
  std::string write(const std::string& format, std::string_view options_json = {}) const {
    char* text = nullptr;
    std::size_t size = 0;
    detail::call(transept_transcript_write, handle_.get(), format.c_str(), detail::text(options_json), &text, &size);
    const detail::Handle<char> owner(text);
    return std::string(text, size);
  }

 private:
  detail::Handle<transept_transcript> handle_;
};

// Options of a transcription. Callbacks come from any of the call's threads, one at a time; false ends the call.
struct TranscribeOptions {
  std::string language = {};  // "": detected
  std::string task = {};      // "": transcribe
  std::string json = {};      // the other options: one JSON object
  double timeout_seconds = 0;
  const Cancellation* cancellation = nullptr;
  std::function<bool(const Segment&)> on_segment = {};
  std::function<bool(double done_seconds, double all_seconds)> on_progress = {};
  std::function<bool(std::string_view code, double probability)> on_language = {};
  std::function<bool(double seconds)> on_duration = {};
  std::function<bool(Span<transept_language>)> on_languages = {};
};

struct TokenizeOptions {
  bool decoder_side = false;
  bool add_special_tokens = true;
  std::string source_lang = {}, target_lang = {};
};

struct ModelOptions {
  std::int32_t threads = 0;              // 0: the processors
  std::int32_t max_queued_requests = 0;  // 0: 512
  std::string json = {};                 // the other options: one JSON object
  // While files of a model of the hub come: bytes that are there, and those that there will be. On a thread of the
  // library, which it must not call; what it throws is given up.
  std::function<void(const std::string& name, std::int64_t done, std::int64_t total)> on_download = {};
};

// A loaded model. Any thread may call any function; destruction waits for the others, and must not come from a
// callback.
class Model {
 public:
  // `name`: a folder, a bundled model, ORG/NAME[@REV] of the hub, which may be fetched.
  explicit Model(const std::string& name, const ModelOptions& options = ModelOptions()) {
    transept_model_options given = transept_model_options();
    given.struct_size = sizeof given;
    given.threads = options.threads;
    given.max_queued_requests = options.max_queued_requests;
    given.options_json = detail::text(options.json);
    if (options.on_download) {
      given.data = const_cast<ModelOptions*>(&options);
      given.on_download = [](void* data, const char* model, std::int64_t done, std::int64_t total) {
        try {
          static_cast<const ModelOptions*>(data)->on_download(model, done, total);
        } catch (...) {
        }
      };
    }
    transept_model* handle = nullptr;
    detail::call(transept_model_load, detail::whole(name, "name"), &given, &handle);
    handle_.reset(handle);
  }

  Result generate(const Request& request) {
    const transept_request given = request.get();
    transept_result* result = nullptr;
    detail::call(transept_generate, handle_.get(), &given, &result);
    return Result(result);
  }

  // Calls `on_delta` on this thread for each piece; false aborts the request. Returns the whole.
  Result generate(const Request& request, const std::function<bool(const ResultView&)>& on_delta) {
    struct Context {
      const std::function<bool(const ResultView&)>& on_delta;
      detail::Caught caught;
    } context{on_delta, {}};
    const auto run = [](void* data, const transept_result* delta) -> std::int32_t {
      auto& own = *static_cast<Context*>(data);
      return own.caught.run([&] { return own.on_delta(ResultView(delta)); });
    };
    const transept_request given = request.get();
    transept_result* result = nullptr;
    detail::call(transept_generate_stream, handle_.get(), &given, static_cast<transept_delta_fn>(run),
                 static_cast<void*>(&context), &result);
    Result owner(result);
    context.caught.rethrow();
    return owner;
  }

  Stream submit(const Request& request) {
    const transept_request given = request.get();
    transept_stream* stream = nullptr;
    detail::call(transept_submit, handle_.get(), &given, &stream);
    return Stream(stream);
  }

  Encoded encode(const Request& request) {
    const transept_request given = request.get();
    transept_encoded* encoded = nullptr;
    detail::call(transept_encode, handle_.get(), &given, &encoded);
    return Encoded(encoded);
  }

  std::vector<std::int32_t> tokenize(std::string_view text, const TokenizeOptions& options = TokenizeOptions()) const {
    transept_tokenize_options given = transept_tokenize_options();
    given.struct_size = sizeof given;
    if (options.decoder_side) given.flags |= TRANSEPT_TOKENIZE_DECODER_SIDE;
    if (!options.add_special_tokens) given.flags |= TRANSEPT_TOKENIZE_NO_SPECIAL_TOKENS;
    given.source_lang = detail::text(options.source_lang);
    given.target_lang = detail::text(options.target_lang);
    const transept_text bytes = {text.data() == nullptr ? "" : text.data(), text.size()};
    std::int32_t* ids = nullptr;
    std::size_t num_ids = 0;
    detail::call(transept_tokenize, handle_.get(), bytes, &given, &ids, &num_ids);
    const detail::Handle<std::int32_t> owner(ids);
    return std::vector<std::int32_t>(ids, ids + num_ids);
  }

  std::string detokenize(Span<std::int32_t> ids, bool skip_special_tokens = true) const {
    char* text = nullptr;
    std::size_t size = 0;
    detail::call(transept_detokenize, handle_.get(), ids.data(), ids.size(), skip_special_tokens ? 1 : 0, &text, &size);
    const detail::Handle<char> owner(text);
    return std::string(text, size);
  }

  // The spelling of a token; "" where the id has none.
  std::string token_spelling(std::int32_t id, bool decoder_side = true) const {
    const std::uint32_t flags = decoder_side ? TRANSEPT_TOKENIZE_DECODER_SIDE : 0;
    char* text = nullptr;
    std::size_t size = 0;
    detail::call(transept_token_spelling, handle_.get(), id, flags, &text, &size);
    const detail::Handle<char> owner(text);
    return std::string(text, size);
  }

  Transcript transcribe(const Audio& audio, const TranscribeOptions& options = TranscribeOptions()) {
    Listener listener{options, {}};
    const transept_audio source = audio.get();
    const transept_transcribe_options given = listener.get();
    transept_transcript* transcript = nullptr;
    try {
      detail::call(transept_transcribe, handle_.get(), &source, &given, &transcript);
    } catch (const Error&) {
      listener.caught.rethrow();  // the cancellation that it caused is not the news
      throw;
    }
    Transcript owner(transcript);
    listener.caught.rethrow();
    return owner;
  }

  std::string info() const { return json_of(transept_model_info); }
  std::string stats() const { return json_of(transept_model_stats); }

  void drain(double timeout_seconds) { detail::call(transept_model_drain, handle_.get(), timeout_seconds); }
  void stop() { detail::call(transept_model_stop, handle_.get()); }

  transept_model* get() const { return handle_.get(); }

 private:
  struct Listener {
    const TranscribeOptions& options;
    detail::Caught caught;

    transept_transcribe_options get() {
      transept_transcribe_options given = transept_transcribe_options();
      given.struct_size = sizeof given;
      given.language = detail::text(options.language);
      given.task = detail::text(options.task);
      given.options_json = detail::text(options.json);
      given.timeout_seconds = options.timeout_seconds;
      if (options.cancellation != nullptr) given.cancellation = options.cancellation->get();
      given.data = this;
      if (options.on_segment) {
        given.on_segment = [](void* data, const transept_segment* segment) -> std::int32_t {
          auto& own = *static_cast<Listener*>(data);
          return own.caught.run([&] { return own.options.on_segment(Segment(*segment)); });
        };
      }
      if (options.on_progress) {
        given.on_progress = [](void* data, double done, double all) -> std::int32_t {
          auto& own = *static_cast<Listener*>(data);
          return own.caught.run([&] { return own.options.on_progress(done, all); });
        };
      }
      if (options.on_language) {
        given.on_language = [](void* data, transept_text code, double probability) -> std::int32_t {
          auto& own = *static_cast<Listener*>(data);
          return own.caught.run([&] { return own.options.on_language(detail::view(code), probability); });
        };
      }
      if (options.on_duration) {
        given.on_duration = [](void* data, double seconds) -> std::int32_t {
          auto& own = *static_cast<Listener*>(data);
          return own.caught.run([&] { return own.options.on_duration(seconds); });
        };
      }
      if (options.on_languages) {
        given.on_languages = [](void* data, const transept_language* languages, std::size_t size) -> std::int32_t {
          auto& own = *static_cast<Listener*>(data);
          return own.caught.run([&] { return own.options.on_languages({languages, size}); });
        };
      }
      return given;
    }
  };

  std::string json_of(transept_code (*function)(const transept_model*, char**, transept_error**)) const {
    char* json = nullptr;
    detail::call(function, static_cast<const transept_model*>(handle_.get()), &json);
    const detail::Handle<char> owner(json);
    return json;
  }

  detail::Handle<transept_model> handle_;
};

}  // namespace api
}  // namespace transept

#endif  // TRANSEPT_HPP_
