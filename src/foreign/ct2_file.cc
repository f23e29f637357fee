#include "foreign/ct2_file.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/checked_math.h"
#include "base/quoted.h"
#include "foreign/file_cursor.h"
#include "tensor/dtype.h"

namespace transept {
namespace {

constexpr uint32_t kOldest = 3, kNewest = 6, kFirstWithTypes = 4;
constexpr size_t kMaxNameBytes = 4096;
constexpr uint32_t kMaxEntries = 100'000;
constexpr uint8_t kMaxDimensions = 4;

struct Type {
  std::string_view dtype;
  int64_t bytes;
};
constexpr Type kTypes[] = {{"F32", 4}, {"I8", 1}, {"I16", 2}, {"I32", 4}, {"F16", 2}, {"BF16", 2}};  // by id

// Before version 4 a variable has its elements' size alone.
const Type* type_of_size(uint8_t bytes) {
  if (bytes == 4) return &kTypes[0];
  if (bytes == 2) return &kTypes[2];
  return bytes == 1 ? &kTypes[1] : nullptr;
}

// u16 length with the 0 at the end. nullopt: the bytes end before, or it is no such string.
std::optional<std::string_view> read_name(FileCursor& cursor) {
  const std::optional<uint16_t> size = cursor.number<uint16_t>();
  if (!size.has_value() || *size < 2 || *size > kMaxNameBytes) return std::nullopt;
  std::optional<std::string_view> text = cursor.text(*size);
  if (!text.has_value() || text->find('\0') != text->size() - 1) return std::nullopt;
  text->remove_suffix(1);
  return text;
}

template <typename Number>
double number_at(std::span<const std::byte> data) {
  Number value;
  std::memcpy(&value, data.data(), sizeof value);
  return static_cast<double>(value);
}

}  // namespace

class Ct2File::Parser final {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view file) : cursor_(bytes) { model_.file_ = std::string(file); }

  StatusOr<Ct2File> parse() {
    ASSIGN_OR_RETURN(model_.version_, number<uint32_t>("the version"));
    if (model_.version_ < kOldest || model_.version_ > kNewest) {
      return error(str_cat("version ", model_.version_, " of CTranslate2's form is not supported; ", kOldest, " to ",
                           kNewest, " are"));
    }
    ASSIGN_OR_RETURN(model_.spec_, name("the name of the spec"));
    ASSIGN_OR_RETURN(model_.revision_, number<uint32_t>("the revision"));
    ASSIGN_OR_RETURN(const uint32_t num_variables, count("variables"));
    for (uint32_t i = 0; i < num_variables; ++i) RETURN_IF_ERROR(read_variable(i));
    ASSIGN_OR_RETURN(const uint32_t num_aliases, count("aliases"));
    for (uint32_t i = 0; i < num_aliases; ++i) RETURN_IF_ERROR(read_alias(i));
    if (cursor_.left() > 0) return error(str_cat("has ", cursor_.left(), " bytes behind its end"));
    RETURN_IF_ERROR(resolve_aliases());
    return std::move(model_);
  }

 private:
  Status error(std::string_view reason) const { return invalid_argument(model_.file_, ": ", reason); }

  template <typename Number>
  StatusOr<Number> number(std::string_view what) {
    const std::optional<Number> value = cursor_.number<Number>();
    if (value.has_value()) return *value;
    return error(str_cat("ends within ", what, ", at byte ", cursor_.offset()));
  }
  StatusOr<std::string_view> name(std::string_view what) {
    const std::optional<std::string_view> text = read_name(cursor_);
    if (text.has_value()) return *text;
    return error(str_cat(what, " at byte ", cursor_.offset(), ": is no text of 1 to ", kMaxNameBytes - 1,
                         " bytes with a 0 behind it"));
  }
  StatusOr<uint32_t> count(std::string_view what) {
    ASSIGN_OR_RETURN(const uint32_t value, number<uint32_t>(str_cat("the number of ", what)));
    if (value > kMaxEntries) return error(str_cat(value, " ", what, " are over the ", kMaxEntries, " allowed"));
    return value;
  }

  Status read_variable(uint32_t index) {
    const std::string where = str_cat("variable ", index);
    Variable variable;
    ASSIGN_OR_RETURN(variable.name, name(where));
    ASSIGN_OR_RETURN(const uint8_t rank, number<uint8_t>(where));
    if (rank > kMaxDimensions) {
      return model_.error(variable.name, str_cat(int{rank}, " dimensions are over the ", kMaxDimensions, " allowed"));
    }
    for (uint8_t i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(const uint32_t side, number<uint32_t>(where));
      if (side == 0) return model_.error(variable.name, str_cat("dimension ", int{i}, " is 0"));
      variable.shape.push_back(side);
    }
    RETURN_IF_ERROR(read_data(where, variable));
    if (!model_.variables_.try_emplace(variable.name, variable).second) {
      return model_.error(variable.name, "is there twice");
    }
    return ok_status();
  }

  Status read_data(std::string_view where, Variable& variable) {
    ASSIGN_OR_RETURN(const uint8_t id, number<uint8_t>(where));
    const bool has_types = model_.version_ >= kFirstWithTypes;
    const Type* type = !has_types ? type_of_size(id) : id < std::size(kTypes) ? &kTypes[id] : nullptr;
    if (type == nullptr) {
      return model_.error(variable.name,
                          str_cat(has_types ? "type " : "elements of size ", int{id}, " is not supported"));
    }
    variable.dtype = type->dtype;
    ASSIGN_OR_RETURN(const uint32_t given, number<uint32_t>(where));
    const uint64_t given_bytes = has_types ? given : uint64_t{given} * id;
    std::optional<int64_t> size = type->bytes;
    for (const int64_t side : variable.shape) size = size.has_value() ? checked_mul(*size, side) : size;
    if (!size.has_value() || static_cast<uint64_t>(*size) != given_bytes) {
      return model_.error(variable.name, str_cat("has ", given_bytes, " bytes, which are not those of its shape"));
    }
    const auto data = cursor_.bytes(given_bytes);
    if (!data.has_value()) return model_.error(variable.name, "is larger than the rest of the file");
    variable.data = *data;
    return ok_status();
  }

  Status read_alias(uint32_t index) {
    const std::string where = str_cat("alias ", index);
    ASSIGN_OR_RETURN(const std::string_view alias, name(where));
    ASSIGN_OR_RETURN(const std::string_view target, name(where));
    const bool is_new = !model_.variables_.contains(alias) && model_.aliases_.try_emplace(alias, target).second;
    return is_new ? ok_status() : model_.error(alias, "is there twice");
  }

  Status resolve_aliases() {
    std::map<std::string_view, std::string_view> resolved;
    for (const auto& [alias, first] : model_.aliases_) {
      std::string_view target = first;
      for (size_t steps = 0; !model_.variables_.contains(target); ++steps) {
        const auto next = model_.aliases_.find(target);
        if (next == model_.aliases_.end()) {
          return model_.error(alias, str_cat("is an alias of ", in_quotes(target), ", which is missing"));
        }
        // A circle has no end; the converter writes one step.
        if (steps == kMaxSteps) return model_.error(alias, "is an alias of itself");
        target = next->second;
      }
      resolved[alias] = target;
    }
    model_.aliases_ = std::move(resolved);
    return ok_status();
  }

  static constexpr size_t kMaxSteps = 16;

  FileCursor cursor_;
  Ct2File model_;
};

StatusOr<Ct2File> Ct2File::parse(std::span<const std::byte> bytes, std::string_view file) {
  return Parser(bytes, file).parse();
}

const Ct2File::Variable* Ct2File::find(std::string_view name) const {
  if (const auto alias = aliases_.find(name); alias != aliases_.end()) name = alias->second;
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

std::optional<double> Ct2File::scalar(std::string_view name) const {
  const Variable* variable = find(name);
  if (variable == nullptr || !variable->is_scalar()) return std::nullopt;
  if (variable->dtype == "F32") return number_at<float>(variable->data);
  if (variable->dtype == "I8") return number_at<int8_t>(variable->data);
  if (variable->dtype == "I16") return number_at<int16_t>(variable->data);
  if (variable->dtype == "I32") return number_at<int32_t>(variable->data);
  const auto bits = static_cast<uint16_t>(number_at<uint16_t>(variable->data));
  return variable->dtype == "F16" ? float16_to_float(bits) : bfloat16_to_float(bits);
}

Status Ct2File::error(std::string_view name, std::string_view reason) const {
  return with_param(invalid_argument(file_, ": variable ", in_quotes(name), ": ", reason), name);
}

std::optional<std::string_view> ct2_spec(std::span<const std::byte> beginning) {
  constexpr uint32_t kMaxVersion = 100;
  FileCursor cursor(beginning);
  const std::optional<uint32_t> version = cursor.number<uint32_t>();
  if (!version.has_value() || *version == 0 || *version > kMaxVersion) return std::nullopt;
  const std::optional<std::string_view> spec = read_name(cursor);
  if (!spec.has_value() || !spec->ends_with("Spec")) return std::nullopt;
  const bool is_name = std::ranges::all_of(
      *spec, [](char c) { return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'); });
  return is_name ? spec : std::nullopt;
}

}  // namespace transept
