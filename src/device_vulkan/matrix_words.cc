#include "device_vulkan/matrix_words.h"

#include <cstring>
#include <map>
#include <optional>
#include <string_view>

namespace transept {
namespace {

// Of SPIR-V's specification, 3, and of both extensions'.
constexpr uint32_t kMagic = 0x07230203, kHeaderWords = 5, kBoundAt = 3;
constexpr uint32_t kExtension = 10, kCapability = 17, kTypeInt = 21, kConstantTrue = 41, kConstantFalse = 42,
                   kConstant = 43, kDecorate = 71, kSpecId = 1;
constexpr uint32_t kCapabilityNv = 5357, kTypeNv = 5358, kLoadNv = 5359, kStoreNv = 5360, kMulAddNv = 5361;
constexpr uint32_t kCapabilityKhr = 6022, kTypeKhr = 4456, kLoadKhr = 4457, kStoreKhr = 4458, kMulAddKhr = 4459;
constexpr uint32_t kAllSigned = 15;  // both sides, what is added, the result
constexpr std::string_view kNameNv = "SPV_NV_cooperative_matrix", kNameKhr = "SPV_KHR_cooperative_matrix";

using Words = std::span<const uint32_t>;

uint32_t opcode(Words op) { return op[0] & 0xFFFF; }

class Translator {
 public:
  // Reads what types and constants are.
  Status read(Words op) {
    switch (opcode(op)) {
      case kTypeInt:
        if (op.size() == 4 && op[2] == 32 && op[3] == 0) uint_ = op[1];
        if (op.size() == 4) is_int_[op[1]] = true;
        break;
      case kDecorate:
        if (op.size() == 4 && op[2] == kSpecId) constants_[op[1]] = op[3];
        break;
      case kConstantTrue: is_true_[op[2]] = true; break;
      case kConstantFalse: is_true_[op[2]] = false; break;
      case kTypeNv: return read_type(op);
      default: break;
    }
    return ok_status();
  }

  // Appends what stands in the op's place. `first_new`: three ids that are free.
  Status write(Words op, uint32_t first_new, std::vector<uint32_t>& to) {
    switch (opcode(op)) {
      case kCapability: put(to, kCapability, {op[1] == kCapabilityNv ? kCapabilityKhr : op[1]}); return ok_status();
      case kExtension: write_extension(op, to); return ok_status();
      case kTypeNv: return write_type(op, first_new, to);
      case kLoadNv:  // type, result, pointer, stride, is by columns, how memory is accessed
        if (op.size() < 6) return strange();
        return write_access(op, kLoadKhr, {op[1], op[2], op[3]}, op[4], op[5], 6, first_new, to);
      case kStoreNv:  // pointer, what, stride, is by columns, how memory is accessed
        if (op.size() < 5) return strange();
        return write_access(op, kStoreKhr, {op[1], op[2]}, op[3], op[4], 5, first_new, to);
      case kMulAddNv: {
        if (op.size() != 6) return strange();
        const auto numbers = numbers_.find(op[1]);
        if (numbers == numbers_.end()) return strange();
        put(to, kMulAddKhr, op.subspan(1),
            is_int_.contains(numbers->second) ? std::optional(kAllSigned) : std::nullopt);
        return ok_status();
      }
      default: to.insert(to.end(), op.begin(), op.end()); return ok_status();
    }
  }

  bool found_all() const { return has_constants_ && has_extension_; }

 private:
  static Status strange() { return absl::InternalError("a kernel of matrices is none that can be loaded"); }

  static void put(std::vector<uint32_t>& to, uint32_t code, Words operands, std::optional<uint32_t> last = {}) {
    const auto size = static_cast<uint32_t>(operands.size() + (last.has_value() ? 2 : 1));
    to.push_back(size << 16 | code);
    to.insert(to.end(), operands.begin(), operands.end());
    if (last.has_value()) to.push_back(*last);
  }
  static void put(std::vector<uint32_t>& to, uint32_t code, std::initializer_list<uint32_t> operands) {
    put(to, code, Words(operands.begin(), operands.size()));
  }

  void write_extension(Words op, std::vector<uint32_t>& to) {
    const auto* const text = reinterpret_cast<const char*>(&op[1]);
    if (std::string_view(text, ::strnlen(text, (op.size() - 1) * 4)) != kNameNv) {
      to.insert(to.end(), op.begin(), op.end());
      return;
    }
    has_extension_ = true;
    std::vector<uint32_t> name(kNameKhr.size() / 4 + 1);
    std::memcpy(name.data(), kNameKhr.data(), kNameKhr.size());
    put(to, kExtension, name);
  }

  // result, numbers, scope, rows, columns. What it is for: 0 and 1 the sides of a product, 2 its sums.
  Status read_type(Words op) {
    if (op.size() != 6) return strange();
    const auto rows = constants_.find(op[4]), columns = constants_.find(op[5]);
    if (rows == constants_.end() || columns == constants_.end()) return strange();
    const uint32_t shape = rows->second << 8 | columns->second;
    constexpr uint32_t kRows = 0, kColumns = 1, kInputs = 2;
    uint32_t use = 0;
    if (shape == (kRows << 8 | kInputs)) {
      use = 0;
    } else if (shape == (kInputs << 8 | kColumns)) {
      use = 1;
    } else if (shape == (kRows << 8 | kColumns)) {
      use = 2;
    } else {
      return strange();
    }
    numbers_[op[1]] = op[2];
    uses_[op[1]] = use;
    return ok_status();
  }

  Status write_type(Words op, uint32_t first_new, std::vector<uint32_t>& to) {
    if (uint_ == 0) return strange();
    for (uint32_t value = 0; value < 3 && !has_constants_; ++value)
      put(to, kConstant, {uint_, first_new + value, value});
    has_constants_ = true;
    put(to, kTypeKhr, op.subspan(1), first_new + uses_[op[1]]);
    return ok_status();
  }

  Status write_access(Words op, uint32_t code, std::initializer_list<uint32_t> before, uint32_t stride,
                      uint32_t by_columns, size_t rest, uint32_t first_new, std::vector<uint32_t>& to) {
    const auto is_true = is_true_.find(by_columns);
    if (is_true == is_true_.end()) return strange();
    std::vector<uint32_t> operands(before);
    operands.push_back(first_new + (is_true->second ? 1 : 0));
    operands.push_back(stride);
    operands.insert(operands.end(), op.begin() + static_cast<std::ptrdiff_t>(rest), op.end());
    put(to, code, operands);
    return ok_status();
  }

  uint32_t uint_ = 0;  // the type
  bool has_constants_ = false, has_extension_ = false;
  std::map<uint32_t, bool> is_int_, is_true_;
  std::map<uint32_t, uint32_t> constants_, numbers_, uses_;
};

}  // namespace

StatusOr<std::vector<uint32_t>> khr_matrix_words(std::span<const uint32_t> words) {
  const Status strange = absl::InternalError("a kernel of matrices is no SPIR-V");
  if (words.size() < kHeaderWords || words[0] != kMagic) return strange;
  const uint32_t first_new = words[kBoundAt];
  std::vector<uint32_t> result(words.begin(), words.begin() + kHeaderWords);
  result[kBoundAt] += 3;
  Translator translator;
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t size = words[at] >> 16;
    if (size == 0 || size > words.size() - at) return strange;
    const Words op = words.subspan(at, size);
    RETURN_IF_ERROR(translator.read(op));
    RETURN_IF_ERROR(translator.write(op, first_new, result));
    at += size;
  }
  if (!translator.found_all()) return absl::InternalError("a kernel has no matrices");
  return result;
}

}  // namespace transept
