// One audio item: from where it may come, and what is said of one that cannot be had. Nothing here may block or read a
// file that the caller is not allowed to read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "multimodal/multimodal_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using testing::base64_of;
using ::testing::HasSubstr;
using testing::json_of;
using ::testing::Not;
using testing::TestFolder;
using testing::wav_of;

constexpr int32_t kRate = 16000;
const MediaAccess kLocal{.local_paths = true};

Status error_of(const Json& item, const MediaAccess& access = {}, const MediaLimits& limits = {}) {
  Status status = open_audio(item, kRate, access, limits).status();
  EXPECT_FALSE(status.ok()) << item.dump();
  EXPECT_EQ(error_param(status), "multi_modal_data") << item.dump();
  return status;
}

std::string message_of(const Json& item, const MediaAccess& access = {}, const MediaLimits& limits = {}) {
  return error_message(error_of(item, access, limits));
}

size_t num_samples(const Json& item, const MediaAccess& access = {}) {
  const auto reader = open_audio(item, kRate, access, {});
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return 0;
  const auto samples = read_all(**reader);
  EXPECT_TRUE(samples.ok()) << samples.status();
  return samples.ok() ? samples->size() : 0;
}

TEST(OpenAudio, APathIsFollowedOnlyWhereThatIsAllowed) {
  const TestFolder dir;
  dir.write("a.wav", wav_of(1000));
  const Json path(dir.path() + "/a.wav");
  EXPECT_EQ(num_samples(path, kLocal), 1000u);
  EXPECT_THAT(message_of(path), HasSubstr("paths are not allowed here"));
  // Allowed or not, the path is no way to learn what is there.
  EXPECT_EQ(message_of(path), message_of(Json(dir.path() + "/missing.wav")));
}

TEST(OpenAudio, OnlyFilesBelowTheAllowedFolder) {
  const TestFolder outside, inside;
  const std::filesystem::path root(inside.path());
  outside.write("secret.wav", wav_of(1000));
  inside.write("a.wav", wav_of(1000));
  std::filesystem::create_directory(root / "below");
  std::filesystem::copy_file(root / "a.wav", root / "below" / "b.wav");
  std::filesystem::create_symlink(outside.path() + "/secret.wav", root / "link.wav");
  std::filesystem::create_directory_symlink(outside.path(), root / "way_out");
  std::filesystem::create_symlink(root / "a.wav", root / "own.wav");
  std::filesystem::create_directory_symlink(inside.path(), std::filesystem::path(outside.path()) / "way_in");
  const std::string below = outside.path() + "/way_in";  // the allowed folder itself by way of a link
  for (const std::string& folder : {inside.path(), inside.path() + "/", below, inside.path() + "/below/.."}) {
    const MediaAccess access{.local_paths = true, .allowed_path = folder};
    for (const char* good : {"/a.wav", "/below/b.wav", "/below/../a.wav", "/own.wav", "//a.wav", "/./a.wav"}) {
      EXPECT_EQ(num_samples(Json(inside.path() + good), access), 1000u) << folder << " " << good;
    }
    const std::string refusal = "not a file below the folder that is allowed";
    for (const std::string& bad :
         {outside.path() + "/secret.wav", inside.path() + "/link.wav", inside.path() + "/way_out/secret.wav",
          inside.path() + "/../" + std::filesystem::path(outside.path()).filename().string() + "/secret.wav",
          inside.path() + "/missing.wav", std::string("/etc/passwd"), std::string("a.wav"), std::string(),
          inside.path() + "x/a.wav", inside.path() + "/a.wav/"}) {
      EXPECT_THAT(message_of(Json(bad), access), HasSubstr(refusal)) << folder << " " << bad;
    }
  }
  // A folder whose name only begins like the allowed one, and one that is not there.
  const MediaAccess sibling{.local_paths = true, .allowed_path = inside.path().substr(0, inside.path().size() - 1)};
  EXPECT_THAT(message_of(Json(inside.path() + "/a.wav"), sibling), HasSubstr("not a file below"));
  const MediaAccess gone{.local_paths = true, .allowed_path = inside.path() + "/gone"};
  EXPECT_THAT(message_of(Json(inside.path() + "/a.wav"), gone), HasSubstr("not a file below"));
}

TEST(OpenAudio, WhatIsNoRegularFileIsRefusedAtOnce) {
  const TestFolder dir;
  const std::string fifo = dir.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero"), std::string("/dev/tty"), dir.path()}) {
    EXPECT_THAT(message_of(Json(path), kLocal), HasSubstr(path));
    const MediaAccess below{.local_paths = true, .allowed_path = "/"};
    EXPECT_THAT(message_of(Json(path), below), AllOf(HasSubstr("not a file below"), Not(HasSubstr(path))));
  }
  EXPECT_THAT(message_of(Json(dir.path() + "/none.wav"), kLocal),
              AllOf(HasSubstr("none.wav"), HasSubstr("No such file")));
  EXPECT_THAT(message_of(Json(std::string_view("/etc/passwd\0.wav", 16)), kLocal), HasSubstr("zero byte"));
  EXPECT_THAT(message_of(Json(std::string(5000, 'a')), kLocal), HasSubstr("too long"));
}

TEST(OpenAudio, WhatIsNoAudioIsNamed) {
  const TestFolder dir;
  dir.write("text.wav", "this is no sound at all");
  dir.write("empty.wav", "");
  EXPECT_THAT(message_of(Json(dir.path() + "/text.wav"), kLocal), HasSubstr(dir.path() + "/text.wav"));
  EXPECT_THAT(message_of(Json(dir.path() + "/empty.wav"), kLocal), HasSubstr(dir.path() + "/empty.wav"));
  EXPECT_THAT(message_of(json_of(R"({"base64": "AAAA"})")), HasSubstr("multi_modal_data: audio"));
}

TEST(OpenAudio, ABigFileIsRefusedByBothCounts) {
  const TestFolder dir;
  dir.write("a.wav", wav_of(1000));
  const MediaLimits limits{.max_bytes = 2000};
  EXPECT_THAT(message_of(Json(dir.path() + "/a.wav"), kLocal, limits), AllOf(HasSubstr("2044"), HasSubstr("2000")));
  Json::Object object;
  object.emplace_back("base64", Json(base64_of(wav_of(1000))));
  EXPECT_THAT(message_of(Json(std::move(object)), {}, limits), AllOf(HasSubstr("2046"), HasSubstr("2000")));
}

TEST(OpenAudio, Base64) {
  const std::string good = base64_of(wav_of(1000));
  const auto item = [](std::string_view text) { return json_of(str_cat(R"({"base64": ")", text, "\"}")); };
  EXPECT_EQ(num_samples(item(good)), 1000u);
  EXPECT_EQ(num_samples(json_of(str_cat(R"({"base64": ")", good, R"(", "samples": null, "sampling_rate": null})"))),
            1000u);
  for (const std::string& bad : {good.substr(1), good + "=", good.substr(0, 8) + "*" + good.substr(9),
                                 good.substr(0, 8) + " " + good.substr(8), "data:audio/wav;base64," + good}) {
    EXPECT_THAT(message_of(item(bad)), HasSubstr("base64 does not hold base64")) << bad.substr(0, 30);
  }
  EXPECT_THAT(message_of(item("")), HasSubstr("multi_modal_data: audio"));
  EXPECT_THAT(message_of(json_of(R"({"base64": 7})")), HasSubstr("must be a string"));
  EXPECT_THAT(message_of(json_of(R"({"base64": ["AAAA"]})")), HasSubstr("must be a string"));
}

TEST(OpenAudio, Samples) {
  EXPECT_EQ(num_samples(json_of(R"({"samples": [0, 0.5, -1, 1e-30], "sampling_rate": 16000})")), 4u);
  EXPECT_EQ(num_samples(json_of(R"({"samples": [0.25], "sampling_rate": 16000.0, "base64": null})")), 1u);
  const struct {
    std::string_view item, part;
  } cases[] = {
      {R"({"samples": [0, 0.5]})", "sampling_rate"},
      {R"({"samples": [0, 0.5], "sampling_rate": null})", "sampling_rate"},
      {R"({"samples": [0, 0.5], "sampling_rate": "16000"})", "sampling_rate"},
      {R"({"samples": [0, 0.5], "sampling_rate": 0})", "1000 to 768000"},
      {R"({"samples": [0, 0.5], "sampling_rate": -16000})", "1000 to 768000"},
      {R"({"samples": [0, 0.5], "sampling_rate": 16000.5})", "16000.5"},
      {R"({"samples": [0, 0.5], "sampling_rate": 1e300})", "1000 to 768000"},
      {R"({"samples": [0, 0.5], "sampling_rate": 99999999999999999999999})", "1000 to 768000"},
      {R"({"samples": [], "sampling_rate": 16000})", "empty"},
      {R"({"samples": [0, "1"], "sampling_rate": 16000})", "samples[1] is not a number"},
      {R"({"samples": [0, [1]], "sampling_rate": 16000})", "samples[1] is not a number"},
      {R"({"samples": [0, null], "sampling_rate": 16000})", "samples[1] is not a number"},
      {R"({"samples": [1e39], "sampling_rate": 16000})", "not a finite number"},
      {R"({"samples": [0, 0, -1e300], "sampling_rate": 16000})", "samples[2]"},
      {R"({"samples": [40000], "sampling_rate": 16000})", "32768"},
      {R"({"samples": 7, "sampling_rate": 16000})", "list of numbers"},
      {R"({"samples": "AAAA", "sampling_rate": 16000})", "list of numbers"},
      {R"({"samples": [0], "base64": "AAAA", "sampling_rate": 16000})", "expected a path"},
      {R"({"sampling_rate": 16000})", "expected a path"},
      {R"({"samples": null})", "expected a path"},
      {"{}", "expected a path"},
      {"7", "expected a path"},
      {"true", "expected a path"},
      {"[]", "expected a path"},
      {"null", "expected a path"},
  };
  for (const auto& [item, part] : cases) EXPECT_THAT(message_of(json_of(item)), HasSubstr(part)) << item;
}

TEST(OpenAudio, SamplesOfAnotherRateAreResampled) {
  Json::Array samples(8000, Json(0.25));
  Json::Object item;
  item.emplace_back("samples", Json(std::move(samples)));
  item.emplace_back("sampling_rate", Json(8000));
  EXPECT_NEAR(static_cast<double>(num_samples(Json(std::move(item)))), 16000, 40);
}

TEST(OpenAudio, LengthIsCapped) {
  const MediaLimits limits{.max_audio_seconds = 0.05};
  EXPECT_THAT(message_of(json_of(str_cat(R"({"base64": ")", base64_of(wav_of(40000)), "\"}")), {}, limits),
              AllOf(HasSubstr("2.5 s"), HasSubstr("0.05 s")));
  Json::Object item;
  item.emplace_back("samples", Json(Json::Array(1000, Json(0.0))));
  item.emplace_back("sampling_rate", Json(16000));
  EXPECT_THAT(message_of(Json(std::move(item)), {}, limits), AllOf(HasSubstr("0.1 s"), HasSubstr("0.05 s")));
}

}  // namespace
}  // namespace transept
