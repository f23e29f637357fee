// Frames in pieces of any size are the frames that were sent, and nothing that a head promises takes memory.
#include "encoder_cache/ec_frame_stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "encoder_cache/ec_frames_testing.h"

namespace transept {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::encoded;
using testing::FrameDrawer;

const EcFrame kQuery{1, 2, EcQuery{{"r", 0, 0}}};

// What comes of a piece, as one letter each: f a frame, x an error.
std::string feed(EcFrameStream& stream, std::span<const std::byte> piece) {
  std::string came;
  for (bool is_new = true; is_new || !piece.empty(); is_new = false) {
    const auto taken = stream.take(piece);
    if (!taken.ok()) came += 'x';
    if (taken.ok() && taken->has_value()) came += 'f';
    if (stream.is_broken()) break;
  }
  return came;
}

TEST(EcFrameStream, FramesInAnyPieces) {
  const EcSecret secret(bytes_of("a secret of tests"));
  FrameDrawer drawer(2);
  for (int round = 0; round < 60; ++round) {
    std::vector<Bytes> sent;
    Bytes all;
    for (int64_t i = drawer.draw(1, 20); i > 0; --i) {
      sent.push_back(encoded(drawer.frame(), &secret));
      all.insert(all.end(), sent.back().begin(), sent.back().end());
    }
    EcFrameStream stream(&secret);
    size_t num_frames = 0;
    const int64_t most = round % 3 == 0 ? 7 : round % 3 == 1 ? 100 : 1 << 20;
    for (std::span<const std::byte> left = all; !left.empty();) {
      const size_t size = std::min(left.size(), static_cast<size_t>(drawer.draw(1, most)));
      auto piece = left.first(size);
      left = left.subspan(size);
      while (!piece.empty()) {
        const auto taken = stream.take(piece);
        ASSERT_TRUE(taken.ok()) << taken.status();
        EXPECT_LE(stream.capacity(), kMaxEcFrameBytes);
        if (!taken->has_value()) continue;
        EXPECT_EQ(stream.num_kept(), 0u);
        ASSERT_LT(num_frames, sent.size());
        EXPECT_EQ(encoded(**taken, &secret), sent[num_frames++]);
      }
    }
    EXPECT_EQ(num_frames, sent.size());
  }
}

TEST(EcFrameStream, ACutFrameIsSeenAtTheEnd) {
  const Bytes bytes = encoded(kQuery, nullptr);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EcFrameStream stream(nullptr);
    EXPECT_EQ(feed(stream, std::span(bytes).first(size)), "");
    EXPECT_EQ(stream.num_kept(), size);
    EXPECT_EQ(feed(stream, std::span(bytes).subspan(size)), "f");
  }
}

TEST(EcFrameStream, AHeadThatPromisesTakesNoMemory) {
  Bytes head = encoded({1, 2, EcChunk{{"r", 0, 0}, 1, 0, 4, bytes_of("rows")}}, nullptr);
  head.resize(kEcHeadBytes);
  const auto size = static_cast<uint32_t>(kMaxEcCacheBody);
  std::memcpy(head.data() + 8, &size, sizeof size);
  EcFrameStream stream(nullptr);
  EXPECT_EQ(feed(stream, head), "");
  EXPECT_LE(stream.capacity(), 2 * kEcHeadBytes);
  EXPECT_EQ(feed(stream, Bytes(100)), "");
  EXPECT_LE(stream.capacity(), 400u);
  EXPECT_EQ(feed(stream, Bytes(kMaxEcCacheBody - 100)), "x") << "zeros are no chunk";
  EXPECT_EQ(stream.capacity(), kMaxEcFrameBytes);
}

TEST(EcFrameStream, AHeadThatIsRefusedEndsTheStream) {
  const Bytes good = encoded(kQuery, nullptr);
  const std::pair<size_t, EcFrameFault> wrong[] = {{0, EcFrameFault::kMagic},
                                                   {4, EcFrameFault::kVersion},
                                                   {6, EcFrameFault::kChannel},
                                                   {7, EcFrameFault::kChannel},
                                                   {11, EcFrameFault::kSize}};
  for (const auto& [at, fault] : wrong) {
    Bytes bytes = good;
    bytes[at] = std::byte{0x7F};
    bytes.insert(bytes.end(), good.begin(), good.end());
    EcFrameStream stream(nullptr);
    EXPECT_EQ(feed(stream, bytes), "x") << at;
    EXPECT_TRUE(stream.is_broken());
    EXPECT_LE(stream.capacity(), kEcHeadBytes) << "nothing behind the head is kept";
    std::span<const std::byte> more = good;
    EXPECT_EQ(ec_frame_fault(stream.take(more).status()), fault);
    EXPECT_EQ(more.size(), good.size());
  }
}

TEST(EcFrameStream, ABodyThatIsRefusedEndsItsFrameAlone) {
  const EcSecret secret(bytes_of("a secret of tests")), other(bytes_of("another secret of tests"));
  const Bytes good = encoded(kQuery, &secret), forged = encoded(kQuery, &other);
  const Bytes damaged = [&] {
    Bytes bytes = good;
    bytes.back() ^= std::byte{1};
    return bytes;
  }();
  Bytes bytes;
  for (const Bytes* frame : {&good, &forged, &good, &damaged, &damaged, &good}) {
    bytes.insert(bytes.end(), frame->begin(), frame->end());
  }
  EcFrameStream stream(&secret);
  EXPECT_EQ(feed(stream, bytes), "fxfxxf");
  EXPECT_FALSE(stream.is_broken());
  EXPECT_EQ(stream.num_kept(), 0u);
}

}  // namespace
}  // namespace transept
