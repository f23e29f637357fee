#include "quantized/compressed_reader.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/little_endian.h"
#include "quantized/scaled_float8.h"
#include "quantized/stored_codes.h"

namespace transept {
namespace {

constexpr int64_t kWordBits = 32;

struct Names {
  std::string weight, packed, scale, zero, groups, shape;

  explicit Names(std::string_view module)
      : weight(str_cat(module, ".weight")),
        packed(str_cat(module, ".weight_packed")),
        scale(str_cat(module, ".weight_scale")),
        zero(str_cat(module, ".weight_zero_point")),
        groups(str_cat(module, ".weight_g_idx")),
        shape(str_cat(module, ".weight_shape")) {}
};

using Source = std::unique_ptr<MatrixSource>;

int32_t signed_byte(std::byte byte) { return (std::to_integer<int32_t>(byte) ^ 128) - 128; }

// One matrix.
class Opener final {
 public:
  Opener(WeightMap& weights, WeightUse use, const CompressedGroup& group, std::string_view module, int64_t n, int64_t k)
      : parts_(weights, use), group_(group), names_(module), n_(n), k_(k) {}

  StatusOr<Source> open() {
    switch (group_.form) {
      case CompressedForm::kPacked: return open_packed();
      case CompressedForm::kIntegers: return open_integers();
      case CompressedForm::kFloat8: return open_float8();
      case CompressedForm::kOther: break;
    }
    return parts_.error(names_.weight, str_cat("is in the form \"", group_.form_name, "\", which is not read"));
  }

 private:
  StatusOr<Source> open_packed() {
    RETURN_IF_ERROR(check_shape());
    const int64_t row_words = ceil_div(k_ * group_.bits, kWordBits);
    ASSIGN_OR_RETURN(const StoredBytes codes, parts_.bytes(names_.packed, "I32", {n_, row_words}));
    ASSIGN_OR_RETURN(CodeGroups groups, read_groups(names_.packed));
    return Source(std::make_unique<RowCodes>(n_, k_, format(groups), codes, row_words * int64_t{sizeof(int32_t)}, true,
                                             std::move(groups)));
  }

  StatusOr<Source> open_integers() {
    ASSIGN_OR_RETURN(const StoredBytes codes, parts_.bytes(names_.weight, "I8", {n_, k_}));
    ASSIGN_OR_RETURN(CodeGroups groups, read_groups(names_.weight));
    RETURN_IF_ERROR(check_codes(codes));
    return Source(std::make_unique<RowCodes>(n_, k_, format(groups), codes, k_, false, std::move(groups)));
  }

  StatusOr<Source> open_float8() {
    ASSIGN_OR_RETURN(const StoredBytes codes, parts_.bytes(names_.weight, "F8_E4M3", {n_, k_}));
    const Float8Blocks blocks{.outputs = group_.block_outputs, .inputs = group_.block_inputs};
    if (group_.group > 0) return parts_.error(names_.weight, "float8 in groups is not read");
    return open_scaled_float8(parts_, codes, names_.scale, n_, k_, blocks);
  }

  WeightFormat format(const CodeGroups& groups) const {
    return {WeightLayout::kCodes, group_.bits, static_cast<int32_t>(group_.group), !groups.zeros.empty()};
  }

  Status check_shape() {
    ASSIGN_OR_RETURN(const StoredBytes shape, parts_.bytes(names_.shape, "I64", {2}));
    const auto outputs = little_endian<int64_t>(shape.bytes.data());
    const auto inputs = little_endian<int64_t>(shape.bytes.data() + sizeof(int64_t));
    if (outputs == n_ && inputs == k_) return ok_status();
    return parts_.error(names_.shape, str_cat("says [", outputs, ", ", inputs, "], expected [", n_, ", ", k_, "]"));
  }

  // Bytes hold codes of fewer bits, too.
  Status check_codes(const StoredBytes& codes) {
    if (group_.bits == 8) return ok_status();
    const int32_t most = 1 << (group_.bits - 1);
    for (const std::byte byte : codes.bytes) {
      const int32_t code = signed_byte(byte);
      if (code < -most || code >= most) {
        return parts_.error(names_.weight, str_cat("code ", code, " has more than ", group_.bits, " bits"));
      }
    }
    return ok_status();
  }

  StatusOr<CodeGroups> read_groups(std::string_view matrix) {
    ASSIGN_OR_RETURN(const int64_t count, count_groups(parts_, matrix, k_, group_.group));
    CodeGroups groups;
    ASSIGN_OR_RETURN(groups.scales, parts_.scales(names_.scale, n_, count));
    if (!group_.is_symmetric) {
      ASSIGN_OR_RETURN(groups.zeros, read_zeros(count));
    } else if (parts_.has(names_.zero)) {
      return parts_.error(names_.zero, "is there, though its group is symmetric");
    }
    if (parts_.has(names_.groups)) {
      ASSIGN_OR_RETURN(groups.input_groups, read_order(count));
    }
    return groups;
  }

  // Versions that wrote weight_g_idx wrote -1 where there is no order.
  StatusOr<std::vector<int32_t>> read_order(int64_t count) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> order, parts_.words(names_.groups, {k_}));
    if (std::ranges::all_of(order, [](int32_t group) { return group == -1; })) return std::vector<int32_t>();
    return parts_.input_groups(names_.groups, k_, group_.group, count);
  }

  StatusOr<std::vector<int16_t>> read_zeros(int64_t count) {
    const int32_t most = 1 << (group_.bits - 1);
    std::vector<int16_t> zeros(static_cast<size_t>(n_ * count));
    if (parts_.has(names_.zero, "I8")) {
      ASSIGN_OR_RETURN(const StoredBytes stored, zero_bytes(count));
      for (size_t i = 0; i < zeros.size(); ++i) {
        const int32_t zero = signed_byte(stored.bytes[stored.bytes.size() == 1 ? 0 : i]);
        if (zero < -most || zero >= most) {
          return parts_.error(names_.zero,
                              str_cat("element ", i, " is ", zero, ", of more than ", group_.bits, " bits"));
        }
        zeros[i] = static_cast<int16_t>(zero);
      }
      return zeros;
    }
    ASSIGN_OR_RETURN(const std::vector<int32_t> words,
                     parts_.words(names_.zero, {ceil_div(n_ * group_.bits, kWordBits), count}));
    for (int64_t row = 0; row < n_; ++row) {
      const int64_t bit = row * group_.bits, word = bit / kWordBits, shift = bit % kWordBits;
      for (int64_t group = 0; group < count; ++group) {
        const auto at = [&](int64_t index) {
          return static_cast<uint32_t>(words[static_cast<size_t>(index * count + group)]);
        };
        uint32_t value = at(word) >> shift;
        if (shift + group_.bits > kWordBits) value |= at(word + 1) << (kWordBits - shift);
        const auto code = static_cast<int32_t>(value & ((1u << group_.bits) - 1));
        zeros[static_cast<size_t>(row * count + group)] = static_cast<int16_t>(code - most);
      }
    }
    return zeros;
  }

  // I8, one for each scale, or one for all.
  StatusOr<StoredBytes> zero_bytes(int64_t count) {
    return parts_.has(names_.zero) && parts_.any_bytes(names_.zero, 1).ok() ? parts_.any_bytes(names_.zero, 1)
                                                                            : parts_.any_bytes(names_.zero, n_ * count);
  }

  MatrixParts parts_;
  const CompressedGroup& group_;
  Names names_;
  int64_t n_, k_;
};

}  // namespace

bool CompressedReader::has(const WeightMap& weights, std::string_view name) const {
  const std::string_view module = module_of(name);
  if (module.empty()) return false;
  if (weights.has_tensor(str_cat(module, ".weight_packed"))) return true;
  const auto form = weights.form_of(name);
  return form.has_value() && (form->dtype == "I8" || form->dtype == "F8_E4M3");
}

StatusOr<const CompressedGroup*> CompressedReader::group_of(const WeightMap& weights, std::string_view name) const {
  const std::string packed = str_cat(module_of(name), ".weight_packed");
  const std::string_view tensor = weights.has_tensor(packed) ? std::string_view(packed) : name;
  // The file's spelling is the module's name that patterns mean.
  const std::string_view spelled = weights.form_of(tensor)->name;
  const std::string_view module = spelled.substr(0, spelled.rfind('.'));
  if (config_.ignores(module)) {
    return weights.tensor_error(tensor, str_cat("is quantised, and ", config_.file, ": ignore names its module"));
  }
  const CompressedGroup* group = config_.group_of(module);
  if (group == nullptr) {
    return weights.tensor_error(tensor,
                                str_cat("is quantised, and no group of ", config_.file, ": config_groups targets it"));
  }
  return group;
}

StatusOr<std::unique_ptr<MatrixSource>> CompressedReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                               int64_t k, WeightUse use) const {
  ASSIGN_OR_RETURN(const CompressedGroup* group, group_of(weights, name));
  return Opener(weights, use, *group, module_of(name), n, k).open();
}

StatusOr<InputQuantization> CompressedReader::inputs_of(WeightMap& weights, std::string_view name, int64_t k) const {
  ASSIGN_OR_RETURN(const CompressedGroup* group, group_of(weights, name));
  InputQuantization inputs = group->inputs;
  if (inputs.group > 0 && k % inputs.group != 0) {
    return weights.tensor_error(name, str_cat("groups of ", inputs.group, " inputs do not divide its ", k));
  }
  if (!group->has_input_scale) return inputs;
  MatrixParts parts(weights, WeightUse::kPacked);
  const std::string scale = str_cat(module_of(name), ".input_scale");
  const std::string zero = str_cat(module_of(name), ".input_zero_point");
  ASSIGN_OR_RETURN(const std::vector<float> scales, parts.scales(scale, 1, 1));
  if (!(scales[0] > 0)) return parts.error(scale, "is not above 0");
  inputs.scale = scales[0];
  if (inputs.is_symmetric) return inputs;
  if (!parts.has(zero, "I8")) return parts.error(zero, "is missing, or no I8");
  ASSIGN_OR_RETURN(const StoredBytes stored, parts.any_bytes(zero, 1));
  inputs.zero = signed_byte(stored.bytes[0]);
  const int32_t most = 1 << (inputs.bits - 1);
  if (inputs.zero < -most || inputs.zero >= most)
    return parts.error(zero, str_cat("has more than ", inputs.bits, " bits"));
  return inputs;
}

}  // namespace transept
