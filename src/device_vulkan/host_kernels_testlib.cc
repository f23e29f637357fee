#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "device_vulkan/host_kernels_testing.h"
#include "ops/activation.h"

namespace transept::testing {
namespace {

int64_t g_num_out_of_range = 0;
constexpr uint32_t kMostKeys = 1 << 10;  // more: poison

class Call {
 public:
  Call(std::span<const std::byte> arguments, std::span<const std::span<std::byte>> operands, const Grid& of_grid)
      : grid(of_grid), arguments_(arguments), operands_(operands) {}

  uint32_t argument(size_t i) const { return read(arguments_, i); }
  float real(size_t i) const { return std::bit_cast<float>(argument(i)); }
  uint32_t word(size_t operand, uint64_t index) const { return read(operands_[operand], index); }
  float at(size_t operand, uint64_t index) const { return std::bit_cast<float>(word(operand, index)); }
  void set_word(size_t operand, uint64_t index, uint32_t value) const {
    if (index < operands_[operand].size() / 4) {
      std::memcpy(operands_[operand].data() + index * 4, &value, 4);
    } else {
      ++g_num_out_of_range;
    }
  }
  void set(size_t operand, uint64_t index, double value) const {
    set_word(operand, index, std::bit_cast<uint32_t>(static_cast<float>(value)));
  }

  const Grid& grid;

 private:
  static uint32_t read(std::span<const std::byte> from, uint64_t index) {
    uint32_t value = CheckingDevice::kPoison;
    if (index < from.size() / 4) {
      std::memcpy(&value, from.data() + index * 4, 4);
    } else {
      ++g_num_out_of_range;
    }
    return value;
  }

  std::span<const std::byte> arguments_;
  std::span<const std::span<std::byte>> operands_;
};

void norm(const Call& call, bool is_rms) {
  const uint32_t n = call.argument(0);
  for (uint32_t row = 0; row < call.grid.x; ++row) {
    const uint64_t from = uint64_t{row} * call.argument(1), to = uint64_t{row} * call.argument(2);
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < n && !is_rms; ++i) mean += call.at(0, from + i) / static_cast<double>(n);
    for (uint32_t i = 0; i < n; ++i) squares += std::pow(call.at(0, from + i) - mean, 2) / n;
    const double scale = 1 / std::sqrt(squares + call.real(3));
    for (uint32_t i = 0; i < n; ++i) {
      const double normal = (call.at(0, from + i) - mean) * scale * call.at(1, i);
      call.set(is_rms ? 2 : 3, to + i, is_rms ? normal : normal + call.at(2, i));
    }
  }
}
void layer_norm(const Call& call) { norm(call, false); }
void rms_norm(const Call& call) { norm(call, true); }

void product(const Call& call) {
  const uint32_t rows = call.argument(0), n = call.argument(1), k = call.argument(2), adds = call.argument(7);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t column = 0; column < n; ++column) {
      double sum = (adds & 1) != 0 ? call.at(2, column) : 0;
      for (uint64_t t = 0; t < k; ++t) {
        sum += static_cast<double>(call.at(0, row * call.argument(3) + t)) *
               call.at(1, (column / 32 * k + t) * 32 + column % 32);
      }
      sum = activate(Activation(call.argument(6)), static_cast<float>(sum));
      if ((adds & 2) != 0) sum += call.at(3, row * call.argument(5) + column);
      call.set(4, row * call.argument(4) + column, sum);
    }
  }
}

void gated_activation(const Call& call) {
  for (uint64_t row = 0; row < call.grid.y; ++row) {
    for (uint64_t i = 0; i < call.argument(0); ++i) {
      const float gate = activate(Activation(call.argument(4)), call.at(0, row * call.argument(1) + i));
      call.set(2, row * call.argument(3) + i, gate * call.at(1, row * call.argument(2) + i));
    }
  }
}

void add_rows(const Call& call) {
  const uint32_t gates = call.argument(3);
  for (uint64_t row = 0; row < call.grid.y; ++row) {
    for (uint64_t i = 0; i < call.argument(0); ++i) {
      const float gate = gates == 0 ? 1 : call.at(1, gates == 1 ? 0 : i);
      const uint64_t to = row * call.argument(2) + i;
      call.set(2, to, call.at(2, to) + gate * call.at(0, row * call.argument(1) + i));
    }
  }
}

void gather_rows(const Call& call) {
  for (uint64_t row = 0; row < call.grid.y; ++row) {
    const uint64_t from = call.word(1, row);
    for (uint64_t i = 0; i < call.argument(0); ++i) {
      const bool is_row = from < call.argument(1);
      call.set(2, row * call.argument(3) + i, is_row ? call.at(0, from * call.argument(2) + i) * call.real(4) : 0);
    }
  }
}

void rope(const Call& call) {
  const uint32_t pairs = call.argument(0);
  for (uint64_t row = 0; row < call.grid.x; ++row) {
    for (uint64_t head = 0; head < call.grid.y; ++head) {
      for (uint64_t c = 0; c < pairs; ++c) {
        const uint64_t at = row * call.argument(3) + head * call.argument(4);
        const uint64_t first = at + (call.argument(1) != 0 ? c : 2 * c);
        const uint64_t second = at + (call.argument(1) != 0 ? c + pairs : 2 * c + 1);
        const double cosine = call.at(0, row * call.argument(2) + c), sine = call.at(1, row * call.argument(2) + c);
        const double a = call.at(2, first), b = call.at(2, second);
        call.set(2, first, a * cosine - b * sine);
        call.set(2, second, b * cosine + a * sine);
      }
    }
  }
}

void write_kv(const Call& call) {
  const uint64_t dim = call.argument(0), size = call.argument(5);
  for (uint64_t row = 0; row < call.grid.x; ++row) {
    const uint64_t slot = call.word(2, row);
    for (uint64_t head = 0; head < call.grid.y && slot < call.argument(7); ++head) {
      const uint64_t part = slot / size * call.argument(6) + head * 2 * size * dim;
      for (uint64_t d = 0; d < dim; ++d) {
        call.set(3, part + d * size + slot % size, call.at(0, row * call.argument(1) + head * call.argument(2) + d));
        call.set(3, part + (size + slot % size) * dim + d,
                 call.at(1, row * call.argument(3) + head * call.argument(4) + d));
      }
    }
  }
}

void attend(const Call& call, uint64_t row, uint64_t head) {
  const uint64_t dim = call.argument(5), size = call.argument(7), kv_head = head / call.argument(4);
  CHECK(size > 0 && call.argument(14) == 0, "blocks without bias alone");
  const uint32_t table = call.word(3, row * 8), begin = call.word(3, row * 8 + 1);
  const uint32_t end = std::min(call.word(3, row * 8 + 2), kMostKeys);
  const auto part = [&](uint64_t key) {
    return call.word(4, table + key / size) * uint64_t{call.argument(8)} + kv_head * 2 * size * dim;
  };
  std::vector<double> scores, sums(dim);
  double total = 0;
  for (uint64_t key = begin; key < end; ++key) {
    double score = 0;
    for (uint64_t d = 0; d < dim; ++d) {
      score += static_cast<double>(call.at(0, row * call.argument(0) + head * call.argument(1) + d)) *
               call.at(1, part(key) + d * size + key % size);
    }
    scores.push_back(score * call.real(6));
  }
  const double highest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  for (uint64_t key = begin; key < end; ++key) {
    const double weight = std::exp(scores[key - begin] - highest);
    total += weight;
    for (uint64_t d = 0; d < dim; ++d) sums[d] += weight * call.at(2, part(key) + (size + key % size) * dim + d);
  }
  for (uint64_t d = 0; d < dim; ++d) {
    call.set(6, row * call.argument(2) + head * call.argument(3) + d, total == 0 ? 0 : sums[d] / total);
  }
}

void attention(const Call& call) {
  for (uint64_t row = 0; row < call.grid.x; ++row) {
    for (uint64_t head = 0; head < call.grid.y; ++head) attend(call, row, head);
  }
}

void choose(const Call& call) {
  for (uint64_t row = 0; row < call.grid.x; ++row) {
    const uint64_t from = row * call.argument(1);
    uint32_t best = 0;
    double sum = 0;
    for (uint32_t i = 1; i < call.argument(0); ++i) {
      if (call.at(0, from + i) > call.at(0, from + best)) best = i;
    }
    const double highest = call.at(0, from + best);
    for (uint32_t i = 0; i < call.argument(0); ++i) sum += std::exp(call.at(0, from + i) - highest);
    call.set_word(1, row * 3, best);
    call.set(1, row * 3 + 1, highest);
    call.set(1, row * 3 + 2, highest + std::log(sum));
  }
}

struct Entry {
  std::string_view name;
  void (*run)(const Call& call);
};
constexpr Entry kEntries[] = {{"layer_norm", layer_norm},
                              {"rms_norm", rms_norm},
                              {"product_float32", product},
                              {"gated_activation", gated_activation},
                              {"add_rows", add_rows},
                              {"gather_rows_float32", gather_rows},
                              {"rope", rope},
                              {"write_kv", write_kv},
                              {"attention", attention},
                              {"choose", choose}};

}  // namespace

int64_t num_out_of_range() { return g_num_out_of_range; }

void add_host_kernel(CheckingDevice& device, const KernelSpec& spec) {
  const auto* entry = std::ranges::find(kEntries, spec.name, &Entry::name);
  CHECK(entry != std::end(kEntries), spec.name);
  device.add_kernel(
      spec, [run = entry->run](std::span<const std::byte> arguments, std::span<const std::span<std::byte>> operands,
                               const Grid& grid) { run(Call(arguments, operands, grid)); });
}

}  // namespace transept::testing
