// T5's buckets against transformers' own (tests/make_t5_buckets.py), and tables by distance: what they hold inside,
// what they repeat beyond.
#include "attention/bias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "attention/bias_kernel.h"
#include "base/json.h"
#include "base/source_dir_testing.h"
#include "ops/vec_generic.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

TEST(T5BucketsTest, AreThoseOfTransformers) {
  std::ifstream file(source_dir() + "/src/attention/testdata/t5_buckets.jsonl");
  ASSERT_TRUE(file.is_open());
  std::string line;
  int64_t num_distances = 0;
  while (std::getline(file, line)) {
    const Json json = *Json::parse(line);
    const auto number = [&](const char* key) { return json.find(key)->as_int(); };
    const T5Buckets buckets{json.find("bidirectional")->as_bool(), number("num_buckets"), number("max_distance")};
    std::string why;
    ASSERT_TRUE(buckets.valid(&why)) << why;
    const Json::Array& runs = json.find("runs")->as_array();
    size_t run = 0;
    for (int64_t distance = number("first"); distance <= number("last"); ++distance, ++num_distances) {
      if (run + 1 < runs.size() && runs[run + 1].as_array()[0].as_int() == distance) ++run;
      ASSERT_EQ(buckets.bucket(distance), runs[run].as_array()[1].as_int()) << line.substr(0, 80) << " at " << distance;
    }
    // Far beyond what the file says nothing changes.
    EXPECT_EQ(buckets.bucket(1 << 30), buckets.bucket(buckets.max_distance));
    EXPECT_EQ(buckets.bucket(-(1 << 30)), buckets.bucket(-buckets.max_distance));
  }
  EXPECT_GT(num_distances, 10000);
}

TEST(T5BucketsTest, RefusesNumbersThatGiveNoBuckets) {
  const auto reason = [](T5Buckets buckets) {
    std::string why;
    return buckets.valid(&why) ? "valid" : why;
  };
  EXPECT_EQ(reason({}), "valid");
  EXPECT_THAT(reason({.num_buckets = 3}), HasSubstr("3 buckets"));
  EXPECT_THAT(reason({.num_buckets = 1 << 20}), HasSubstr("buckets"));
  EXPECT_THAT(reason({.num_buckets = 32, .max_distance = 8}), HasSubstr("farthest distance 8; from 9"));
  EXPECT_THAT(reason({.bidirectional = false, .num_buckets = 32, .max_distance = 16}), HasSubstr("from 17"));
  EXPECT_THAT(reason({.max_distance = 1 << 20}), HasSubstr("farthest distance"));
}

TEST(DistanceBiasTest, IsItsFunctionInsideAndConstantBeyond) {
  constexpr int64_t kMax = 20;
  const DistanceBias table(3, kMax, [&](int64_t head, int64_t distance) {
    EXPECT_LE(std::abs(distance), kMax);
    return static_cast<float>(100 * head + distance);
  });
  const AttentionBias bias = table.bias();
  EXPECT_TRUE(bias.needs_position());
  for (int64_t head = 0; head < 3; ++head) {
    for (const int64_t position : {0, 1, 5, 300, 1000000}) {
      for (int64_t key = std::max<int64_t>(0, position - 90); key < position + 90; ++key) {
        const RowBias row = bias.of_row(7, head, 3, position);
        const auto values = bias_by_distance<generic::Vec>(row, key, 1);
        for (int lane = 0; lane < generic::Vec::kLanes; ++lane) {
          const auto distance = static_cast<float>(std::clamp(key + lane - position, -kMax, kMax));
          ASSERT_EQ(values[lane], static_cast<float>(100 * head) + distance) << position << " key " << key;
        }
      }
    }
  }
}

TEST(AlibiTest, FallsWithTheDistanceByTheHeadsSlope) {
  const std::vector<float> slopes = {0.5f, 0.0078125f};
  const AttentionBias bias = AttentionBias::alibi(slopes);
  EXPECT_TRUE(bias.needs_position());
  for (int64_t head = 0; head < 2; ++head) {
    const auto values = alibi_bias<generic::Vec>(bias.of_row(0, head, 0, 1001), 1000, 4);
    for (int lane = 0; lane < 4; ++lane) {
      EXPECT_EQ(values[lane], -slopes[static_cast<size_t>(head)] * static_cast<float>(std::abs(lane - 1)));
    }
  }
}

TEST(BiasTest, NothingAndTensorsNeedNoPosition) {
  EXPECT_FALSE(AttentionBias::none().needs_position());
  float value = 3;
  TensorView view(&value, DType::kFloat32, {1, 1, 1, 1});
  EXPECT_FALSE(AttentionBias::tensor(view).needs_position());
}

}  // namespace
}  // namespace transept
