#include "layers/packing.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"

namespace transept {
namespace {

// Codes mean float32 numbers: products with them as they are would round the inputs, for which nobody asked.
WeightFormat without_loss(const WeightFormat& stored) { return stored.is_codes() ? kFloat32Format : stored; }

InputRounding int8_inputs(LayerInputs inputs) {
  switch (inputs) {
    case LayerInputs::kConvolution: return InputRounding::kWide;
    case LayerInputs::kOutliers: return InputRounding::kOutliers;
    default: return InputRounding::kUsual;
  }
}

PackedFormat choose_format(const PackOptions& options, const MatrixToPack& matrix, const WeightFormat& stored) {
  const WeightFormat storage = options.storage.value_or(without_loss(stored));
  if (storage == kInt8Format) {
    const bool is_narrow = std::min(matrix.n, matrix.k) < options.least_int8_width;
    if (matrix.inputs == LayerInputs::kRaw || matrix.k > kMaxInt8Inputs || is_narrow) return {without_loss(stored)};
    return {storage, int8_inputs(matrix.inputs)};
  }
  // Only for who asked for it by name: otherwise a checkpoint's 16 bits would change its answers.
  const bool rounds = options.storage == kBFloat16Format && matrix.inputs != LayerInputs::kRaw;
  return {storage, rounds ? InputRounding::kBFloat16 : InputRounding::kUsual};
}

void note(const PackOptions& options, const std::string& name, const PackedMatrix& packed, const WeightFormat& stored) {
  if (options.report == nullptr) return;
  options.report->push_back(
      {name, packed.format(), packed.bytes(), packed.n(), packed.k(), stored, packed.is_view(), packed.views()});
}

template <typename T>
std::span<const T> as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

bool is_aligned(std::span<const std::byte> bytes) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % Arena::kAlignment == 0;
}

// A file that another program wrote anew may hold its tensors anywhere: they move to memory of our own then.
std::span<const std::byte> copied(std::span<const std::byte> bytes, PagePool& pool) {
  const std::span<std::byte> copy = pool.allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

// The tensors of a matrix, which must have the shapes that follow from its size. `format` has the tag's weights.
StatusOr<PackedMatrix> view_packed(const PackOptions& options, WeightMap& weights, const std::string& name,
                                   const PackTag::Matrix& tag, const PackedFormat& format) {
  const std::string panels_name = str_cat(name, kPackedPanels);
  PackedBytes bytes;
  std::shared_ptr<PagePool> pool;  // of copies
  const auto part = [&](std::string_view suffix, std::string_view dtype,
                        const std::vector<int64_t>& shape) -> StatusOr<std::span<const std::byte>> {
    ASSIGN_OR_RETURN(const std::span<const std::byte> found, weights.get_packed(str_cat(name, suffix), dtype, shape));
    if (is_aligned(found)) return found;
    pool = options.pool;
    return copied(found, *pool);
  };
  const WeightFormat& held = tag.format.weights;
  ASSIGN_OR_RETURN(bytes.panels,
                   part(kPackedPanels, safetensors_dtype(panels_dtype(held)), panels_shape(tag.n, tag.k, held)));
  if (held == kInt8Format) {
    const int64_t outputs = round_up(tag.n, kPanelColumns);
    ASSIGN_OR_RETURN(const std::span<const std::byte> scales, part(kPackedScales, "F32", {outputs}));
    ASSIGN_OR_RETURN(const std::span<const std::byte> sums, part(kPackedSums, "I32", {outputs}));
    bytes.scales = as<float>(scales);
    bytes.sums = as<int32_t>(sums);
  }
  StatusOr<PackedMatrix> packed = PackedMatrix::view(tag.n, tag.k, format, bytes, pool);
  if (!packed.ok()) {
    return with_param(with_prefix(packed.status(), str_cat(weights.source(), ": tensor \"", panels_name, "\"")),
                      panels_name);
  }
  return packed;
}

PackedMatrix pack_again(const PackOptions& options, const PackedMatrix& from, const PackedFormat& format) {
  PackedMatrix packed(from.n(), from.k(), format, options.pool);
  options.threads.parallel_for(from.num_panels(), [&](int64_t panel, int) {
    const int64_t begin = panel * kPanelColumns, end = std::min(from.n(), begin + kPanelColumns);
    std::vector<float> values(static_cast<size_t>((end - begin) * from.k()));
    for (int64_t row = begin; row < end; ++row) from.get_row(row, values.data() + (row - begin) * from.k());
    packed.set_rows(begin, end - begin, values);
  });
  return packed;
}

std::string format_text(const PackedFormat& format) {
  return str_cat(weight_format_name(format.weights), format.has_wide_inputs() ? " with wide inputs" : "");
}

}  // namespace

PackedMatrix make_packed(const PackOptions& options, const MatrixToPack& matrix, const WeightFormat& stored) {
  PackedMatrix packed(matrix.n, matrix.k, choose_format(options, matrix, stored), options.pool);
  note(options, matrix.name, packed, stored);
  return packed;
}

StatusOr<std::unique_ptr<PackedMatrix>> find_packed(const PackOptions& options, WeightMap& weights,
                                                    const MatrixToPack& matrix) {
  const PackTag* tag = weights.pack_tag();
  if (tag == nullptr) return std::unique_ptr<PackedMatrix>();
  const auto found = tag->matrices.find(matrix.name);
  if (found == tag->matrices.end()) return std::unique_ptr<PackedMatrix>();
  const auto refuse = [&](auto... reason) {
    return with_param(invalid_argument(weights.source(), ": packed matrix \"", matrix.name, "\": ", reason...),
                      matrix.name);
  };
  if (tag->layout != kPackedLayout) {
    return refuse("layout ", tag->layout, " is not known to this version, which has ", kPackedLayout,
                  ": pack the original checkpoint again");
  }
  const PackTag::Matrix& of = found->second;
  if (of.n != matrix.n || of.k != matrix.k) {
    return refuse("is [", of.n, ", ", of.k, "], expected [", matrix.n, ", ", matrix.k, "]");
  }
  const PackedFormat& held = of.format;
  const PackedFormat wanted = options.as_packed ? held : choose_format(options, matrix, of.stored);
  // What inputs are rounded to shows in the product alone, not in the bytes.
  const bool fits = wanted.weights == held.weights && wanted.has_wide_inputs() == held.has_wide_inputs();
  ASSIGN_OR_RETURN(PackedMatrix packed, view_packed(options, weights, matrix.name, of, fits ? wanted : held));
  if (!fits) {
    // Codes that became float32 are not found again.
    const bool keeps_all = held.weights == of.stored || (held.weights == kFloat32Format && !of.stored.is_codes());
    if (!keeps_all) {
      return refuse("is packed as ", format_text(packed.format()), " and was ", weight_format_name(of.stored), "; ",
                    format_text(wanted), " cannot be made of that: give the original checkpoint, or leave --dtype and ",
                    "--quantization out");
    }
    packed = pack_again(options, packed, wanted);
  }
  note(options, matrix.name, packed, of.stored);
  return std::make_unique<PackedMatrix>(std::move(packed));
}

}  // namespace transept
