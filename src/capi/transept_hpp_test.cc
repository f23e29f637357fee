// The C++ face: handles that end, exceptions both ways. It includes none of the library's own headers.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include "base/source_dir_testing.h"
#include "capi/transept.hpp"

namespace {

std::string folder(const std::string& name) { return transept::source_dir() + "/tests/models/" + name; }

transept::ModelOptions one_thread() {
  transept::ModelOptions options;
  options.threads = 1;
  return options;
}

constexpr const char* kLongEnough = R"({"max_tokens": 90, "ignore_eos": true, "temperature": 0})";

TEST(Cpp, ObjectsMoveAndDoNotCopy) {
  static_assert(std::is_move_constructible_v<transept::Model> && !std::is_copy_constructible_v<transept::Model>);
  static_assert(std::is_move_constructible_v<transept::Result> && !std::is_copy_constructible_v<transept::Result>);
  static_assert(std::is_move_constructible_v<transept::Stream> && std::is_move_assignable_v<transept::Stream>);
  EXPECT_EQ(transept::version(), TRANSEPT_VERSION);
}

TEST(Cpp, ErrorsAreExceptions) {
  try {
    transept::Model model(folder("no-such-model"));
    FAIL();
  } catch (const transept::Error& error) {
    EXPECT_EQ(error.code(), TRANSEPT_NOT_FOUND);
    EXPECT_NE(std::string(error.what()).find("no-such-model"), std::string::npos);
  }
  transept::Model model(folder("bart-float32"), one_thread());
  try {
    model.generate(transept::Request("a").fields(R"({"max_tokens": -1})"));
    FAIL();
  } catch (const transept::Error& error) {
    EXPECT_EQ(error.field(), "max_tokens");
  }
  EXPECT_THROW(model.generate(transept::Request(std::vector<std::int32_t>())), transept::Error);
}

TEST(Cpp, ANameIsNotCutAtANul) {
  const std::string cut = folder("bart-float32") + std::string("\0x", 2);
  const auto field_of = [](const auto& call) {
    try {
      call();
    } catch (const transept::Error& error) {
      EXPECT_EQ(error.code(), TRANSEPT_INVALID_ARGUMENT);
      return error.field();
    }
    return std::string("nothing");
  };
  EXPECT_EQ(field_of([&] { transept::Model(cut, one_thread()); }), "name");
  EXPECT_EQ(field_of([&] { transept::decode_audio(transept::Audio::file(cut)); }), "path");
}

TEST(Cpp, GeneratesStreamsAndEncodes) {
  transept::Model model(folder("bart-float32"), one_thread());
  const transept::Result whole = model.generate(transept::Request("a b c").fields(kLongEnough));
  EXPECT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].token_ids.size(), 90u);
  EXPECT_TRUE(whole.is_finished());
  EXPECT_NE(whole.json().find("\"outputs\""), std::string::npos);

  std::string pieces;
  const transept::Result again =
      model.generate(transept::Request("a b c").fields(kLongEnough), [&](const transept::ResultView& delta) {
        pieces += delta.text();
        return true;
      });
  EXPECT_EQ(pieces, whole.text());
  EXPECT_EQ(again.text(), whole.text());

  transept::Stream stream = model.submit(transept::Request("a b c").fields(kLongEnough).stream());
  std::string streamed;
  while (!stream.has_ended()) {
    if (const auto piece = stream.next()) streamed += piece->text();
  }
  EXPECT_EQ(streamed, whole.text());
  EXPECT_THROW(stream.next(), transept::Error);

  const transept::Encoded encoded = model.encode(transept::Request("a b c"));
  EXPECT_EQ(model.generate(transept::Request(encoded).fields(kLongEnough)).text(), whole.text());
  EXPECT_LT(model.generate(transept::Request("a").decoder_prompt("b").score()).score(), 0);
  EXPECT_EQ(model
                .generate(transept::Request(std::vector<std::int32_t>{5, 2})
                              .decoder_prompt(std::vector<std::int32_t>{2, 0})
                              .fields(R"({"max_tokens": 1})"))
                .size(),
            1u);
  EXPECT_NE(model.info().find("\"bart\""), std::string::npos);
  EXPECT_NE(model.stats().find("num_steps"), std::string::npos);
}

TEST(Cpp, TokenizesBothWays) {
  const transept::Model model(folder("bart-float32"), one_thread());
  const std::vector<std::int32_t> ids = model.tokenize("Some text.");
  EXPECT_EQ(model.detokenize(ids), "Some text.");
  transept::TokenizeOptions bare;
  bare.add_special_tokens = false;
  EXPECT_EQ(model.tokenize("Some text.", bare).size() + 2, ids.size());
  EXPECT_EQ(model.tokenize({}).size(), 2u);
}

TEST(Cpp, ExceptionsOfCallbacksComeOut) {
  transept::Model model(folder("bart-float32"), one_thread());
  int num_calls = 0;
  EXPECT_THROW(model.generate(transept::Request("a").fields(kLongEnough),
                              [&](const transept::ResultView&) -> bool {
                                ++num_calls;
                                throw std::domain_error("mine");
                              }),
               std::domain_error);
  EXPECT_EQ(num_calls, 1);

  transept::Model speech(folder("whisper-transcribes"), one_thread());
  const std::vector<float> noise(16000 * 2, 0.1f);
  transept::TranscribeOptions options;
  options.language = "en";
  options.json = R"({"beam_size": 1, "no_speech_threshold": null, "temperature_increment_on_fallback": null,
      "logprob_threshold": null, "compression_ratio_threshold": null})";
  options.on_progress = [](double, double) -> bool { throw std::domain_error("mine"); };
  EXPECT_THROW(speech.transcribe(transept::Audio::samples(noise), options), std::domain_error);
  options.on_progress = nullptr;
  int num_segments = 0;
  options.on_segment = [&](const transept::Segment&) { return ++num_segments > 0; };
  const transept::Transcript transcript = speech.transcribe(transept::Audio::samples(noise), options);
  EXPECT_EQ(transcript.duration(), 2);
  EXPECT_EQ(transcript.language(), "en");
  EXPECT_EQ(static_cast<std::size_t>(num_segments), transcript.size());
  std::string text;
  for (std::size_t i = 0; i < transcript.size(); ++i) text += transcript[i].text;
  EXPECT_EQ(text, transcript.text());
  EXPECT_EQ(transcript.write("vtt").substr(0, 6), "WEBVTT");
}

TEST(Cpp, ACancelledRequestEnds) {
  transept::Model model(folder("bart-float32"), one_thread());
  transept::Cancellation cancellation;
  cancellation.cancel();
  const transept::Result result =
      model.generate(transept::Request("a").fields(kLongEnough).cancellation(cancellation).timeout(60));
  EXPECT_TRUE(result[0].finish_reason == TRANSEPT_FINISH_ABORT || result[0].token_ids.size() == 90u);
  model.drain(10);
  model.stop();
  EXPECT_THROW(model.generate(transept::Request("a")), transept::Error);
}

}  // namespace
