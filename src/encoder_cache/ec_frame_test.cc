// Frames against the vectors of an encoder that shares no code (testdata/make_ec_frames.py), and that whatever is cut,
// changed, forged or too large is refused.
#include "encoder_cache/ec_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/source_dir_testing.h"
#include "encoder_cache/ec_frames_testing.h"

namespace transept {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::encoded;
using testing::FrameDrawer;
using ::testing::HasSubstr;

const EcSecret& secret() {
  static const EcSecret secret(bytes_of("a secret of tests"));
  return secret;
}

struct Vector {
  std::string name, outcome;
  const EcSecret* secret = nullptr;
  Bytes bytes;
};

std::vector<Vector> vectors() {
  std::ifstream file(source_dir() + "/src/encoder_cache/testdata/ec_frames.txt");
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    Vector vector;
    std::string secret_name, hex;
    std::istringstream(line) >> vector.name >> secret_name >> vector.outcome >> hex;
    if (secret_name == "secret") vector.secret = &secret();
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      vector.bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

// The values that make_ec_frames.py has, by the names of frames without "_secret".
std::map<std::string, EcMessage> messages() {
  const EcKey key{"req-1", 2, 1};
  EcMeta meta{key, {}, {}, 1500, 384, DType::kFloat32, {0, 1500, {}}, std::chrono::seconds(30)};
  for (int i = 0; i < 32; ++i) {
    meta.digest.bytes[static_cast<size_t>(i)] = static_cast<std::byte>(i);
    meta.model.bytes[static_cast<size_t>(i)] = static_cast<std::byte>(255 - i);
  }
  std::map<std::string, EcMessage> messages = {{"meta", meta}, {"meta_behind", meta}};
  const auto with = [&](int32_t positions, int32_t width, DType dtype, PlaceholderRange place, Duration left) {
    meta.num_positions = positions, meta.width = width, meta.dtype = dtype, meta.place = place, meta.time_left = left;
    return meta;
  };
  messages["meta_splice"] = with(324, 2048, DType::kBFloat16, {5, 324, {1, 36, 36}}, std::chrono::microseconds(1));
  meta.key = {std::string(63, 'A') + "._:-" + std::string(61, 'z'), 0xFFFFFFFF, 0xFFFFFFFF};
  messages["meta_largest"] =
      with(0x7FFFFFFF, 1 << 30, DType::kFloat32, {1, 0x7FFFFFFE, {0x7FFFFFFF, 1, 1}}, std::chrono::hours(366 * 24));
  meta.key = {"x", 0, 0};
  messages["meta_smallest"] = with(1, 1, DType::kBFloat16, {}, Duration::zero());
  messages["query"] = EcQuery{key};
  messages["cancel_of_sender"] = EcCancel{key, EcChannel::kMetadata};
  messages["cancel_of_receiver"] = EcCancel{key, EcChannel::kAllocation};
  messages["allocated"] = EcAllocation{key, EcVerdict::kAllocated, 0xFEEDFACECAFEBEEF, "tcp://[fd00::1]:19536"};
  for (int i = 0; i < kNumEcVerdicts; ++i) {
    const auto verdict = static_cast<EcVerdict>(i);
    messages["injection_" + std::string(name(verdict))] = EcInjection{key, verdict};
    if (i > 0) messages["allocation_" + std::string(name(verdict))] = EcAllocation{key, verdict, 0, ""};
  }
  static constexpr char kRows[] = "\x00\x01\x02\x03\xfc\xfd\xfe\xff";
  messages["chunk"] = EcChunk{key, 0xFEEDFACECAFEBEEF, 16, 1000, bytes_of({kRows, 8})};
  messages["chunk_behind"] = EcChunk{key, 0xFEEDFACECAFEBEEF, 16, 1000, bytes_of("rows")};
  messages["chunk_of_one_byte"] = EcChunk{key, 1, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, bytes_of("\x80")};
  return messages;
}

TEST(EcFrame, AChunksFrontAndItsBytesAreItsFrame) {
  const std::vector<std::byte> rows(1000, std::byte{5});
  const EcSecret secret(testing::bytes_of("a secret of tests"));
  const EcFrame frame{3, 4, EcChunk{{"r", 0, 1}, 7, 1000, 5000, rows}};
  for (const EcSecret* used : {static_cast<const EcSecret*>(nullptr), &secret}) {
    testing::Bytes whole = testing::encoded(frame, used), front;
    ASSERT_TRUE(encode_ec_chunk_front(frame, used, front).ok());
    ASSERT_EQ(front.size() + rows.size(), whole.size());
    front.insert(front.end(), rows.begin(), rows.end());
    EXPECT_EQ(front, whole);
  }
}

TEST(EcFrame, VectorsOfAnotherEncoderAreTakenAndMade) {
  const auto expected = messages();
  std::map<std::string, int> seen;
  for (const Vector& vector : vectors()) {
    if (vector.outcome != "taken") continue;
    SCOPED_TRACE(vector.name);
    const std::string base = vector.name.substr(0, vector.name.find("_secret"));
    ASSERT_TRUE(expected.contains(base));
    ++seen[base];
    const EcFrame frame{0x0123456789ABCDEF, 7, expected.at(base)};
    const auto decoded = decode_ec_frame(vector.bytes, vector.secret);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(testing::equal(*decoded, frame));
    if (base.ends_with("_behind")) continue;  // what this version does not know, it does not write
    EXPECT_EQ(encoded(frame, vector.secret), vector.bytes);
  }
  EXPECT_EQ(seen.size(), expected.size());
}

TEST(EcFrame, VectorsThatAreWrongAreRefusedWithTheirReason) {
  int num_refused = 0;
  for (const Vector& vector : vectors()) {
    if (vector.outcome == "taken") continue;
    SCOPED_TRACE(vector.name);
    ++num_refused;
    const auto decoded = decode_ec_frame(vector.bytes, vector.secret);
    ASSERT_FALSE(decoded.ok());
    const size_t colon = vector.outcome.find(':');
    std::string words = vector.outcome.substr(colon + 1), message = error_message(decoded.status());
    EXPECT_EQ(name(ec_frame_fault(decoded.status())), vector.outcome.substr(0, colon)) << message;
    std::ranges::replace(message, ' ', '_');
    EXPECT_THAT(message, ::testing::StartsWith("frame:_" + words));
  }
  EXPECT_GT(num_refused, 70);
}

TEST(EcFrame, AnotherVersionIsAnErrorWithBothNumbers) {
  for (const Vector& vector : vectors()) {
    if (!vector.name.starts_with("version_")) continue;
    const Status refused = decode_ec_frame(vector.bytes, nullptr).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(std::to_string(ec_frame_version(refused)), vector.name.substr(8));
  }
}

TEST(EcFrame, OnlyCodesAreDenied) {
  for (const Vector& vector : vectors()) {
    const Status status = decode_ec_frame(vector.bytes, vector.secret).status();
    EXPECT_EQ(status.code() == absl::StatusCode::kPermissionDenied, vector.outcome.starts_with("code:")) << vector.name;
  }
}

TEST(EcFrame, AFieldsErrorHasItsName) {
  for (const Vector& vector : vectors()) {
    if (!vector.outcome.starts_with("field:")) continue;
    const std::string param = error_param(decode_ec_frame(vector.bytes, vector.secret).status());
    EXPECT_THAT(vector.outcome, HasSubstr(":_" + param + ":_")) << vector.name;
    EXPECT_NE(param, "");
  }
}

TEST(EcFrame, CutAnywhereIsRefused) {
  for (const Vector& vector : vectors()) {
    if (vector.outcome != "taken") continue;
    for (size_t size = 0; size < vector.bytes.size(); ++size) {
      const auto decoded = decode_ec_frame(std::span(vector.bytes).first(size), vector.secret);
      ASSERT_FALSE(decoded.ok()) << vector.name << " " << size;
      EXPECT_EQ(ec_frame_fault(decoded.status()), EcFrameFault::kCut);
    }
  }
}

// The body is cut, and the head says so: only the fields themselves can tell.
TEST(EcFrame, FieldsCutAnywhereAreRefused) {
  for (const Vector& vector : vectors()) {
    if (vector.outcome != "taken" || vector.secret != nullptr || vector.name.ends_with("_behind")) continue;
    for (size_t size = kEcHeadBytes; size < vector.bytes.size(); ++size) {
      const auto body = std::span(vector.bytes).subspan(kEcHeadBytes, size - kEcHeadBytes);
      const auto head = decode_ec_head(vector.bytes);
      ASSERT_TRUE(head.ok());
      const auto decoded = decode_ec_body(head->channel, head->kind, body, kEcHeadBytes);
      ASSERT_FALSE(decoded.ok()) << vector.name << " " << size;
      EXPECT_THAT(error_message(decoded.status()), HasSubstr("is cut off"));
      EXPECT_NE(error_param(decoded.status()), "");
    }
  }
}

TEST(EcFrame, AChunkThatIsCutIsNotFound) {
  for (const Vector& vector : vectors()) {
    if (!vector.name.starts_with("chunk") || vector.outcome != "taken") continue;
    const auto body = std::span(vector.bytes).subspan(kEcHeadBytes);
    const auto [begin, size] = find_ec_chunk_bytes(body);
    const auto frame = decode_ec_frame(vector.bytes, vector.secret);
    ASSERT_TRUE(frame.ok()) << frame.status();
    const auto& chunk = std::get<EcChunk>(frame->message);
    EXPECT_EQ(body.data() + begin, chunk.bytes.data());
    EXPECT_EQ(size, chunk.bytes.size());
    for (size_t cut = 0; cut < begin + size; ++cut) {
      // Of its own memory, so that a sanitizer sees a byte that is read behind it.
      const Bytes rest(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(cut));
      EXPECT_EQ(find_ec_chunk_bytes(rest), std::pair(cut, size_t{0})) << vector.name;
    }
  }
}

TEST(EcFrame, WithASecretNoBitCanChange) {
  for (const Vector& vector : vectors()) {
    if (vector.outcome != "taken" || vector.secret == nullptr) continue;
    Bytes bytes = vector.bytes;
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_FALSE(decode_ec_frame(bytes, vector.secret).ok()) << vector.name << " " << bit;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    EXPECT_TRUE(decode_ec_frame(bytes, vector.secret).ok());
  }
}

TEST(EcFrame, RandomFramesComeBack) {
  FrameDrawer drawer(1);
  Bytes bytes;
  for (int i = 0; i < 3000; ++i) {
    const EcFrame frame = drawer.frame();
    const EcSecret* const key = i % 2 == 0 ? &secret() : nullptr;
    ASSERT_TRUE(encode_ec_frame(frame, key, bytes).ok());
    const auto decoded = decode_ec_frame(bytes, key);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(testing::equal(*decoded, frame));
    EXPECT_FALSE(decode_ec_frame(bytes, i % 2 == 0 ? nullptr : &secret()).ok()) << "a secret on one side only";
  }
}

TEST(EcFrame, BodiesHaveLimits) {
  const EcFrame query{1, 2, EcQuery{{"r", 0, 0}}};
  Bytes bytes = encoded(query, nullptr);
  const auto grow = [&](size_t size) {  // by bytes of a later version
    bytes.resize(kEcHeadBytes + size);
    const auto number = static_cast<uint32_t>(size);
    std::memcpy(bytes.data() + 8, &number, sizeof number);
    const Status status = decode_ec_frame(bytes, nullptr).status();
    return ec_frame_fault(status);
  };
  EXPECT_EQ(grow(65536), EcFrameFault::kChecksum) << "the size is taken";
  EXPECT_EQ(grow(65537), EcFrameFault::kSize);
  Bytes rows(kMaxEcChunkBytes + 1);
  const EcKey key{std::string(128, 'k'), 0, 0};
  bytes = encoded({1, 2, EcChunk{key, 1, 0, rows.size(), std::span(rows).first(kMaxEcChunkBytes)}}, nullptr);
  EXPECT_TRUE(decode_ec_frame(bytes, nullptr).ok());
  EXPECT_LE(bytes.size(), kMaxEcFrameBytes);
  EXPECT_EQ(grow(kMaxEcCacheBody), EcFrameFault::kChecksum);
  EXPECT_EQ(grow(kMaxEcCacheBody + 1), EcFrameFault::kSize);
  const Status refused = encode_ec_frame({1, 2, EcChunk{key, 1, 0, rows.size(), rows}}, nullptr, bytes);
  EXPECT_EQ(error_param(refused), "bytes");
}

TEST(EcFrame, WhatAPeerWouldRefuseIsNotEncoded) {
  const EcKey key{"r", 0, 0};
  Bytes bytes;
  const auto refused = [&](const EcMessage& message) {
    return error_param(encode_ec_frame({1, 2, message}, nullptr, bytes));
  };
  EXPECT_EQ(refused(EcQuery{{"", 0, 0}}), "request_id");
  EXPECT_EQ(refused(EcMeta{key}), "num_positions");
  EXPECT_EQ(refused(EcAllocation{key, EcVerdict::kAllocated, 0, "a"}), "reservation");
  EXPECT_EQ(refused(EcAllocation{key, EcVerdict::kAllocated, 1, std::string(256, 'a')}), "");
  EXPECT_EQ(refused(EcAllocation{key, EcVerdict::kAllocated, 1, std::string(257, 'a')}), "bulk_address");
  EXPECT_EQ(refused(EcCancel{key, EcChannel::kInjection}), "channel");
  EXPECT_EQ(refused(EcCancel{key, EcChannel::kCache}), "channel");
  EXPECT_EQ(refused(EcChunk{key, 0, 0, 4, bytes_of("rows")}), "reservation");
  EXPECT_EQ(refused(EcChunk{key, 1, 1, 4, bytes_of("rows")}), "offset");
}

// Less than a microsecond does not travel: a deadline may end that much early, never late.
TEST(EcFrame, TimeLeftIsRoundedDown) {
  EcMeta meta{{"r", 0, 0}, {}, {}, 1, 1, DType::kFloat32, {}, std::chrono::nanoseconds(1999)};
  const Bytes bytes = encoded({1, 2, meta}, nullptr);
  const auto decoded = decode_ec_frame(bytes, nullptr);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<EcMeta>(decoded->message).time_left, std::chrono::nanoseconds(1000));
}

}  // namespace
}  // namespace transept
