// Widening is plain loops over small aligned copies: data in a file may lie at odd addresses, and compilers vectorise
// these.
#include "weights/weight_view.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/mmap_file.h"

namespace transept {
namespace {

constexpr size_t kChunk = 512;

// As float16_to_float, without a branch, so that the loop vectorises.
float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7FFFu;
  const float finite = std::bit_cast<float>(rest << 13) * std::bit_cast<float>(0x77800000u);
  const uint32_t special = 0x7F800000u | ((rest & 0x3FFu) << 13);
  const uint32_t is_special = 0u - static_cast<uint32_t>(rest >= 0x7C00u);
  return std::bit_cast<float>(sign | (std::bit_cast<uint32_t>(finite) & ~is_special) | (special & is_special));
}

// `convert` is a lambda, not a function pointer: each type is its own loop, and vectorises.
template <typename Convert>
void widen_16(const std::byte* in, std::span<float> out, Convert convert) {
  std::array<uint16_t, kChunk> chunk;
  for (size_t done = 0; done < out.size();) {
    const size_t count = std::min(kChunk, out.size() - done);
    std::memcpy(chunk.data(), in + done * sizeof(uint16_t), count * sizeof(uint16_t));
    float* to = out.data() + done;
    for (size_t i = 0; i < count; ++i) to[i] = convert(chunk[i]);
    done += count;
  }
}

}  // namespace

int64_t WeightView::num_elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;  // checked when the file was read
  return count;
}

static_assert(std::endian::native == std::endian::little, "safetensors data is read as it lies");

void widen_bytes(DType dtype, const std::byte* in, std::span<float> out) {
  if (out.empty()) return;
  switch (dtype) {
    case DType::kFloat32: std::memmove(out.data(), in, out.size_bytes()); return;
    case DType::kBFloat16: widen_16(in, out, [](uint16_t bits) { return bfloat16_to_float(bits); }); return;
    case DType::kFloat16: widen_16(in, out, [](uint16_t bits) { return half_to_float(bits); }); return;
    default: CHECK(false, "get() serves no other type: ", dtype_name(dtype));
  }
}

WeightFormat weights_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return kFloat32Format;
    case DType::kBFloat16: return kBFloat16Format;
    case DType::kFloat16: return kFloat16Format;
    default: CHECK(false, "get() serves no other type: ", dtype_name(dtype));
  }
}

void widen_to_float(const WeightView& weight, int64_t begin, std::span<float> out) {
  CHECK(
      begin >= 0 && begin <= weight.num_elements() && static_cast<int64_t>(out.size()) <= weight.num_elements() - begin,
      weight.name);
  widen_bytes(weight.dtype, weight.data.data() + static_cast<size_t>(begin) * dtype_bytes(weight.dtype), out);
}

void read_to_float(const WeightView& weight, int64_t begin, std::span<float> out) {
  const auto count = static_cast<int64_t>(out.size());
  CHECK(begin >= 0 && begin <= weight.num_elements() && count <= weight.num_elements() - begin, weight.name);
  // Into the end of `out`, from where it is widened towards its beginning.
  const size_t width = dtype_bytes(weight.dtype);
  const std::span<std::byte> stored = std::as_writable_bytes(out).last(out.size() * width);
  weight.file->read(
      static_cast<size_t>(weight.data.data() - weight.file->bytes().data()) + static_cast<size_t>(begin) * width,
      stored);
  widen_bytes(weight.dtype, stored.data(), out);
}

void release_pages(const WeightView& weight, int64_t begin, int64_t count) {
  const auto width = static_cast<int64_t>(dtype_bytes(weight.dtype));
  CHECK(begin >= 0 && count >= 0 && count <= weight.num_elements() - begin, weight.name);
  if (weight.file == nullptr) return;
  weight.file->release_pages(
      weight.data.subspan(static_cast<size_t>(begin * width), static_cast<size_t>(count * width)));
}

std::vector<float> to_floats(const WeightView& weight) {
  std::vector<float> values(static_cast<size_t>(weight.num_elements()));
  widen_to_float(weight, 0, values);
  return values;
}

}  // namespace transept
