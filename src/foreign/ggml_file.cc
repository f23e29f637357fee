#include "foreign/ggml_file.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "base/quoted.h"
#include "foreign/file_cursor.h"

namespace transept {
namespace {

constexpr uint32_t kMagic = 0x67676d6c;  // "ggml"
constexpr int64_t kMaxSide = 1 << 20;    // of a size, a dimension
constexpr int64_t kMaxTextBytes = 4096;
constexpr size_t kMaxTensors = 10'000;
constexpr int32_t kMaxDimensions = 4;
constexpr int64_t kMaxFilters = 1 << 20;

class Parser final {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view file) : cursor_(bytes), file_(file) {}

  StatusOr<GgmlFile> parse() {
    if (cursor_.number<uint32_t>() != kMagic) return invalid_argument(file_, ": is no file of whisper.cpp");
    RETURN_IF_ERROR(read_sizes());
    RETURN_IF_ERROR(read_filters());
    RETURN_IF_ERROR(read_tokens());
    while (cursor_.left() > 0) {
      if (model_.tensors.size() == kMaxTensors) {
        return invalid_argument(file_, ": more than the ", kMaxTensors, " tensors allowed");
      }
      RETURN_IF_ERROR(read_tensor());
    }
    return std::move(model_);
  }

 private:
  Status ends(std::string_view where) const {
    return invalid_argument(file_, ": ends within ", where, ", at byte ", cursor_.offset());
  }

  StatusOr<int32_t> number(std::string_view name, int64_t least, int64_t most) {
    const std::optional<int32_t> value = cursor_.number<int32_t>();
    if (!value.has_value()) return ends(name);
    if (*value < least || *value > most) {
      return with_param(invalid_argument(file_, ": ", name, ": ", *value, " is not from ", least, " to ", most), name);
    }
    return *value;
  }

  Status read_sizes() {
    const std::pair<std::string_view, int32_t*> sizes[] = {{"n_vocab", &model_.n_vocab},
                                                           {"n_audio_ctx", &model_.n_audio_ctx},
                                                           {"n_audio_state", &model_.n_audio_state},
                                                           {"n_audio_head", &model_.n_audio_head},
                                                           {"n_audio_layer", &model_.n_audio_layer},
                                                           {"n_text_ctx", &model_.n_text_ctx},
                                                           {"n_text_state", &model_.n_text_state},
                                                           {"n_text_head", &model_.n_text_head},
                                                           {"n_text_layer", &model_.n_text_layer},
                                                           {"n_mels", &model_.n_mels}};
    for (const auto& [name, to] : sizes) {
      ASSIGN_OR_RETURN(*to, number(name, 1, kMaxSide));
    }
    ASSIGN_OR_RETURN(model_.ftype, number("ftype", 0, 1'000'000));
    return ok_status();
  }

  Status read_filters() {
    ASSIGN_OR_RETURN(const int32_t rows, number("the number of mel filters", model_.n_mels, model_.n_mels));
    ASSIGN_OR_RETURN(model_.num_bins, number("the width of mel filters", 1, kMaxFilters / rows));
    const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(model_.num_bins);
    const auto data = cursor_.bytes(count * sizeof(float));
    if (!data.has_value()) return ends("mel filters");
    model_.filters.resize(count);
    std::memcpy(model_.filters.data(), data->data(), data->size());
    if (std::ranges::all_of(model_.filters, [](float value) { return std::isfinite(value); })) return ok_status();
    return invalid_argument(file_, ": mel filters: a value is no finite number");
  }

  Status read_tokens() {
    ASSIGN_OR_RETURN(const int32_t count, number("the number of tokens", 1, model_.n_vocab));
    for (int32_t id = 0; id < count; ++id) {
      const std::string where = str_cat("token ", id);
      ASSIGN_OR_RETURN(const int32_t size, number(where, 0, kMaxTextBytes));
      const auto text = cursor_.text(static_cast<uint64_t>(size));
      if (!text.has_value()) return ends(where);
      model_.tokens.push_back(*text);
    }
    return ok_status();
  }

  Status read_tensor() {
    const std::string where = str_cat("tensor ", model_.tensors.size());
    ASSIGN_OR_RETURN(const int32_t rank, number(where + ": dimensions", 1, kMaxDimensions));
    ASSIGN_OR_RETURN(const int32_t name_size, number(where + ": its name's length", 1, kMaxTextBytes));
    ASSIGN_OR_RETURN(const int32_t type, number(where + ": type", 0, 1000));
    GgmlFile::Tensor tensor;
    for (int32_t i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(const int32_t side, number(str_cat(where, ": dimension ", i), 1, int64_t{1} << 30));
      tensor.shape.insert(tensor.shape.begin(), side);
    }
    const auto name = cursor_.text(static_cast<uint64_t>(name_size));
    if (!name.has_value()) return ends(where + ": name");
    tensor.name = *name;
    ASSIGN_OR_RETURN(const int64_t size, bytes_of(tensor, type));
    const auto data = cursor_.bytes(static_cast<uint64_t>(size));
    if (!data.has_value()) return ends(str_cat("tensor ", in_quotes(tensor.name)));
    tensor.data = *data;
    model_.tensors.push_back(std::move(tensor));
    return ok_status();
  }

  // Sets the tensor's type, too.
  StatusOr<int64_t> bytes_of(GgmlFile::Tensor& tensor, int32_t type) const {
    const auto error = [&](std::string_view reason) {
      return with_param(invalid_argument(file_, ": tensor ", in_quotes(tensor.name), ": ", reason), tensor.name);
    };
    tensor.blocks = block_type_of_ggml(type);
    const int64_t row = tensor.shape.back();
    std::optional<int64_t> size;
    if (type <= 1) {
      tensor.dtype = type == 0 ? "F32" : "F16";
      size = row * (type == 0 ? 4 : 2);
    } else if (tensor.blocks.has_value()) {
      tensor.dtype = block_type_name(*tensor.blocks);
      if (row % block_weights(*tensor.blocks) != 0)
        return error(str_cat(row, " inputs are no whole blocks of ", block_weights(*tensor.blocks)));
      size = row / block_weights(*tensor.blocks) * block_bytes(*tensor.blocks);
    } else {
      return error(str_cat("ggml type ", type,
                           " is not supported; f32, f16, q4_0, q4_1, q5_0, q5_1, q8_0 and q2_K to q6_K are"));
    }
    for (size_t i = 0; i + 1 < tensor.shape.size() && size.has_value(); ++i) size = checked_mul(*size, tensor.shape[i]);
    if (!size.has_value() || *size > static_cast<int64_t>(cursor_.left())) {
      return error("is larger than the rest of the file");
    }
    return *size;
  }

  FileCursor cursor_;
  std::string_view file_;
  GgmlFile model_;
};

}  // namespace

bool begins_as_ggml_file(std::span<const std::byte> bytes) { return FileCursor(bytes).number<uint32_t>() == kMagic; }

StatusOr<GgmlFile> parse_ggml_file(std::span<const std::byte> bytes, std::string_view file) {
  return Parser(bytes, file).parse();
}

}  // namespace transept
