#include "foreign/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/checked_math.h"
#include "base/quoted.h"
#include "foreign/file_cursor.h"

namespace transept {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kFirstVersion = 2, kLastVersion = 3;
constexpr uint64_t kMaxKeys = 1 << 16, kMaxTensors = 10'000, kMaxListed = 1 << 22, kMaxTextBytes = 64 << 20;
constexpr uint32_t kMaxDimensions = 4;
constexpr int64_t kMaxSide = int64_t{1} << 30;

enum Type : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kList,
  kUint64,
  kInt64,
  kFloat64,
};

struct Storage {
  int64_t ggml_type;
  std::string_view name;
  int64_t bytes;
};
constexpr Storage kFloats[] = {{0, "F32", 4}, {1, "F16", 2}, {30, "BF16", 2}};

}  // namespace

class GgufParser final {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), cursor_(bytes) {
    model_.file_ = std::string(file);
  }

  StatusOr<GgufFile> parse() {
    ASSIGN_OR_RETURN(const auto counts, read_head());
    for (uint64_t i = 0; i < counts.second; ++i) RETURN_IF_ERROR(read_pair(str_cat("key ", i)));
    std::vector<Place> places;
    for (uint64_t i = 0; i < counts.first; ++i) RETURN_IF_ERROR(read_tensor(str_cat("tensor ", i), places));
    RETURN_IF_ERROR(place_tensors(places));
    return std::move(model_);
  }

  // The value of general.architecture, if it comes before anything that is not read.
  std::optional<std::string_view> architecture() {
    const auto counts = read_head();
    for (uint64_t i = 0; counts.ok() && i < counts->second; ++i) {
      if (!read_pair("key").ok()) return std::nullopt;
      const auto found = model_.values_.find("general.architecture");
      if (found == model_.values_.end()) continue;
      const auto* name = std::get_if<std::string_view>(&found->second);
      return name == nullptr ? std::nullopt : std::optional(*name);
    }
    return std::nullopt;
  }

 private:
  struct Place {
    uint64_t offset;
    int64_t size;
  };

  Status invalid(std::string_view where, std::string_view reason) const {
    return invalid_argument(model_.file_, ": ", where, ": ", reason);
  }
  Status ends(std::string_view where) const { return invalid(where, str_cat("the file ends at byte ", bytes_.size())); }

  template <typename Number>
  StatusOr<Number> number(std::string_view where) {
    const std::optional<Number> value = cursor_.number<Number>();
    if (!value.has_value()) return ends(where);
    return *value;
  }
  StatusOr<uint64_t> count(std::string_view where, uint64_t most) {
    ASSIGN_OR_RETURN(const uint64_t value, number<uint64_t>(where));
    if (value > most) return invalid(where, str_cat(value, " is over the ", most, " allowed"));
    return value;
  }
  StatusOr<std::string_view> text(std::string_view where) {
    ASSIGN_OR_RETURN(const uint64_t size, count(str_cat(where, ": length of a text"), kMaxTextBytes));
    const auto found = cursor_.text(size);
    if (!found.has_value()) return ends(where);
    return *found;
  }

  // Numbers of tensors and of keys.
  StatusOr<std::pair<uint64_t, uint64_t>> read_head() {
    if (cursor_.number<uint32_t>() != kMagic) return invalid_argument(model_.file_, ": is no GGUF file");
    ASSIGN_OR_RETURN(const uint32_t version, number<uint32_t>("version"));
    if (version < kFirstVersion || version > kLastVersion) {
      return invalid("version", str_cat(version, " is not supported; 2 and 3 are"));
    }
    ASSIGN_OR_RETURN(const uint64_t tensors, count("number of tensors", kMaxTensors));
    ASSIGN_OR_RETURN(const uint64_t keys, count("number of keys", kMaxKeys));
    return std::pair(tensors, keys);
  }

  Status read_pair(const std::string& place) {
    ASSIGN_OR_RETURN(const std::string_view key, text(place));
    const std::string where = str_cat("key ", in_quotes(key));
    ASSIGN_OR_RETURN(const uint32_t type, number<uint32_t>(where));
    StatusOr<GgufValue> value = type == kList ? read_list(where) : read_value(where, type);
    if (!value.ok()) return value.status();
    if (!model_.values_.emplace(key, std::move(value).value()).second) return invalid(where, "is there twice");
    return ok_status();
  }

  template <typename Number>
  StatusOr<GgufValue> whole(std::string_view where) {
    ASSIGN_OR_RETURN(const Number value, number<Number>(where));
    if constexpr (std::is_same_v<Number, uint64_t>) {
      if (value > static_cast<uint64_t>(INT64_MAX)) return invalid(where, str_cat(value, " is too large"));
    }
    return GgufValue(static_cast<int64_t>(value));
  }
  template <typename Number>
  StatusOr<GgufValue> real(std::string_view where) {
    ASSIGN_OR_RETURN(const Number value, number<Number>(where));
    return GgufValue(static_cast<double>(value));
  }

  StatusOr<GgufValue> read_value(std::string_view where, uint32_t type) {
    switch (type) {
      case kUint8:
      case kBool: return whole<uint8_t>(where);
      case kInt8: return whole<int8_t>(where);
      case kUint16: return whole<uint16_t>(where);
      case kInt16: return whole<int16_t>(where);
      case kUint32: return whole<uint32_t>(where);
      case kInt32: return whole<int32_t>(where);
      case kUint64: return whole<uint64_t>(where);
      case kInt64: return whole<int64_t>(where);
      case kFloat32: return real<float>(where);
      case kFloat64: return real<double>(where);
      case kString: {
        ASSIGN_OR_RETURN(const std::string_view value, text(where));
        return GgufValue(value);
      }
      default: return invalid(where, str_cat("type ", type, " is not known"));
    }
  }

  StatusOr<GgufValue> read_list(const std::string& where) {
    ASSIGN_OR_RETURN(const uint32_t type, number<uint32_t>(where));
    ASSIGN_OR_RETURN(const uint64_t size,
                     count(str_cat(where, ": length of a list"), kMaxListed << (type <= kInt8 ? 4 : 0)));
    if (type == kList) return invalid(where, "is a list of lists");
    if (type == kUint8 || type == kInt8) {
      const auto found = cursor_.bytes(size);
      if (!found.has_value()) return ends(where);
      return GgufValue(*found);
    }
    // No element is shorter than a byte: what is reserved stays below the file's size times eight.
    if (size > cursor_.left()) return ends(where);
    GgufValue list = type == kString                        ? GgufValue(std::vector<std::string_view>())
                     : type == kFloat32 || type == kFloat64 ? GgufValue(std::vector<double>())
                                                            : GgufValue(std::vector<int64_t>());
    for (uint64_t i = 0; i < size; ++i) {
      ASSIGN_OR_RETURN(const GgufValue value, read_value(where, type));
      if (auto* texts = std::get_if<std::vector<std::string_view>>(&list)) texts->push_back(std::get<2>(value));
      if (auto* reals = std::get_if<std::vector<double>>(&list)) reals->push_back(std::get<double>(value));
      if (auto* wholes = std::get_if<std::vector<int64_t>>(&list)) wholes->push_back(std::get<int64_t>(value));
    }
    return list;
  }

  Status read_tensor(const std::string& place, std::vector<Place>& places) {
    GgufFile::Tensor tensor;
    ASSIGN_OR_RETURN(tensor.name, text(place));
    const std::string where = str_cat("tensor ", in_quotes(tensor.name));
    ASSIGN_OR_RETURN(const uint32_t rank, number<uint32_t>(where));
    if (rank < 1 || rank > kMaxDimensions) return invalid(where, str_cat(rank, " dimensions; 1 to 4 are read"));
    for (uint32_t i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(const uint64_t side, count(where + ": a dimension", static_cast<uint64_t>(kMaxSide)));
      if (side == 0) return invalid(where, "a dimension is 0");
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(side));
    }
    ASSIGN_OR_RETURN(const uint32_t type, number<uint32_t>(where));
    ASSIGN_OR_RETURN(const uint64_t offset, number<uint64_t>(where));
    ASSIGN_OR_RETURN(const int64_t size, size_of(tensor, type, where));
    places.push_back({offset, size});
    model_.tensors_.push_back(std::move(tensor));
    return ok_status();
  }

  // Sets the tensor's type, too.
  StatusOr<int64_t> size_of(GgufFile::Tensor& tensor, uint32_t type, const std::string& where) const {
    const int64_t row = tensor.shape.back();
    std::optional<int64_t> size;
    tensor.blocks = block_type_of_ggml(type);
    for (const Storage& floats : kFloats) {
      if (floats.ggml_type != type) continue;
      tensor.dtype = floats.name;
      size = row * floats.bytes;
    }
    if (tensor.blocks.has_value()) {
      tensor.dtype = block_type_name(*tensor.blocks);
      if (row % block_weights(*tensor.blocks) != 0)
        return invalid(where, str_cat(row, " inputs are no whole blocks of ", block_weights(*tensor.blocks)));
      size = row / block_weights(*tensor.blocks) * block_bytes(*tensor.blocks);
    }
    if (tensor.dtype.empty()) {
      return invalid(where, str_cat("ggml type ", type,
                                    " is not supported; f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, "
                                    "q8_0 and q2_K to q6_K are"));
    }
    for (size_t i = 0; i + 1 < tensor.shape.size() && size.has_value(); ++i) size = checked_mul(*size, tensor.shape[i]);
    if (!size.has_value() || *size > std::ssize(bytes_)) return invalid(where, "is larger than the file");
    return *size;
  }

  Status place_tensors(const std::vector<Place>& places) {
    ASSIGN_OR_RETURN(const int64_t alignment, model_.integer("general.alignment", 8, 1 << 16, 32));
    if (!std::has_single_bit(static_cast<uint64_t>(alignment))) {
      return model_.error("general.alignment", str_cat(alignment, " is no power of two"));
    }
    const auto begin = static_cast<uint64_t>(round_up(static_cast<int64_t>(cursor_.offset()), alignment));
    const uint64_t room = bytes_.size() - std::min<uint64_t>(begin, bytes_.size());
    std::vector<std::pair<uint64_t, uint64_t>> taken;
    for (size_t i = 0; i < places.size(); ++i) {
      GgufFile::Tensor& tensor = model_.tensors_[i];
      const auto [offset, size] = places[i];
      const std::string where = str_cat("tensor ", in_quotes(tensor.name));
      if (offset % static_cast<uint64_t>(alignment) != 0) {
        return invalid(where, str_cat("offset ", offset, " is no multiple of ", alignment));
      }
      if (offset > room || static_cast<uint64_t>(size) > room - offset) return invalid(where, "lies outside the file");
      tensor.data = bytes_.subspan(static_cast<size_t>(begin + offset), static_cast<size_t>(size));
      taken.emplace_back(offset, offset + static_cast<uint64_t>(size));
    }
    std::sort(taken.begin(), taken.end());
    for (size_t i = 1; i < taken.size(); ++i) {
      if (taken[i].first < taken[i - 1].second) {
        return invalid("tensors", str_cat("two lie over each other at offset ", taken[i].first));
      }
    }
    return ok_status();
  }

  std::span<const std::byte> bytes_;
  FileCursor cursor_;
  GgufFile model_;
};

StatusOr<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string_view file) {
  return GgufParser(bytes, file).parse();
}

Status GgufFile::error(std::string_view key, std::string_view reason) const {
  return with_param(invalid_argument(file_, ": ", key, ": ", reason), key);
}

template <typename Value>
StatusOr<const Value*> GgufFile::find(std::string_view key, std::string_view kind) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return static_cast<const Value*>(nullptr);
  const auto* value = std::get_if<Value>(&found->second);
  if (value == nullptr) return error(key, str_cat("is no ", kind));
  return value;
}

StatusOr<int64_t> GgufFile::integer(std::string_view key, int64_t least, int64_t most,
                                    std::optional<int64_t> fallback) const {
  ASSIGN_OR_RETURN(const int64_t* const value, find<int64_t>(key, "whole number"));
  if (value == nullptr && !fallback.has_value()) return error(key, "is missing");
  if (value == nullptr) return *fallback;
  if (*value < least || *value > most) return error(key, str_cat(*value, " is not from ", least, " to ", most));
  return *value;
}

StatusOr<double> GgufFile::number(std::string_view key, double least, double most,
                                  std::optional<double> fallback) const {
  ASSIGN_OR_RETURN(const double* const value, find<double>(key, "number"));
  if (value == nullptr && !fallback.has_value()) return error(key, "is missing");
  if (value == nullptr) return *fallback;
  if (!(*value >= least && *value <= most)) return error(key, str_cat(*value, " is not from ", least, " to ", most));
  return *value;
}

StatusOr<std::string_view> GgufFile::text(std::string_view key) const {
  ASSIGN_OR_RETURN(const std::string_view* const value, find<std::string_view>(key, "text"));
  if (value == nullptr) return error(key, "is missing");
  return *value;
}

StatusOr<const std::vector<std::string_view>*> GgufFile::texts(std::string_view key) const {
  return find<std::vector<std::string_view>>(key, "list of texts");
}
StatusOr<const std::vector<double>*> GgufFile::numbers(std::string_view key) const {
  return find<std::vector<double>>(key, "list of numbers");
}
StatusOr<const std::vector<int64_t>*> GgufFile::integers(std::string_view key) const {
  return find<std::vector<int64_t>>(key, "list of whole numbers");
}
StatusOr<std::span<const std::byte>> GgufFile::bytes(std::string_view key) const {
  ASSIGN_OR_RETURN(const auto* const value, find<std::span<const std::byte>>(key, "list of bytes"));
  return value == nullptr ? std::span<const std::byte>() : *value;
}

std::optional<std::string_view> gguf_architecture(std::span<const std::byte> bytes) {
  return GgufParser(bytes, "").architecture();
}

}  // namespace transept
