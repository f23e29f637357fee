// The file of `dump encoder` is what a request of an engine gets that was set up beside the verb, bit for bit: among
// others, on other threads and blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "apps/verbs.h"
#include "base/input_file.h"
#include "startup/tiny_model_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAreArray;

struct Storage {
  std::string_view dtype = "auto", quantization = "none", kv_cache_dtype = "float32";
};

class DumpTest : public testing::TinyModelTest, public ::testing::WithParamInterface<Storage> {
 protected:
  // As wide as int8 asks for.
  DumpTest() { testing::TinyBart{.d_model = kLeastInt8Width, .heads = 4, .ffn = 256}.write(dir_); }

  // The array in the file that the verb writes for these ids.
  std::vector<float> dumped(const std::vector<int32_t>& ids, std::vector<std::string> flags) {
    Json list = Json::array();
    for (const int32_t id : ids) list.push_back(id);
    dir_.write("ids.json", list.dump());
    const std::string path = dir_.path() + "/rows.npy";
    const auto& all = verbs();
    const auto verb = std::ranges::find(all, "dump", &Verb::name);
    std::vector<std::string> arguments = {"encoder", dir_.path(), dir_.path() + "/ids.json", "--output", path};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const StatusOr<Flags> parsed = Flags::parse(verb->flags(), arguments);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(verb->run(*parsed), kExitOk);
    const std::string file = read_file(path).value();
    const size_t begin = 10 + static_cast<uint8_t>(file[8]) + 256 * static_cast<size_t>(static_cast<uint8_t>(file[9]));
    std::vector<float> values((file.size() - begin) / sizeof(float));
    std::memcpy(values.data(), file.data() + begin, values.size() * sizeof(float));
    return values;
  }

  // What the middle one of three requests captures.
  std::vector<float> captured(EngineConfig config, const std::vector<int32_t>& ids) {
    const LoadedModel model = load(config);
    for (const std::string id : {"before", "captured", "behind"}) {
      testing::Request request{.id = id, .inputs = inputs(id == "before" ? 1 : 2, 11), .params = {}};
      if (id == "captured") request.inputs.set_encoder_ids(std::vector<int32_t>(ids));
      request.params.max_tokens = 3;
      request.params.capture_encoder_output = id == "captured";
      add(*model.engine, request);
    }
    std::vector<RequestOutput> outputs;
    while (model.engine->has_unfinished_requests()) EXPECT_TRUE(model.engine->step(outputs).ok());
    const auto found = std::ranges::find(outputs, "captured", &RequestOutput::request_id);
    return found == outputs.end() ? std::vector<float>() : found->encoder_output;
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, DumpTest,
                         ::testing::Values(Storage{}, Storage{.kv_cache_dtype = "int8"},
                                           Storage{.quantization = "int8"},
                                           Storage{.dtype = "bfloat16", .kv_cache_dtype = "bfloat16"}),
                         [](const auto& storage) {
                           return str_cat(storage.param.dtype, "_", storage.param.quantization, "_",
                                          storage.param.kv_cache_dtype);
                         });

TEST_P(DumpTest, TheFileIsWhatARequestGets) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 29; ++i) ids.push_back((i * i + 4) % 40);
  EngineConfig config = TinyModelTest::config();
  config.dtype = GetParam().dtype;
  config.quantization = GetParam().quantization;
  config.kv_cache_dtype = GetParam().kv_cache_dtype;
  const std::vector<float> expected = captured(config, ids);
  ASSERT_EQ(expected.size(), ids.size() * static_cast<size_t>(kLeastInt8Width));
  const auto flag = [](std::string_view name, std::string_view value) { return str_cat("--", name, "=", value); };
  const std::vector<std::string> flags = {flag("dtype", GetParam().dtype),
                                          flag("quantization", GetParam().quantization),
                                          flag("kv-cache-dtype", GetParam().kv_cache_dtype), "--threads=1"};
  EXPECT_THAT(dumped(ids, flags), ElementsAreArray(expected));
}

}  // namespace
}  // namespace transept
