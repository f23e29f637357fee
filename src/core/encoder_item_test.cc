// Proves which bytes an input's digest is of, by Python's hashlib, and what tells two inputs apart.
#include "core/encoder_item.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

EncoderItem audio(std::vector<int64_t> shape, std::vector<float> values) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = std::move(shape);
  features->values = std::move(values);
  features->num_positions = 2;
  return EncoderItem({}, features);
}

// hashlib.sha256 of pack("<q", len(salt)) + salt + pack("<q", len(modality)) + modality + pack("<q", len(shape)) +
// each pack("<q", size) + the values by pack("<3i", ..) or pack("<4f", ..).
TEST(EncoderItemDigest, IsOfSaltModalityShapeAndValues) {
  const EncoderItem ids({1, 2, 300000});
  EXPECT_EQ(digest_hex(item_digest(ids)), "7cb72bca025ff2a6c50f5b44b1cc37f31396d3a961766db620ca7d08271888d4");
  EXPECT_EQ(digest_hex(item_digest(ids, "tenant")), "ebe5d2b09204484aa796f97ca202fbaafaec332b841df12030eeb31d2c929a7d");
  EXPECT_EQ(digest_hex(item_digest(audio({2, 2}, {1, -2, 0.5, 4}))),
            "664fd56508a282348435c2b3ed08a51a0f4ebc5ba47c9a0d4d03f3bcf3811649");
}

TEST(EncoderItemDigest, TellsInputsApart) {
  const ContentDigest digest = item_digest(audio({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(item_digest(audio({2, 2}, {1, 2, 3, 4})), digest);
  EXPECT_NE(item_digest(audio({4}, {1, 2, 3, 4})), digest);
  EXPECT_NE(item_digest(audio({2, 2}, {1, 2, 3, 5})), digest);
  EXPECT_NE(item_digest(audio({2, 2}, {1, 2, 3, 4}), "tenant"), digest);
  EXPECT_NE(item_digest(EncoderItem({0, 2})), item_digest(EncoderItem({2})));
  // Not by NaN or the sign of zero, as floats compare: by what the encoder is given.
  EXPECT_NE(item_digest(audio({1}, {0.0f})), item_digest(audio({1}, {-0.0f})));
}

TEST(EncoderItemDigest, IsOfIdsAndMediaWhereAnItemHasBoth) {
  const EncoderItem media = audio({1}, {1});
  const EncoderItem both({4}, media.features), other({5}, media.features);
  EXPECT_NE(item_digest(both), item_digest(media));
  EXPECT_NE(item_digest(both), item_digest(EncoderItem(std::vector<int32_t>{4})));
  EXPECT_NE(item_digest(both), item_digest(other));
  auto image = std::make_shared<EncoderFeatures>(*media.features);
  image->modality = Modality::kImage;
  EXPECT_NE(item_digest(EncoderItem({}, image)), item_digest(media));
  EncoderItem spliced = media;
  spliced.consumers = Consumers::kSplice;
  EXPECT_NE(item_digest(spliced), item_digest(media)) << "another encoder may run";
  spliced.splice_offset = 5;
  EXPECT_EQ(item_digest(spliced), item_digest([&] {
              EncoderItem same = media;
              same.consumers = Consumers::kSplice;
              return same;
            }()));
  auto with_extras = std::make_shared<EncoderFeatures>(*media.features);
  with_extras->extras = {0};
  EXPECT_NE(item_digest(EncoderItem({}, with_extras)), item_digest(media));
}

// The same rows may be spliced or crossed; only those that are crossed make the cross table.
TEST(EncoderItemDigest, OfTheCrossTableIsOfTheItemsInIt) {
  std::vector<EncoderItem> items = {EncoderItem({1, 2}), EncoderItem({3}), EncoderItem({4})};
  items[1].consumers = Consumers::kSplice;
  make_digests(items, {});
  EXPECT_EQ(num_cross_positions(items), 3);
  EXPECT_EQ(num_positions(items), 4);
  const ContentDigest two = cross_digest(items);
  EXPECT_NE(two, *items[0].digest);
  EXPECT_EQ(cross_digest(std::span(items).first(2)), *items[0].digest) << "of one item it is its own";
  std::swap(items[0], items[2]);
  EXPECT_NE(cross_digest(items), two) << "the order of keys counts";
}

// Media among ids have a position for each id; the widest layer is the tower's or the encoder's.
TEST(EncoderItem, CountsPositionsAndRows) {
  auto media = std::make_shared<EncoderFeatures>();
  media->num_positions = 3;
  EXPECT_EQ(EncoderItem({}, media).num_positions(), 3);
  EXPECT_EQ(EncoderItem({}, media).num_rows(), 3);
  EXPECT_EQ(EncoderItem({1, 2, 3, 4}, media).num_positions(), 4);
  EXPECT_EQ(EncoderItem({1, 2, 3, 4}, media).num_rows(), 4);
  media->num_rows = 9;
  EXPECT_EQ(EncoderItem({}, media).num_positions(), 3);
  EXPECT_EQ(EncoderItem({}, media).num_rows(), 9);
  EXPECT_EQ(EncoderItem({1, 2, 3, 4}, media).num_positions(), 4);
  EXPECT_EQ(EncoderItem({1, 2, 3, 4}, media).num_rows(), 9);
  EXPECT_EQ(EncoderItem(std::vector<int32_t>{1, 2}).num_rows(), 2);
}

TEST(EncoderItem, MadeRemoteKeepsItsContentItsIdsAndItsLength) {
  auto media = std::make_shared<EncoderFeatures>();
  media->shape = {2, 6};
  media->values.assign(12, 0.5f);
  media->num_positions = 3;
  media->audio_seconds = 1.5;
  EncoderItem item({7, 8, 9, 9}, media);
  item.consumers = Consumers::kSplice;
  item.splice_offset = 4;
  const EncoderItem before = item;
  make_remote(item, 5);
  EXPECT_EQ(item.remote->digest, item_digest(before));
  EXPECT_EQ(item_digest(item), item_digest(before));
  EXPECT_EQ(item.remote->input_id, 5u);
  EXPECT_EQ(item.num_positions(), 4);
  EXPECT_EQ(item.token_ids, before.token_ids);
  EXPECT_EQ(item.splice_offset, 4);
  EXPECT_EQ(item.consumers, Consumers::kSplice);
  EXPECT_EQ(item.features, nullptr) << "the decode instance encodes nothing";
  ASSERT_NE(item.content, nullptr);
  EXPECT_EQ(item.content->features, media);
  EXPECT_EQ(item.content->token_ids, before.token_ids);
  EXPECT_FALSE(item.content->remote.has_value());
  EXPECT_EQ(media_of(item), media.get());
  EXPECT_EQ(media_of(before), media.get());
  EXPECT_EQ(media_of(EncoderItem({1})), nullptr);
}

// A handle's items are made remote once, and stand where each of its requests has them.
TEST(EncoderItem, MadeLocalIsItsContentWhereTheRequestHasIt) {
  EncoderItem item = audio({2, 2}, {1, 2, 3, 4});
  item.consumers = Consumers::kSplice;
  const EncoderItem before = item;
  make_remote(item, 0);
  item.splice_offset = 7;
  item.digest = testing::digest_of(9);  // a handle's own, where equal inputs are not shared
  make_local(item);
  EXPECT_FALSE(item.remote.has_value());
  EXPECT_EQ(item.content, nullptr);
  EXPECT_EQ(item.features, before.features);
  EXPECT_EQ(item.consumers, Consumers::kSplice);
  EXPECT_EQ(item.splice_offset, 7);
  EXPECT_EQ(item.digest, testing::digest_of(9));
}

TEST(EncoderItem, StandsWhereARequestHasIt) {
  std::vector<EncoderItem> held = {EncoderItem({1}), EncoderItem({2, 3})};
  held[1].splice_offset = 4;
  std::vector<EncoderItem> placed = {EncoderItem({8}), EncoderItem({9})};
  placed[0].splice_offset = 5, placed[1].splice_offset = 6;
  const std::vector<EncoderItem> items = items_in_places(held, placed);
  EXPECT_EQ(items[0].token_ids, std::vector<int32_t>({1}));
  EXPECT_EQ(items[1].token_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(items[0].splice_offset, 5);
  EXPECT_EQ(items[1].splice_offset, 6);
  EXPECT_EQ(items_in_places(held, {})[1].splice_offset, 4) << "as they are";
}

// Positions that stand last do so behind those of all items: 3 + 1, 2, (spliced), 1 + 4.
TEST(CrossPlace, LastPositionsStandBehindAllOthers) {
  const auto item = [](int32_t num_positions, int32_t num_last) {
    auto features = std::make_shared<EncoderFeatures>();
    features->num_positions = num_positions;
    features->num_last_positions = num_last;
    return EncoderItem({}, std::move(features));
  };
  std::vector<EncoderItem> items = {item(4, 1), item(2, 0), item(9, 3), item(5, 4)};
  items[2].consumers = Consumers::kSplice;
  EXPECT_EQ(num_cross_positions(items), 11);
  EXPECT_EQ(cross_place(items, 0), (CrossPlace{0, 6, 1}));
  EXPECT_EQ(cross_place(items, 1), (CrossPlace{3, 7, 0}));
  EXPECT_EQ(cross_place(items, 3), (CrossPlace{5, 7, 4}));
  std::vector<int32_t> places;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{3}}) {
    for (int32_t row = 0; row < items[i].num_positions(); ++row) {
      places.push_back(cross_place(items, i).position(row, items[i].num_positions()));
    }
  }
  EXPECT_EQ(places, (std::vector<int32_t>{0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 10}));
}

TEST(CrossPlace, IsThatOfTheContentWhereverItIsEncoded) {
  auto features = std::make_shared<EncoderFeatures>();
  features->num_positions = 5;
  features->num_last_positions = 2;
  EncoderItem item({}, std::move(features));
  make_remote(item, 0);
  EXPECT_EQ(item.num_last_positions(), 2);
  EXPECT_EQ(cross_place({&item, 1}, 0), (CrossPlace{0, 3, 2}));
}

}  // namespace
}  // namespace transept
