// For tests of how families read their files: a checkpoint of tests/models with another value in its config.json, or
// with other tensors; and what tests of several families do with folders.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/folder_testing.h"
#include "base/source_dir_testing.h"
#include "core/config_file.h"
#include "models/reference_answers_testing.h"
#include "weights/safetensors_testing.h"

namespace transept::testing {

class ChangedCheckpoint : public ::testing::Test {
 protected:
  // `object`: of config.json ("vision_config"), or "" for the top level; `value`: JSON.
  StatusOr<LoadedModel> load_with(const std::string& folder, const std::string& object, const std::string& key,
                                  const std::string& value) {
    Json config = config_of(folder);
    if (object.empty()) {
      config.set(key, *Json::parse(value));
    } else {
      Json inner = *config.find(object);
      inner.set(key, *Json::parse(value));
      config.set(object, std::move(inner));
    }
    return load(folder, config, tensors_of(folder));
  }
  Status error_with(const std::string& folder, const std::string& object, const std::string& key,
                    const std::string& value) {
    return load_with(folder, object, key, value).status();
  }
  std::string message_with(const std::string& folder, const std::string& object, const std::string& key,
                           const std::string& value) {
    const Status status = error_with(folder, object, key, value);
    EXPECT_FALSE(status.ok()) << folder << ": " << object << ": " << key << ": " << value;
    return status.ok() ? "" : error_message(status);
  }

  StatusOr<LoadedModel> load_tensors(const std::string& folder, const std::vector<TestTensor>& tensors) {
    return load(folder, config_of(folder), tensors);
  }
  StatusOr<LoadedModel> load(const std::string& folder, const Json& config, const std::vector<TestTensor>& tensors) {
    dir_.write("config.json", config.dump());
    dir_.write("model.safetensors", safetensors_bytes(tensors));
    constexpr const char* kProcessor = "preprocessor_config.json";
    const std::filesystem::path processor = std::filesystem::path(checkpoint_path(folder)) / kProcessor;
    if (std::filesystem::exists(processor)) {  // CogAgent has none
      std::filesystem::copy_file(processor, std::filesystem::path(dir_.path()) / kProcessor,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    return load_folder(dir_.path(), "reference", threads_);
  }

  static Json config_of(const std::string& folder) {
    return *read_json_object(checkpoint_path(folder) + "/config.json");
  }
  static std::vector<TestTensor> tensors_of(const std::string& folder) { return read_tensors(checkpoint_path(folder)); }
  static TestTensor& tensor(std::vector<TestTensor>& tensors, std::string_view name) {
    const auto place = std::ranges::find(tensors, name, &TestTensor::name);
    CHECK(place != tensors.end(), name);
    return *place;
  }

  static std::vector<float> logits_of(const StatusOr<LoadedModel>& loaded) {
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? logits_of(*loaded) : std::vector<float>();
  }
  static std::vector<float> logits_of(const LoadedModel& loaded) {
    return RunModel(*loaded.attention).last_logits(*loaded.model, short_request(loaded.config.raw));
  }

  TestFolder dir_;
  ThreadPool threads_{1};
};

// A folder of tests/models with a backend at an instruction level.
using ReferenceWay = std::tuple<std::string, std::string, Isa>;
inline auto reference_ways(const std::vector<std::string>& folders) {
  return ::testing::Combine(::testing::ValuesIn(folders), ::testing::Values("reference", "cpu"),
                            ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAmx));
}
inline std::string name_of_way(const ::testing::TestParamInfo<ReferenceWay>& way) {
  const auto& [folder, backend, isa] = way.param;
  return test_name(str_cat(folder, "_", backend, "_", isa_name(isa)));
}

// Shared checkpoints that have the published layout, if they are there: all tensors are known.
inline void expect_shared_goldens_are_read(const std::vector<std::string>& folders) {
  const std::string root = source_dir() + "/../shared/golden/vision/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no ../shared";
  ThreadPool threads(1);
  for (const std::string& folder : folders) {
    const auto loaded = load_folder(root + folder, "cpu", threads);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_THAT(loaded->weights->unread(), ::testing::IsEmpty());
  }
}

}  // namespace transept::testing
