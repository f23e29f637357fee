#include "disagg/input_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace transept {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

EncoderItem audio_item() {
  auto features = std::make_shared<EncoderFeatures>();
  features->modality = Modality::kAudio;
  features->shape = {2, 3};
  features->values = {0, 1, -2, 3.5f, 4, 5};
  features->extras = {7, -1};
  features->num_positions = 2;
  features->num_rows = 5;
  features->audio_seconds = 1.5;
  return {{}, features};
}

Bytes encoded(const EncoderItem& item) {
  Bytes bytes;
  encode_input(item, bytes);
  return bytes;
}

std::string error_of(const Bytes& bytes) { return error_message(decode_input(bytes).status()); }

// Laid out by hand, from docs/formats/features.md.
TEST(InputCodec, IdsAreAsThePageSays) {
  EXPECT_EQ(encoded(EncoderItem({5, 300})), bytes_of({1, 1, 0, 2, 2, 5, 0, 44, 1, 0}));
}

TEST(InputCodec, FeaturesAreAsThePageSays) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = {1, 2};
  features->values = {1.0f, -2.0f};
  features->num_positions = 3;
  features->audio_seconds = 0.5;
  EXPECT_EQ(encoded(EncoderItem({}, features)), bytes_of({1, 1, 0,    0, 1, 1, 2, 2, 4, 2, 0, 0, 0x80, 0x3f, 0,
                                                          0, 0, 0xc0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f}));
}

TEST(InputCodec, AllFieldsComeBack) {
  EncoderItem item = audio_item();
  item.token_ids = {1, 2, 3};
  item.consumers = Consumers::kCross | Consumers::kSplice;
  item.splice_offset = 4;
  const auto decoded = decode_input(encoded(item));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->token_ids, item.token_ids);
  EXPECT_EQ(decoded->consumers, item.consumers);
  EXPECT_EQ(decoded->splice_offset, 4);
  EXPECT_EQ(*decoded->features, *item.features);
  EXPECT_EQ(item_digest(*decoded), item_digest(item));
}

TEST(InputCodec, NothingToEncodeIsRefused) { EXPECT_THAT(error_of(encoded(EncoderItem())), HasSubstr("token_ids")); }

TEST(InputCodec, CutAnywhereIsRefused) {
  const Bytes whole = encoded(audio_item());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(decode_input(std::span(whole).first(size)).status())) << size;
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THAT(error_of(longer), HasSubstr("is not the last field"));
}

TEST(InputCodec, RefusesByName) {
  const auto with = [](auto change) {
    EncoderItem item = audio_item();
    EncoderFeatures features = *item.features;
    change(item, features);
    item.features = std::make_shared<EncoderFeatures>(features);
    return error_of(encoded(item));
  };
  using F = EncoderFeatures;
  using I = EncoderItem;
  EXPECT_THAT(with([](I&, F& f) { f.shape = {2, 2}; }), HasSubstr("values"));
  EXPECT_THAT(with([](I&, F& f) { f.shape = {}; }), HasSubstr("shape"));
  EXPECT_THAT(with([](I&, F& f) { f.shape = {-2, -3}; }), HasSubstr("values"));
  EXPECT_THAT(with([](I&, F& f) { f.shape = {0, 3}, f.values.clear(); }), HasSubstr("values"));
  EXPECT_THAT(with([](I&, F& f) { f.shape = {int64_t{1} << 62, 4}, f.values.clear(); }), HasSubstr("values"));
  EXPECT_THAT(with([](I&, F& f) { f.shape = {1, 1, 1, 1, 1, 1, 1, 2, 3}; }), HasSubstr("shape"));
  EXPECT_THAT(with([](I&, F& f) { f.modality = static_cast<Modality>(3); }), HasSubstr("modality"));
  EXPECT_THAT(with([](I&, F& f) { f.num_positions = 0; }), HasSubstr("num_positions"));
  EXPECT_THAT(with([](I&, F& f) { f.num_rows = -1; }), HasSubstr("num_rows"));
  EXPECT_THAT(with([](I&, F& f) { f.audio_seconds = -1; }), HasSubstr("audio_seconds"));
  EXPECT_THAT(with([](I&, F& f) { f.audio_seconds = std::nan(""); }), HasSubstr("audio_seconds"));
  EXPECT_THAT(with([](I& i, F&) { i.consumers = Consumers::kNone; }), HasSubstr("consumers"));
  EXPECT_THAT(with([](I& i, F&) { i.consumers = static_cast<Consumers>(4); }), HasSubstr("consumers"));
  EXPECT_THAT(with([](I& i, F&) { i.splice_offset = -1; }), HasSubstr("splice_offset"));
}

TEST(InputCodec, RefusesAnotherVersion) {
  Bytes bytes = encoded(audio_item());
  bytes[0] = std::byte{2};
  EXPECT_THAT(error_of(bytes), HasSubstr("version"));
}

// A list that announces more than there is takes no memory.
TEST(InputCodec, AnnouncedSizesAreNotBelieved) {
  EXPECT_THAT(error_of(bytes_of({1, 1, 0, 0, 1, 1, 1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f})), HasSubstr("values"));
}

}  // namespace
}  // namespace transept
