#include "quantized/bitsandbytes_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/json.h"
#include "core/model_config.h"
#include "quantized/stored_codes.h"

namespace transept {
namespace {

constexpr size_t kNumValues = 16, kNumNestedValues = 256;
constexpr int64_t kMaxBlock = int64_t{1} << 20;
constexpr std::string_view kStates[] = {".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4"};

std::optional<std::string> state_name(const WeightMap& weights, std::string_view name) {
  for (const std::string_view ending : kStates) {
    if (std::string state = str_cat(name, ending); weights.has_tensor(state)) return state;
  }
  return std::nullopt;
}

// Codes into a table, with the greatest magnitude of each block of the flat matrix, whose rows are no whole blocks.
class TableCodes final : public MatrixSource {
 public:
  // REQUIRES: `codes` are ceil(n k / 2) bytes; absmax: one for each block.
  TableCodes(int64_t n, int64_t k, StoredBytes codes, const std::vector<float>& table, std::vector<float> absmax,
             int64_t block)
      : MatrixSource(n, k, kFloat4Format), codes_(codes), absmax_(std::move(absmax)), block_(block) {
    CHECK(std::ssize(codes.bytes) == ceil_div(n * k, 2) && std::ssize(absmax_) == ceil_div(n * k, block));
    CHECK(table.size() == kNumValues);
    std::ranges::copy(table, table_.begin());
  }

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    CHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
    CHECK(std::ssize(out) == count * columns.size());
    float* to = out.data();
    for (int64_t row = begin; row < begin + count; ++row) {
      for (int64_t at = row * k() + columns.begin; at < row * k() + columns.end; ++at) {
        const auto byte = std::to_integer<size_t>(codes_.bytes[static_cast<size_t>(at / 2)]);
        *to++ = table_[at % 2 == 0 ? byte >> 4 : byte & 15] * absmax_[static_cast<size_t>(at / block_)];
      }
    }
  }
  void release_rows(int64_t begin, int64_t count) const override {
    codes_.release(static_cast<size_t>(begin * k() / 2), static_cast<size_t>(count * k() / 2));
  }

 private:
  StoredBytes codes_;
  std::array<float, kNumValues> table_;
  std::vector<float> absmax_;
  int64_t block_;
};

// What the JSON of a 4-bit matrix says.
struct State {
  int64_t block = 64, nested_block = 256;
  float nested_offset = 0;
};

StatusOr<State> parse_state(std::string_view text, const std::string& place, int64_t n, int64_t k) {
  StatusOr<Json> json = Json::parse(text, {.max_bytes = 65536, .max_depth = 8});
  if (!json.ok()) return with_prefix(json.status(), place);
  if (!json->is_object()) return invalid_argument(place, ": expected an object, got ", json->kind_name());
  const ConfigReader reader(*json, place);
  State state;
  ASSIGN_OR_RETURN(state.block, reader.integer("blocksize", 1, kMaxBlock));
  ASSIGN_OR_RETURN(state.nested_block, reader.integer("nested_blocksize", 1, kMaxBlock, 256));
  ASSIGN_OR_RETURN(const double offset, reader.number("nested_offset", -1e30, 1e30, 0.0));
  state.nested_offset = static_cast<float>(offset);
  const Json* shape = json->find("shape");
  const bool is_list = shape != nullptr && shape->is_array() && shape->as_array().size() == 2;
  const auto is = [](const Json& value, int64_t wanted) { return value.is_int() && value.as_int() == wanted; };
  if (!is_list || !is(shape->as_array()[0], n) || !is(shape->as_array()[1], k)) {
    return reader.error("shape", str_cat("expected [", n, ", ", k, "]"));
  }
  return state;
}

StatusOr<std::vector<float>> read_absmax(MatrixParts& parts, const std::string& name, const State& state,
                                         int64_t blocks) {
  const std::string absmax = str_cat(name, ".absmax");
  if (!parts.has(absmax, "U8")) return parts.numbers(absmax, {blocks});
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(absmax, "U8", {blocks}));
  ASSIGN_OR_RETURN(const std::vector<float> table,
                   parts.numbers(str_cat(name, ".nested_quant_map"), {int64_t{kNumNestedValues}}));
  ASSIGN_OR_RETURN(const std::vector<float> scales,
                   parts.numbers(str_cat(name, ".nested_absmax"), {ceil_div(blocks, state.nested_block)}));
  std::vector<float> values(static_cast<size_t>(blocks));
  for (size_t i = 0; i < values.size(); ++i) {
    const float scale = scales[i / static_cast<size_t>(state.nested_block)];
    values[i] = table[std::to_integer<size_t>(codes.bytes[i])] * scale + state.nested_offset;
  }
  return values;
}

StatusOr<std::unique_ptr<MatrixSource>> open_4bit(MatrixParts& parts, const std::string& name,
                                                  const WeightMap::Form& state_form, int64_t n, int64_t k) {
  const std::string state_of(state_form.name);
  const std::vector<int64_t> shape(state_form.shape.begin(), state_form.shape.end());
  ASSIGN_OR_RETURN(const StoredBytes text, parts.bytes(state_of, "U8", shape));
  const std::string place = error_message(parts.error(state_of, ""));
  ASSIGN_OR_RETURN(const State state, parse_state({reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()},
                                                  place.substr(0, place.find_last_not_of(": ") + 1), n, k));
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.any_bytes(name, ceil_div(n * k, 2)));
  ASSIGN_OR_RETURN(const std::vector<float> table, parts.numbers(str_cat(name, ".quant_map"), {int64_t{kNumValues}}));
  ASSIGN_OR_RETURN(std::vector<float> absmax, read_absmax(parts, name, state, ceil_div(n * k, state.block)));
  if (k % 2 == 0 && k % state.block == 0 && k / state.block <= CodedMatrix::kMaxGroups) {
    CodeGroups groups{.scales = std::move(absmax), .zeros = {}, .input_groups = {}, .table = table};
    return std::unique_ptr<MatrixSource>(
        std::make_unique<TableRowCodes>(n, k, static_cast<int32_t>(state.block), codes, std::move(groups)));
  }
  return std::unique_ptr<MatrixSource>(
      std::make_unique<TableCodes>(n, k, codes, table, std::move(absmax), state.block));
}

StatusOr<std::unique_ptr<MatrixSource>> open_int8(MatrixParts& parts, const std::string& name, std::string_view module,
                                                  int64_t n, int64_t k) {
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(name, "I8", {n, k}));
  if (const std::string format = str_cat(module, ".weight_format"); parts.has(format)) {
    ASSIGN_OR_RETURN(const StoredBytes stored, parts.any_bytes(format, 1));
    if (const auto value = std::to_integer<int>(stored.bytes[0]); value != 0) {
      return parts.error(format, str_cat("is ", value, ": codes in the order of a kernel for GPUs are not read; save ",
                                         "the model with bitsandbytes 0.45 or later, which writes rows (0)"));
    }
  }
  CodeGroups groups;
  ASSIGN_OR_RETURN(groups.scales, parts.numbers(str_cat(module, ".SCB"), {n}));
  for (float& scale : groups.scales) scale /= 127;
  return std::unique_ptr<MatrixSource>(
      std::make_unique<RowCodes>(n, k, kInt8Format, codes, k, false, std::move(groups)));
}

}  // namespace

bool BitsandbytesReader::has(const WeightMap& weights, std::string_view name) const {
  const std::string_view module = module_of(name);
  if (module.empty() || !weights.has_tensor(name)) return false;
  return weights.has_tensor(str_cat(module, ".SCB")) || state_name(weights, name).has_value();
}

StatusOr<std::unique_ptr<MatrixSource>> BitsandbytesReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                                 int64_t k, WeightUse use) const {
  MatrixParts parts(weights, use);
  const std::string own(name);
  if (const std::optional<std::string> state = state_name(weights, name)) {
    return open_4bit(parts, own, *weights.form_of(*state), n, k);
  }
  return open_int8(parts, own, module_of(name), n, k);
}

}  // namespace transept
