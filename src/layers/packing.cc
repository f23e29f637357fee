#include "layers/packing.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"

namespace transept {
namespace {

WeightFormat choose_format(const PackOptions& options, const MatrixToPack& matrix, DType stored) {
  const DType storage = options.storage.value_or(stored);
  if (storage != DType::kInt8) {
    // Only for who asked for it by name: otherwise a checkpoint's 16 bits would change its answers.
    const bool is_asked = options.storage == DType::kBFloat16 && matrix.inputs != LayerInputs::kRaw;
    return {.storage = storage, .bfloat16_inputs = is_asked};
  }
  const bool is_narrow = std::min(matrix.n, matrix.k) < options.least_int8_width;
  if (matrix.inputs == LayerInputs::kRaw || matrix.k > kMaxInt8Inputs || is_narrow) return {stored};
  const bool outliers = matrix.inputs == LayerInputs::kOutliers, features = matrix.inputs == LayerInputs::kConvolution;
  return {.storage = DType::kInt8, .wide_inputs = outliers || features, .only_outliers = outliers};
}

void note(const PackOptions& options, const std::string& name, const PackedMatrix& packed, DType stored) {
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

// The tensors of a matrix, which must have the shapes that follow from its size. `format` has the tag's storage.
StatusOr<PackedMatrix> view_packed(const PackOptions& options, WeightMap& weights, const std::string& name,
                                   const PackTag::Matrix& tag, const WeightFormat& format) {
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
  ASSIGN_OR_RETURN(bytes.panels,
                   part(kPackedPanels, safetensors_dtype(tag.storage), panels_shape(tag.n, tag.k, tag.storage)));
  if (tag.storage == DType::kInt8) {
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

PackedMatrix pack_again(const PackOptions& options, const PackedMatrix& from, WeightFormat format) {
  PackedMatrix packed(from.n(), from.k(), format, options.pool);
  options.threads.parallel_for(from.num_panels(), [&](int64_t panel, int) {
    const int64_t begin = panel * kPanelColumns, end = std::min(from.n(), begin + kPanelColumns);
    std::vector<float> values(static_cast<size_t>((end - begin) * from.k()));
    for (int64_t row = begin; row < end; ++row) from.get_row(row, values.data() + (row - begin) * from.k());
    packed.set_rows(begin, end - begin, values);
  });
  return packed;
}

std::string format_text(const WeightFormat& format) {
  return str_cat(dtype_name(format.storage), format.wide_inputs ? " with wide inputs" : "");
}

}  // namespace

PackedMatrix make_packed(const PackOptions& options, const MatrixToPack& matrix, DType stored) {
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
  const WeightFormat held = {of.storage, of.wide_inputs, of.only_outliers, of.bfloat16_inputs};
  const WeightFormat wanted = options.as_packed ? held : choose_format(options, matrix, of.stored);
  // What inputs are rounded to shows in the product alone, not in the bytes.
  const bool fits = wanted.storage == held.storage && wanted.wide_inputs == held.wide_inputs;
  ASSIGN_OR_RETURN(PackedMatrix packed, view_packed(options, weights, matrix.name, of, fits ? wanted : held));
  if (!fits) {
    const bool keeps_all = of.storage == of.stored || of.storage == DType::kFloat32;
    if (!keeps_all) {
      return refuse("is packed as ", format_text(packed.format()), " and was ", dtype_name(of.stored), "; ",
                    format_text(wanted), " cannot be made of that: give the original checkpoint, or leave --dtype and ",
                    "--quantization out");
    }
    packed = pack_again(options, packed, wanted);
  }
  note(options, matrix.name, packed, of.stored);
  return std::make_unique<PackedMatrix>(std::move(packed));
}

}  // namespace transept
