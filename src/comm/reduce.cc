#include "comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

constexpr size_t kMostBytesOfAll = size_t{32} << 10;
constexpr int64_t kElementsOfATask = 4096;

template <typename T>
using Inputs = std::array<const T*, 8>;

// y[i] = tree(parts)[i], for i in [0, count).
template <typename T>
void add_tree(const Inputs<T>& parts, int num_ranks, int64_t count, T* y) {
  switch (num_ranks) {
    case 1: std::copy_n(parts[0], count, y); return;
    case 2:
      for (int64_t i = 0; i < count; ++i) y[i] = parts[0][i] + parts[1][i];
      return;
    case 4:
      for (int64_t i = 0; i < count; ++i) y[i] = (parts[0][i] + parts[1][i]) + (parts[2][i] + parts[3][i]);
      return;
    default:
      for (int64_t i = 0; i < count; ++i) {
        y[i] = ((parts[0][i] + parts[1][i]) + (parts[2][i] + parts[3][i])) +
               ((parts[4][i] + parts[5][i]) + (parts[6][i] + parts[7][i]));
      }
  }
}

template <typename T>
Inputs<T> inputs_of(Communicator::Parts parts, int64_t offset) {
  Inputs<T> inputs = {};
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    inputs[rank] = reinterpret_cast<const T*>(parts[rank].data()) + offset;
  }
  return inputs;
}

void add_row(const Inputs<float>& parts, int num_ranks, int64_t columns, const float* bias, const float* residual,
             float* y) {
  // Of a piece at a time, so that the sum is still in the cache when the others are added; residual may be y.
  constexpr int64_t kPiece = 256;
  std::array<float, kPiece> sum;
  for (int64_t begin = 0; begin < columns; begin += kPiece) {
    const int64_t count = std::min(kPiece, columns - begin);
    Inputs<float> piece = parts;
    for (int rank = 0; rank < num_ranks; ++rank) piece[static_cast<size_t>(rank)] += begin;
    add_tree(piece, num_ranks, count, sum.data());
    if (bias != nullptr) {
      for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += bias[begin + i];
    }
    if (residual != nullptr) {
      for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += residual[begin + i];
    }
    std::copy_n(sum.data(), count, y + begin);
  }
}

struct Rows {
  int64_t begin = 0, end = 0;
};

// Of [0, count), an even share: no rank's is longer than ceil(count / num_ranks).
Rows share_of(int64_t count, int rank, int num_ranks) {
  const int64_t each = ceil_div(count, num_ranks);
  const int64_t begin = std::min(count, rank * each);
  return {begin, std::min(count, begin + each)};
}

template <typename T>
size_t bytes_of(int64_t count) {
  return static_cast<size_t>(count) * sizeof(T);
}

}  // namespace

Status sum_over_ranks(Communicator& ranks, ThreadPool& threads, int64_t rows, int64_t columns,
                      const SumEpilogue& epilogue, float* y, int64_t y_stride) {
  const int num_ranks = ranks.size();
  CHECK(has_sum_tree(num_ranks), num_ranks, " ranks have no tree");
  ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(bytes_of<float>(rows * columns)));
  // Rows [own.begin, own.end) of the sum, to `to`, whose first row is that of `own.begin`.
  const auto add = [&](const Rows& own, float* to, int64_t stride) {
    const int64_t rows_of_task = std::max<int64_t>(1, kElementsOfATask / std::max<int64_t>(1, columns));
    threads.parallel_for(ceil_div(own.end - own.begin, rows_of_task), [&](int64_t task, int /*thread*/) {
      const int64_t begin = own.begin + task * rows_of_task;
      for (int64_t row = begin; row < std::min(own.end, begin + rows_of_task); ++row) {
        const float* residual =
            epilogue.residual == nullptr ? nullptr : epilogue.residual + row * epilogue.residual_stride;
        add_row(inputs_of<float>(parts, row * columns), num_ranks, columns, epilogue.bias, residual,
                to + (row - own.begin) * stride);
      }
    });
  };
  if (num_ranks == 1 || bytes_of<float>(rows * columns) <= kMostBytesOfAll) {
    add({0, rows}, y, y_stride);
    return ok_status();
  }
  const size_t bytes = bytes_of<float>(ceil_div(rows, num_ranks) * columns);
  add(share_of(rows, ranks.rank(), num_ranks), reinterpret_cast<float*>(ranks.outbox(bytes).data()), columns);
  ASSIGN_OR_RETURN(const Communicator::Parts slices, ranks.exchange(bytes));
  threads.parallel_for(num_ranks, [&](int64_t rank, int /*thread*/) {
    const Rows theirs = share_of(rows, static_cast<int>(rank), num_ranks);
    const auto* from = reinterpret_cast<const float*>(slices[static_cast<size_t>(rank)].data());
    for (int64_t row = theirs.begin; row < theirs.end; ++row) {
      std::copy_n(from + (row - theirs.begin) * columns, columns, y + row * y_stride);
    }
  });
  return ok_status();
}

Status sum_over_ranks(Communicator& ranks, ThreadPool& threads, int64_t count, int32_t* y) {
  const int num_ranks = ranks.size();
  CHECK(has_sum_tree(num_ranks), num_ranks, " ranks have no tree");
  ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(bytes_of<int32_t>(count)));
  const auto add = [&](const Rows& own, int32_t* to) {
    threads.parallel_for(ceil_div(own.end - own.begin, kElementsOfATask), [&](int64_t task, int /*thread*/) {
      const int64_t begin = own.begin + task * kElementsOfATask;
      add_tree(inputs_of<int32_t>(parts, begin), num_ranks, std::min(own.end - begin, kElementsOfATask),
               to + (begin - own.begin));
    });
  };
  if (num_ranks == 1 || bytes_of<int32_t>(count) <= kMostBytesOfAll) {
    add({0, count}, y);
    return ok_status();
  }
  const size_t bytes = bytes_of<int32_t>(ceil_div(count, num_ranks));
  add(share_of(count, ranks.rank(), num_ranks), reinterpret_cast<int32_t*>(ranks.outbox(bytes).data()));
  ASSIGN_OR_RETURN(const Communicator::Parts slices, ranks.exchange(bytes));
  for (int rank = 0; rank < num_ranks; ++rank) {
    const Rows theirs = share_of(count, rank, num_ranks);
    std::memcpy(y + theirs.begin, slices[static_cast<size_t>(rank)].data(),
                bytes_of<int32_t>(theirs.end - theirs.begin));
  }
  return ok_status();
}

}  // namespace transept
