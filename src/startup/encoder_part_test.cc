// What an instance says of others whose fingerprint is not its own.
#include "startup/encoder_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/content_digest_testing.h"
#include "encoder_cache/ec_frame.h"

namespace transept {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(EncoderPart, KindsOfInstancesHaveWordsOfTheirOwn) {
  for (const std::optional<WeightFormat>& weights : {std::optional<WeightFormat>(), std::optional(kInt8Format)}) {
    const std::vector<KindOfInstance> kinds = kinds_of_instances(weights);
    EXPECT_EQ(kinds.front().options.weight_storage, weights);
    EXPECT_EQ(kinds.front().options.wire_version, kEcWireVersion);
    std::set<std::string> words;
    for (size_t i = 1; i < kinds.size(); ++i) {
      const FingerprintOptions& options = kinds[i].options;
      EXPECT_TRUE(words.insert(kinds[i].what).second) << kinds[i].what;
      EXPECT_NE(options.weight_storage != weights, options.wire_version != kEcWireVersion) << "one of the two differs";
      EXPECT_THAT(kinds[i].what, AnyOf(HasSubstr("(--dtype, --quantization)"), HasSubstr("of the wire")));
    }
    EXPECT_EQ(words.size(), 7u);
    EXPECT_EQ(
        words.count("is of a version of transept that speaks version 2 of the wire between instances, and this one 1"),
        1u);
  }
}

TEST(EncoderPart, WhatIsKnownOfAnotherModelIsSaid) {
  LoadedModel loaded;
  loaded.other_fingerprints = {{testing::digest_of(1), "has rows of clay"}, {testing::digest_of(2), "has rows of tin"}};
  EXPECT_EQ(explain_other_model(loaded, testing::digest_of(2), "the decode instance p0"),
            "the decode instance p0 has rows of tin");
  EXPECT_THAT(explain_other_model(loaded, testing::digest_of(3), "p0"), HasSubstr("p0 has another checkpoint, "));
}

}  // namespace
}  // namespace transept
