// For tests of transcriptions: forms, sound, and a client that keeps what it is sent.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/folder_testing.h"
#include "base/mutex.h"
#include "media/media_testing.h"
#include "net/sse.h"
#include "server/server_testing.h"
#include "server/transcriptions.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {

// Thread-safe.
class Client final : public Responder {
 public:
  explicit Client(std::function<void()> on_write = {}) : on_write_(std::move(on_write)) {}

  void respond(HttpResponse response) override {
    const MutexLock lock(mutex_);
    if (gone_) return;
    EXPECT_FALSE(head_.has_value()) << "a second answer";
    ended_ = true;
    head_ = std::move(response);
  }
  void start_stream(HttpResponse head) override {
    const MutexLock lock(mutex_);
    if (gone_) return;
    EXPECT_FALSE(head_.has_value()) << "a second answer";
    head_ = std::move(head);
    streamed_ = true;
  }
  void write(std::string piece) override {
    {
      const MutexLock lock(mutex_);
      if (gone_) return;
      EXPECT_TRUE(streamed_ && !ended_);
      head_->body += piece;
    }
    if (on_write_) on_write_();
  }
  void finish() override {
    const MutexLock lock(mutex_);
    if (gone_) return;
    EXPECT_TRUE(streamed_ && !ended_);
    ended_ = true;
  }
  void abandon() override { ADD_FAILURE() << "a stream was abandoned"; }
  void start_tunnel(Tunnel) override { ADD_FAILURE() << "a tunnel was begun"; }
  bool is_gone() const override {
    const MutexLock lock(mutex_);
    return gone_;
  }
  bool was_too_slow() const override { return false; }
  size_t num_unsent_bytes() const override { return 0; }
  void on_gone(std::function<void()> callback) override {
    {
      const MutexLock lock(mutex_);
      on_gone_ = callback;
      if (!gone_) return;
    }
    callback();
  }
  double seconds() const override { return 0.25; }

  // What follows is not received.
  void go() {
    std::function<void()> callback;
    {
      const MutexLock lock(mutex_);
      gone_ = true;
      callback = on_gone_;
    }
    if (callback) callback();
  }

  bool has_answer() const {
    const MutexLock lock(mutex_);
    return head_.has_value();
  }
  bool was_streamed() const {
    const MutexLock lock(mutex_);
    return streamed_;
  }
  bool has_ended() const {
    const MutexLock lock(mutex_);
    return ended_;
  }
  // REQUIRES: has_ended().
  const HttpResponse& answer() const {
    const MutexLock lock(mutex_);
    CHECK(head_.has_value(), "no answer");
    return *head_;
  }
  Json json() const { return parse_json(answer().body); }

 private:
  mutable Mutex mutex_;
  const std::function<void()> on_write_;
  std::optional<HttpResponse> head_ ABSL_GUARDED_BY(mutex_);
  bool streamed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_gone_ ABSL_GUARDED_BY(mutex_);
};

// Parts of a form as they are written. A name that begins with "file" is sent as a file.
using Fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view kBoundary = "----boundary7MA4YWxk";

inline void append_part(std::string& body, std::string_view headers, std::string_view content) {
  body += str_cat("--", kBoundary, "\r\n", headers, "\r\n\r\n", content, "\r\n");
}

inline std::string form_body(const Fields& fields) {
  std::string body;
  for (const auto& [name, content] : fields) {
    const std::string_view file = name.starts_with("file") ? "; filename=\"a.wav\"\r\nContent-Type: audio/wav" : "";
    append_part(body, str_cat("Content-Disposition: form-data; name=\"", name, "\"", file), content);
  }
  return str_cat(body, "--", kBoundary, "--\r\n");
}

inline ApiCallPtr make_call(const ServerContext& context, std::string body, std::shared_ptr<Responder> client) {
  auto call = std::make_shared<ApiCall>();
  call->http.method = "POST";
  call->http.headers = {{"content-type", str_cat("multipart/form-data; boundary=", kBoundary)}};
  call->http.body = std::move(body);
  call->http.request_id = "r";
  call->responder = std::move(client);
  call->arrival = context.clock.now();
  return call;
}

// One exchange, on this thread.
inline std::shared_ptr<Client> post_body(const ServerContext& context, std::string body, bool translate = false,
                                         std::shared_ptr<Client> client = std::make_shared<Client>()) {
  handle_transcription(context, make_call(context, std::move(body), client), translate);
  return client;
}
inline std::shared_ptr<Client> post(const ServerContext& context, const Fields& fields, bool translate = false,
                                    std::shared_ptr<Client> client = std::make_shared<Client>()) {
  return post_body(context, form_body(fields), translate, std::move(client));
}

inline std::string wav(uint32_t seed, double length, const Silence& silence = {}) {
  return make_wav({}, bytes_of(synthetic_audio(seed, static_cast<size_t>(length * 16000), silence)));
}

// An error's answer: its status, its field ("null" for none) and its message.
struct Refusal {
  int status = 0;
  std::string param, message;
};
inline Refusal refusal_of(const HttpResponse& response) {
  const Json json = parse_json(response.body);
  const Json& error = member(json, "error");
  EXPECT_EQ(error.as_object().size(), 4u) << response.body;
  member(error, "code");
  member(error, "type");
  const Json& param = member(error, "param");
  return {response.status, param.is_null() ? "null" : param.as_string(), text(error, "message")};
}

// What the server does when nothing is asked for, done beside it.
inline TranscribeOptions server_defaults() {
  TranscribeOptions options;
  options.beam_size = 1;
  options.skip_silence = true;
  return options;
}
inline TranscribeResult transcribed(const ServerContext& context, const std::string& file,
                                    const TranscribeOptions& options) {
  auto result = Transcriber(*context.speech).transcribe(AudioBytes::from_string(file), options);
  CHECK(result.ok(), error_message(result.status()));
  return *std::move(result);
}

inline std::vector<std::string> events_of(const HttpResponse& response) {
  EXPECT_EQ(response.content_type, kSseContentType);
  std::vector<std::string> events;
  SseReader reader;
  reader.push(response.body, [&](std::string_view, std::string_view data) { events.emplace_back(data); });
  return events;
}

inline std::unique_ptr<ServerHouse> speech_house(std::string folder = speech_model(),
                                                 ServerOptions options = default_server_options()) {
  EngineConfig config;
  config.kv_cache_memory = uint64_t{64} << 20;
  return std::make_unique<ServerHouse>(std::move(options), std::move(folder), config);
}

// The speech model with one field of a file changed.
class ChangedModel final {
 public:
  explicit ChangedModel(std::string_view key, Json value, std::string_view file = "generation_config.json") {
    std::filesystem::copy(speech_model(), dir_.path(),
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    Json json = parse_json(read_file(str_cat(dir_.path(), "/", file)).value());
    json.set(key, std::move(value));
    dir_.write(file, json.dump());
  }
  const std::string& path() const { return dir_.path(); }

 private:
  TestFolder dir_;
};

// Moonshine's layers with a tokenizer of 64 tokens.
class MoonshineModel final {
 public:
  MoonshineModel() {
    std::filesystem::copy(model_folder("moonshine-float16"), dir_.path(),
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    std::string vocabulary = R"("<unk>": 0, "<s>": 1, "</s>": 2)";
    for (int i = 3; i < 64; ++i) {
      const std::string letter(1, static_cast<char>('A' + (i - 3) % 26));
      vocabulary += str_cat(", \"", i % 5 == 0 ? "\xe2\x96\x81" : "", letter, (i - 3) / 26, "\": ", i);
    }
    dir_.write("tokenizer.json",
               str_cat(R"({"version": "1.0", "added_tokens": [{"id": 1, "content": "<s>", "special": true},
        {"id": 2, "content": "</s>", "special": true}], "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "merges": [], "vocab": {)",
                       vocabulary, "}}}"));
  }
  const std::string& path() const { return dir_.path(); }

 private:
  TestFolder dir_;
};

}  // namespace transept::testing
