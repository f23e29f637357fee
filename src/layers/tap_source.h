// The kernel of a convolution as the matrix of its product: the checkpoint has [outputs, channels, kernel], a window of
// time-major rows has the channels of one tap side by side. Owns the checkpoint's matrix. Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "weights/matrix_source.h"

namespace transept {

class TapSource final : public MatrixSource {
 public:
  // by_channel: behind the first `before` of its inputs, which stay, they are [channels, kernel]. REQUIRES: kernel
  // divides them.
  TapSource(std::unique_ptr<MatrixSource> by_channel, int64_t kernel, int64_t before = 0)
      : MatrixSource(by_channel->n(), by_channel->k(), by_channel->format()),
        by_channel_(std::move(by_channel)),
        kernel_(kernel),
        before_(before) {
    CHECK(kernel > 0 && before >= 0 && before <= k() && (k() - before) % kernel == 0);
  }

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    const int64_t channels = (k() - before_) / kernel_;
    std::vector<float> row(static_cast<size_t>(k()));
    float* to = out.data();
    for (int64_t i = begin; i < begin + count; ++i) {
      by_channel_->read_rows(i, 1, {0, k()}, row);
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t tap = j - before_;
        *to++ = row[static_cast<size_t>(tap < 0 ? j : before_ + tap % channels * kernel_ + tap / channels)];
      }
    }
  }

  void release_rows(int64_t begin, int64_t count) const override { by_channel_->release_rows(begin, count); }

 private:
  std::unique_ptr<MatrixSource> by_channel_;
  int64_t kernel_, before_;
};

}  // namespace transept
