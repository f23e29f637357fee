// For tests of transept.h: owners of its handles, calls that must succeed, and goldens of tests/models.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/source_dir_testing.h"
#include "capi/transept.h"

namespace transept::testing {

struct FreeHandle {
  void operator()(transept_model* model) const { EXPECT_EQ(transept_model_free(model, nullptr), TRANSEPT_OK); }
  void operator()(transept_stream* stream) const { transept_stream_free(stream); }
  void operator()(transept_result* result) const { transept_result_free(result); }
  void operator()(transept_encoded* encoded) const { transept_encoded_free(encoded); }
  void operator()(transept_transcript* transcript) const { transept_transcript_free(transcript); }
  void operator()(transept_cancellation* cancellation) const { transept_cancellation_free(cancellation); }
  void operator()(void* memory) const { transept_free(memory); }
};
template <typename T>
using Owned = std::unique_ptr<T, FreeHandle>;

// The error of a call, for `CallError error; EXPECT_EQ(f(.., error.out()), ..)`.
class CallError final {
 public:
  CallError() = default;
  ~CallError() { transept_error_free(error_); }
  CallError(const CallError&) = delete;
  CallError& operator=(const CallError&) = delete;

  transept_error** out() {
    transept_error_free(error_);
    error_ = nullptr;
    return &error_;
  }
  std::string message() const { return transept_error_message(error_); }
  std::string field() const { return transept_error_field(error_); }
  transept_code code() const { return transept_error_code(error_); }

 private:
  transept_error* error_ = nullptr;
};

inline std::string to_string(transept_text text) { return {text.data, text.size}; }
inline transept_text to_text(const std::string& text) { return {text.data(), text.size()}; }

inline std::string model_dir(std::string_view name) { return str_cat(source_dir(), "/tests/models/", name); }

inline Owned<transept_model> load_model(const std::string& folder, const std::string& options_json = "{}",
                                        int32_t max_queued = 0) {
  transept_model_options options = {sizeof options};
  options.threads = 1;
  options.max_queued_requests = max_queued;
  options.options_json = to_text(options_json);
  transept_model* model = nullptr;
  CallError error;
  CHECK(transept_model_load(folder.c_str(), &options, &model, error.out()) == TRANSEPT_OK, error.message());
  return Owned<transept_model>(model);
}

// The text must outlive the request.
inline transept_request request_of(std::string_view fields_json) {
  transept_request request = {sizeof request};
  request.fields_json = {fields_json.data(), fields_json.size()};
  return request;
}

inline Owned<transept_result> generate(transept_model* model, const transept_request& request) {
  transept_result* result = nullptr;
  CallError error;
  EXPECT_EQ(transept_generate(model, &request, &result, error.out()), TRANSEPT_OK) << error.message();
  return Owned<transept_result>(result);
}
inline Owned<transept_result> generate(transept_model* model, const std::string& fields_json) {
  return generate(model, request_of(fields_json));
}

inline Owned<transept_stream> submit(transept_model* model, const transept_request& request) {
  transept_stream* stream = nullptr;
  CallError error;
  EXPECT_EQ(transept_submit(model, &request, &stream, error.out()), TRANSEPT_OK) << error.message();
  return Owned<transept_stream>(stream);
}

inline Json json_of(const transept_result* result) {
  char* text = nullptr;
  EXPECT_EQ(transept_result_json(result, &text, nullptr), TRANSEPT_OK);
  const Owned<char> owner(text);
  return Json::parse(text).value();
}

inline std::vector<int32_t> token_ids(const transept_result* result, size_t index = 0) {
  transept_output output = {sizeof output};
  EXPECT_EQ(transept_result_get_output(result, index, &output, nullptr), TRANSEPT_OK);
  return {output.token_ids, output.token_ids + output.num_token_ids};
}

inline int32_t finish_reason(const transept_result* result) {
  transept_output output = {sizeof output};
  EXPECT_EQ(transept_result_get_output(result, 0, &output, nullptr), TRANSEPT_OK);
  return output.finish_reason;
}

// The ids of a golden's first answer, and of ours.
inline std::string wanted_ids(const Json& golden) {
  return golden.find("outputs")->as_array().front().find("token_ids")->dump();
}
inline std::string our_ids(const transept_result* result) {
  Json list = Json::array();
  for (const int32_t id : token_ids(result)) list.push_back(id);
  return list.dump();
}

// The lines of a file of tests/models.
inline std::vector<Json> golden_lines(std::string_view path) {
  std::ifstream file(model_dir(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line).value());
  CHECK(!lines.empty(), path);
  return lines;
}

// Long enough to be met in flight: nothing ends it before the model's positions.
inline constexpr const char* kLong = R"({"prompt": "a b c", "max_tokens": 90, "ignore_eos": true, "temperature": 0})";

// A value that one thread sets and others wait for.
class Gate final {
 public:
  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }
  void wait() const { is_open_.wait(false); }

 private:
  std::atomic<bool> is_open_ = false;
};

// Holds the engine's thread in an on_ready: whatever else is submitted stays in flight until `release` opens.
class HeldEngine final {
 public:
  explicit HeldEngine(transept_model* model) {
    transept_request request = request_of(kLong);
    request.on_ready = [](void* data) {
      auto& self = *static_cast<HeldEngine*>(data);
      self.entered_.open();
      self.release.wait();
    };
    request.on_ready_data = this;
    holder_ = submit(model, request);
    entered_.wait();
  }
  ~HeldEngine() { release.open(); }
  HeldEngine(const HeldEngine&) = delete;
  HeldEngine& operator=(const HeldEngine&) = delete;

  Gate release;

 private:
  Gate entered_;
  Owned<transept_stream> holder_;
};

}  // namespace transept::testing
