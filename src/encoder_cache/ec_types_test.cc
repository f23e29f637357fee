// Which names and which metadata are taken, at the ends of every range.
#include "encoder_cache/ec_types.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>

namespace transept {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

EcMeta whisper() {
  EcMeta meta;
  meta.key = {"req-1", 0, 0};
  meta.num_positions = 1500;
  meta.width = 384;
  meta.place = {0, 1500, {}};
  meta.time_left = std::chrono::seconds(30);
  return meta;
}

// "" if it is taken; else the name of the field that is refused.
std::string refused(const std::function<void(EcMeta&)>& change) {
  EcMeta meta = whisper();
  change(meta);
  const Status status = check_ec_meta(meta);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return error_param(status);
}

TEST(EcTypes, NamesAreOfOneSetOfCharacters) {
  const std::string all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  EXPECT_TRUE(check_ec_name("name", all).ok());
  for (int c = 0; c < 256; ++c) {
    const std::string name(1, static_cast<char>(c));
    EXPECT_EQ(check_ec_name("name", name).ok(), c != 0 && all.find(name) != std::string::npos) << c;
  }
  EXPECT_TRUE(check_ec_name("name", std::string(128, 'a')).ok());
  EXPECT_FALSE(check_ec_name("name", std::string(129, 'a')).ok());
  EXPECT_FALSE(check_ec_name("name", "").ok());
  EXPECT_EQ(error_param(check_ec_name("instance", "a b")), "instance");
}

TEST(EcTypes, AnErrorOfANameDoesNotEchoControlCharacters) {
  EXPECT_EQ(error_message(check_ec_name("name", "a\x1b[2J")).find('\x1b'), std::string::npos);
}

TEST(EcTypes, NumbersOfMetadataHaveRanges) {
  EXPECT_EQ(refused([](EcMeta&) {}), "");
  EXPECT_EQ(refused([](EcMeta& m) { m.key.request_id = ""; }), "request_id");
  EXPECT_EQ(refused([](EcMeta& m) { m.key.input_id = m.key.attempt = 0xFFFFFFFF; }), "");
  EXPECT_EQ(refused([](EcMeta& m) { m.num_positions = 0; }), "num_positions");
  EXPECT_EQ(refused([](EcMeta& m) { m.num_positions = -1; }), "num_positions");
  EXPECT_EQ(refused([](EcMeta& m) { m.width = 0; }), "width");
  EXPECT_EQ(refused([](EcMeta& m) { m.width = -5; }), "width");
  EXPECT_EQ(refused([](EcMeta& m) { m.num_positions = m.place.length = 1, m.width = 1; }), "");
}

TEST(EcTypes, TwoTypesTravel) {
  for (int type = 0; type < 256; ++type) {
    const auto dtype = static_cast<DType>(type);
    const bool travels = dtype == DType::kFloat32 || dtype == DType::kBFloat16;
    EXPECT_EQ(refused([&](EcMeta& m) { m.dtype = dtype; }), travels ? "" : "dtype") << type;
  }
}

TEST(EcTypes, PlacesLieInAPrompt) {
  const auto with = [](PlaceholderRange place) { return refused([&](EcMeta& m) { m.place = place; }); };
  EXPECT_EQ(with({0, 0, {}}), "");
  EXPECT_EQ(with({-1, 0, {}}), "offset");
  EXPECT_EQ(with({0, -1, {}}), "length");
  EXPECT_EQ(with({0, 1501, {}}), "length") << "more rows than there are";
  EXPECT_EQ(with({kMax - 1500, 1500, {}}), "");
  EXPECT_EQ(with({kMax - 1499, 1500, {}}), "length");
  EXPECT_EQ(with({5, 324, {1, 36, 36}}), "");
  EXPECT_EQ(with({5, 324, {1, -36, -36}}), "grid");
  EXPECT_EQ(with({5, 324, {0, 36, 36}}), "grid");
  EXPECT_EQ(with({5, 324, {1, 36, 0}}), "grid");
  EXPECT_EQ(with({0, 1, {kMax, 1, 1}}), "");
  EXPECT_EQ(with({0, 1, {2, kMax, 1}}), "grid");
  EXPECT_EQ(with({0, 1, {1, 65536, 32768}}), "grid");
  EXPECT_EQ(with({0, 1, {1, 65536, 32767}}), "");
}

TEST(EcTypes, TimeLeftCanBeAddedToAClock) {
  const auto with = [](Duration left) { return refused([&](EcMeta& m) { m.time_left = left; }); };
  EXPECT_EQ(with(Duration::zero()), "") << "over: the receiver cancels";
  EXPECT_EQ(with(Duration(-1)), "time_left");
  EXPECT_EQ(with(std::chrono::hours(24 * 366)), "");
  EXPECT_EQ(with(std::chrono::hours(24 * 366) + Duration(1)), "time_left");
  EXPECT_EQ(with(Duration::max()), "time_left");
}

TEST(EcTypes, BytesOfRows) {
  EcMeta meta = whisper();
  EXPECT_EQ(ec_payload_bytes(meta), 2304000u);
  meta.dtype = DType::kBFloat16;
  EXPECT_EQ(ec_payload_bytes(meta), 1152000u);
  meta.num_positions = meta.width = kMax;  // 2^63 - 2^33 + 2
  EXPECT_TRUE(check_ec_meta(meta).ok());
  EXPECT_EQ(ec_payload_bytes(meta), (uint64_t{1} << 63) - (uint64_t{1} << 33) + 2);
  meta.dtype = DType::kFloat32;
  EXPECT_EQ(error_param(check_ec_meta(meta)), "num_positions");
}

TEST(EcTypes, VerdictsHaveNames) {
  std::set<std::string_view> names;
  for (int verdict = 0; verdict < kNumEcVerdicts; ++verdict) names.insert(name(static_cast<EcVerdict>(verdict)));
  EXPECT_EQ(names, (std::set<std::string_view>{"allocated", "hit", "wait", "never", "incompatible", "busy", "gone"}));
  EXPECT_EQ(name(static_cast<EcVerdict>(kNumEcVerdicts)), "");
}

}  // namespace
}  // namespace transept
