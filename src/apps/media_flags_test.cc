#include "apps/media_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<MediaLimits> limits_of(const std::vector<std::string>& arguments) {
  const StatusOr<Flags> flags = Flags::parse(media_flags(), arguments);
  EXPECT_TRUE(flags.ok()) << flags.status();
  return media_limits(*flags);
}

TEST(MediaFlags, DefaultsAreThoseOfTheLimits) {
  const auto limits = limits_of({});
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->max_images, MediaLimits().max_images);
  EXPECT_EQ(limits->image.max_pixels, 67108864);
  EXPECT_EQ(limits->alpha, ImageAlpha::kWhite);
}

TEST(MediaFlags, TakesBothOfVllmsForms) {
  EXPECT_EQ(limits_of({"--limit-mm-per-prompt", "image=3"})->max_images, 3);
  EXPECT_EQ(limits_of({"--limit-mm-per-prompt", "audio=1,image=1024"})->max_images, 1024);
  EXPECT_EQ(limits_of({"--limit-mm-per-prompt", R"({"image": 16, "audio": 1})"})->max_images, 16);
  EXPECT_EQ(limits_of({"--limit-mm-per-prompt", "audio=1"})->max_images, 8);
  EXPECT_EQ(limits_of({"--image-alpha", "drop"})->alpha, ImageAlpha::kDrop);
  EXPECT_EQ(limits_of({"--max-image-pixels", "1000"})->image.max_pixels, 1000);
}

TEST(MediaFlags, NamesWhatIsWrong) {
  const auto refusal = [](const std::vector<std::string>& arguments) {
    const auto limits = limits_of(arguments);
    EXPECT_FALSE(limits.ok()) << arguments.back();
    return error_message(limits.status());
  };
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "image"}),
              AllOf(HasSubstr("--limit-mm-per-prompt image: "), HasSubstr("MODALITY=N")));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "image=0"}),
              HasSubstr("image: expected a whole number from 1 to 1024"));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "image=1025"}), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "image=2x"}), HasSubstr("expected a whole number"));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "audio=2"}), HasSubstr("audio: expected a whole number from 1 to 1"));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "video=1"}), HasSubstr("no limit of \"video\""));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", "{"}), HasSubstr("--limit-mm-per-prompt {: "));
  EXPECT_THAT(refusal({"--limit-mm-per-prompt", R"({"image": "3"})"}), HasSubstr("image: expected"));
  EXPECT_THAT(refusal({"--image-alpha", "black"}), HasSubstr("--image-alpha black: expected white or drop"));
  EXPECT_THAT(refusal({"--max-image-pixels", "0"}), HasSubstr("--max-image-pixels 0"));
}

}  // namespace
}  // namespace transept
