// Proves which bytes an input's digest is of, by Python's hashlib, and what tells two inputs apart.
#include "core/encoder_features.h"

#include <gtest/gtest.h>

#include <string>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using testing::printed;

EncoderContent audio(std::vector<int64_t> shape, std::vector<float> values) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = std::move(shape);
  features->values = std::move(values);
  features->num_positions = 2;
  return EncoderContent({}, features);
}

// hashlib.sha256 of pack("<q", len(salt)) + salt + pack("<q", len(modality)) + modality + pack("<q", len(shape)) +
// each pack("<q", size) + the values by pack("<3i", ..) or pack("<4f", ..).
TEST(EncoderContentDigest, IsOfSaltModalityShapeAndValues) {
  const EncoderContent ids({1, 2, 300000});
  EXPECT_EQ(printed(content_digest(ids)), "7cb72bca025ff2a6c50f5b44b1cc37f31396d3a961766db620ca7d08271888d4");
  EXPECT_EQ(printed(content_digest(ids, "tenant")), "ebe5d2b09204484aa796f97ca202fbaafaec332b841df12030eeb31d2c929a7d");
  EXPECT_EQ(printed(content_digest(audio({2, 2}, {1, -2, 0.5, 4}))),
            "664fd56508a282348435c2b3ed08a51a0f4ebc5ba47c9a0d4d03f3bcf3811649");
}

TEST(EncoderContentDigest, TellsInputsApart) {
  const ContentDigest digest = content_digest(audio({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(content_digest(audio({2, 2}, {1, 2, 3, 4})), digest);
  EXPECT_NE(content_digest(audio({4}, {1, 2, 3, 4})), digest);
  EXPECT_NE(content_digest(audio({2, 2}, {1, 2, 3, 5})), digest);
  EXPECT_NE(content_digest(audio({2, 2}, {1, 2, 3, 4}), "tenant"), digest);
  EXPECT_NE(content_digest(EncoderContent({0, 2})), content_digest(EncoderContent({2})));
  // Not by NaN or the sign of zero, as floats compare: by what the encoder is given.
  EXPECT_NE(content_digest(audio({1}, {0.0f})), content_digest(audio({1}, {-0.0f})));
}

}  // namespace
}  // namespace transept
