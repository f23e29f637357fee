// One pass over the bytes, opcode by opcode. Nothing recurses.
#include "weights/torch_pickle.h"

#include <algorithm>
#include <optional>

#include "base/little_endian.h"
#include "base/quoted.h"
#include "base/utf8.h"
#include "weights/torch_names.h"

namespace transept {
namespace {

constexpr size_t kMaxNameBytes = 200;  // of a module or a class

using Bytes = std::span<const std::byte>;

// The bytes not read yet.
class PickleBytes final {
 public:
  explicit PickleBytes(Bytes bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

  StatusOr<Bytes> take(size_t size) {
    if (size > bytes_.size() - at_) return invalid_argument("is cut off");
    const Bytes taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  template <typename T>
  StatusOr<T> take_number() {
    ASSIGN_OR_RETURN(const Bytes taken, take(sizeof(T)));
    return little_endian<T>(taken.data());
  }

  StatusOr<std::string_view> take_line() {
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const size_t size = std::string_view(text, std::min(bytes_.size() - at_, kMaxNameBytes + 1)).find('\n');
    if (size == std::string_view::npos) {
      return invalid_argument("a name has no end within ", kMaxNameBytes, " bytes");
    }
    at_ += size + 1;
    return std::string_view(text, size);
  }

 private:
  Bytes bytes_;
  size_t at_ = 0;
};

const TorchName* name_of(const PickleValue& value) {
  return value.is(PickleKind::kName) ? &torch_names()[value.index()] : nullptr;
}

}  // namespace

class PickleParser final {
 public:
  explicit PickleParser(Bytes bytes) : bytes_(bytes) {}

  StatusOr<TorchPickle> parse() {
    while (!has_stopped_) {
      const size_t begin = bytes_.at();
      if (bytes_.at_end()) return invalid_argument("the pickle ends at byte ", begin, " without STOP");
      if (begin >= kMaxPickleBytes)
        return invalid_argument("the pickle is over the ", kMaxPickleBytes, " bytes allowed");
      const uint8_t opcode = *bytes_.take_number<uint8_t>();
      if (const Status status = step(opcode); !status.ok()) return with_prefix(status, place(opcode, begin));
    }
    pickle_.num_bytes_ = bytes_.at();
    pickle_.containers_ = stack_.take_containers();
    return std::move(pickle_);
  }

 private:
  static std::string place(uint8_t opcode, size_t begin) {
    const std::string_view name = pickle_opcode_name(opcode);
    return str_cat(name.empty() ? str_cat("opcode ", static_cast<int>(opcode)) : std::string(name), " at byte ", begin);
  }

  Status step(uint8_t opcode) {
    switch (opcode) {
      case 0x80: return protocol();
      case '.': return stop();
      case 'N': return stack_.push(PickleValue(PickleKind::kNone));
      case 0x88: return stack_.push(PickleValue(PickleKind::kBool, 1));
      case 0x89: return stack_.push(PickleValue(PickleKind::kBool, 0));
      case 'K': return push_number<uint8_t>();
      case 'M': return push_number<uint16_t>();
      case 'J': return push_number<int32_t>();
      case 0x8a: return long_number();
      case 'G': return floating();
      case 'X': return string();
      case 'c': return name();
      default: return step_containers(opcode);
    }
  }

  Status step_containers(uint8_t opcode) {
    switch (opcode) {
      case '(': return stack_.mark();
      case ')': return stack_.push_container(PickleKind::kTuple, 0);
      case 0x85: return stack_.push_container(PickleKind::kTuple, 1);
      case 0x86: return stack_.push_container(PickleKind::kTuple, 2);
      case 0x87: return stack_.push_container(PickleKind::kTuple, 3);
      case ']': return stack_.push_container(PickleKind::kList, 0);
      case '}': return stack_.push_container(PickleKind::kDict, 0);
      case 'a': return stack_.append(PickleKind::kList, 1);
      case 's': return stack_.append(PickleKind::kDict, 2);
      case 't': {
        ASSIGN_OR_RETURN(const size_t count, stack_.take_mark());
        return stack_.push_container(PickleKind::kTuple, count);
      }
      case 'e': {
        ASSIGN_OR_RETURN(const size_t count, stack_.take_mark());
        return stack_.append(PickleKind::kList, count);
      }
      case 'u': {
        ASSIGN_OR_RETURN(const size_t count, stack_.take_mark());
        return stack_.append(PickleKind::kDict, count);
      }
      default: return step_rest(opcode);
    }
  }

  Status step_rest(uint8_t opcode) {
    switch (opcode) {
      case 'q':
      case 'r': {
        ASSIGN_OR_RETURN(const size_t index, memo_index(opcode == 'r'));
        return stack_.put(index);
      }
      case 'h':
      case 'j': {
        ASSIGN_OR_RETURN(const size_t index, memo_index(opcode == 'j'));
        return stack_.get(index);
      }
      case 'Q': return persistent_id();
      case 'R': return reduce();
      case 'b': return build();
      default: return invalid_argument("is not in the pickles of weights; nothing of a pickle is run");
    }
  }

  StatusOr<size_t> memo_index(bool is_long) {
    if (is_long) return bytes_.take_number<uint32_t>();
    return bytes_.take_number<uint8_t>();
  }

  // ---- Plain values

  Status protocol() {
    ASSIGN_OR_RETURN(const auto version, bytes_.take_number<uint8_t>());
    if (version == 2) return ok_status();
    return invalid_argument("protocol ", static_cast<int>(version), ", expected 2");
  }

  Status stop() {
    if (stack_.size() != 1 || stack_.has_marks()) {
      return invalid_argument(stack_.size(), " values are left, expected 1");
    }
    pickle_.root_ = stack_.top();
    has_stopped_ = true;
    return ok_status();
  }

  template <typename T>
  Status push_number() {
    ASSIGN_OR_RETURN(const T number, bytes_.take_number<T>());
    return stack_.push(PickleValue(PickleKind::kInt, number));
  }

  Status long_number() {
    ASSIGN_OR_RETURN(const auto size, bytes_.take_number<uint8_t>());
    ASSIGN_OR_RETURN(const Bytes digits, bytes_.take(size));
    if (size > sizeof(int64_t)) return invalid_argument("a number of ", static_cast<int>(size), " bytes");
    const bool is_negative = size > 0 && (digits.back() & std::byte{0x80}) != std::byte{0};
    auto number = is_negative ? ~uint64_t{0} : uint64_t{0};
    for (size_t i = size; i-- > 0;) number = (number << 8) | std::to_integer<uint64_t>(digits[i]);
    return stack_.push(PickleValue(PickleKind::kInt, static_cast<int64_t>(number)));
  }

  Status floating() {
    RETURN_IF_ERROR(bytes_.take(sizeof(double)).status());
    return stack_.push(PickleValue(PickleKind::kFloat));
  }

  Status string() {
    ASSIGN_OR_RETURN(const auto size, bytes_.take_number<uint32_t>());
    if (size > kMaxPickleStringBytes) return invalid_argument("a string of ", size, " bytes");
    ASSIGN_OR_RETURN(const Bytes taken, bytes_.take(size));
    const std::string_view text(reinterpret_cast<const char*>(taken.data()), taken.size());
    return is_valid_utf8(text) ? stack_.push(PickleValue(text)) : invalid_argument("a string that is not UTF-8");
  }

  Status name() {
    ASSIGN_OR_RETURN(const std::string_view module, bytes_.take_line());
    ASSIGN_OR_RETURN(const std::string_view spelled, bytes_.take_line());
    if (const std::optional<size_t> row = find_torch_name(module, spelled); row.has_value()) {
      return stack_.push(PickleValue(PickleKind::kName, static_cast<int64_t>(*row)));
    }
    return invalid_argument(in_quotes(str_cat(module, ".", spelled), 2 * kMaxNameBytes),
                            " is not a name that weights need; nothing of a pickle is run");
  }

  // ---- Calls that are records

  // ("storage", type, key, location, number of elements), and in the legacy form the part that is used, or None.
  Status persistent_id() {
    ASSIGN_OR_RETURN(const std::vector<PickleValue> id, stack_.pop(1));
    if (!id[0].is(PickleKind::kTuple)) return invalid_argument("expected a tuple");
    const std::span<const PickleValue> parts = stack_.items(id[0]);
    if ((parts.size() != 5 && parts.size() != 6) || parts[0].text() != "storage") {
      return invalid_argument("expected (\"storage\", type, key, location, size)");
    }
    const TorchName* type = name_of(parts[1]);
    if (type == nullptr || type->kind != TorchNameKind::kStorage) return invalid_argument("the storage has no type");
    if (!parts[2].is(PickleKind::kString) || !parts[4].is(PickleKind::kInt) || parts[4].number() < 0) {
      return invalid_argument("the storage has no key or no size");
    }
    PickledStorage storage{parts[2].text(), type->dtype, parts[4].number(), 0, parts[4].number()};
    if (parts.size() == 6 && !parts[5].is(PickleKind::kNone)) RETURN_IF_ERROR(read_part(parts[5], storage));
    if (pickle_.storages_.size() == kMaxPickleTensors) {
      return invalid_argument("more than the ", kMaxPickleTensors, " storages allowed");
    }
    pickle_.storages_.push_back(storage);
    return stack_.push(PickleValue(PickleKind::kStorage, std::ssize(pickle_.storages_) - 1));
  }

  // (key, first element, number of elements)
  Status read_part(const PickleValue& part, PickledStorage& storage) const {
    const std::span<const PickleValue> parts =
        part.is(PickleKind::kTuple) ? stack_.items(part) : std::span<const PickleValue>();
    if (parts.size() != 3 || !parts[1].is(PickleKind::kInt) || !parts[2].is(PickleKind::kInt)) {
      return invalid_argument("the part of a storage is not (key, offset, size)");
    }
    const int64_t begin = parts[1].number(), size = parts[2].number();
    if (begin < 0 || size < 0 || begin > storage.num_elements || size > storage.num_elements - begin) {
      return invalid_argument("elements [", begin, ", +", size, ") are not in a storage of ", storage.num_elements);
    }
    storage.begin = begin;
    storage.end = begin + size;
    return ok_status();
  }

  Status reduce() {
    ASSIGN_OR_RETURN(const std::vector<PickleValue> call, stack_.pop(2));
    const TorchName* function = name_of(call[0]);
    if (function == nullptr) return invalid_argument("calls a value that is no function");
    if (!call[1].is(PickleKind::kTuple)) return invalid_argument("the arguments are not a tuple");
    const std::span<const PickleValue> arguments = stack_.items(call[1]);
    switch (function->kind) {
      case TorchNameKind::kOrderedDict:
        if (!arguments.empty()) return invalid_argument("OrderedDict takes no arguments here");
        return stack_.push_container(PickleKind::kDict, 0);
      case TorchNameKind::kRebuildTensor: return tensor(arguments, 6, "");
      case TorchNameKind::kRebuildTensorV3: {
        const TorchName* dtype = arguments.size() < 7 ? nullptr : name_of(arguments[6]);
        const bool is_type = dtype != nullptr && dtype->kind == TorchNameKind::kDType;
        return is_type ? tensor(arguments, 7, dtype->dtype) : invalid_argument("the tensor has no type");
      }
      case TorchNameKind::kRebuildParameter: {
        const bool is_tensor = arguments.size() == 3 && arguments[0].is(PickleKind::kTensor);
        return is_tensor ? stack_.push(arguments[0]) : invalid_argument("expected (tensor, requires_grad, hooks)");
      }
      case TorchNameKind::kStorage:
      case TorchNameKind::kDType: break;
    }
    return invalid_argument(function->module, ".", function->name, " is not called by weights");
  }

  // (storage, offset, shape, strides, requires_grad, hooks[, dtype][, metadata]); dtype "": the storage's.
  Status tensor(std::span<const PickleValue> arguments, size_t count, std::string_view dtype) {
    if (arguments.size() != count && arguments.size() != count + 1) {
      return invalid_argument("a tensor of ", arguments.size(), " arguments, expected ", count);
    }
    if (!arguments[0].is(PickleKind::kStorage)) return invalid_argument("a tensor without a storage");
    // Conjugated or negated without being computed: another meaning of the same bytes.
    const bool has_metadata = arguments.size() > count && !arguments[count].is(PickleKind::kNone);
    if (has_metadata && (!arguments[count].is(PickleKind::kDict) || !stack_.items(arguments[count]).empty())) {
      return invalid_argument("a tensor with metadata is not read");
    }
    if (!arguments[1].is(PickleKind::kInt) || arguments[1].number() < 0) {
      return invalid_argument("a tensor's offset is no count");
    }
    PickledTensor tensor;
    tensor.storage = pickle_.storages_[arguments[0].index()];
    tensor.dtype = dtype.empty() ? tensor.storage.dtype : dtype;
    tensor.offset = arguments[1].number();
    RETURN_IF_ERROR(read_counts(arguments[2], "shape", tensor.shape));
    RETURN_IF_ERROR(read_counts(arguments[3], "strides", tensor.strides));
    if (tensor.shape.size() != tensor.strides.size()) {
      return invalid_argument("a tensor has more dimensions than strides, or less");
    }
    if (pickle_.tensors_.size() == kMaxPickleTensors) {
      return invalid_argument("more than the ", kMaxPickleTensors, " tensors allowed");
    }
    pickle_.tensors_.push_back(std::move(tensor));
    return stack_.push(PickleValue(PickleKind::kTensor, std::ssize(pickle_.tensors_) - 1));
  }

  Status read_counts(const PickleValue& list, std::string_view what, std::vector<int64_t>& out) const {
    if (!list.is(PickleKind::kTuple)) return invalid_argument("a tensor's ", what, " are no tuple");
    if (stack_.items(list).size() > kMaxPickleRank) {
      return invalid_argument("over the ", kMaxPickleRank, " dimensions allowed");
    }
    for (const PickleValue& value : stack_.items(list)) {
      if (!value.is(PickleKind::kInt) || value.number() < 0) {
        return invalid_argument("a tensor's ", what, " are not all 0 or more");
      }
      out.push_back(value.number());
    }
    return ok_status();
  }

  // A state dict's attribute (_metadata), which says nothing about its tensors.
  Status build() {
    ASSIGN_OR_RETURN(const std::vector<PickleValue> state, stack_.pop(1));
    const bool is_dict = stack_.num_free() > 0 && stack_.top().is(PickleKind::kDict);
    if (is_dict && state[0].is(PickleKind::kDict)) return ok_status();
    return invalid_argument("sets the state of what is no OrderedDict");
  }

  PickleBytes bytes_;
  bool has_stopped_ = false;
  PickleStack stack_;
  TorchPickle pickle_;
};

StatusOr<TorchPickle> TorchPickle::parse(std::span<const std::byte> bytes) { return PickleParser(bytes).parse(); }

const PickleValue* TorchPickle::find(const PickleValue& dict, std::string_view key) const {
  if (!dict.is(PickleKind::kDict)) return nullptr;
  const std::span<const PickleValue> list = items(dict);
  for (size_t i = list.size(); i >= 2; i -= 2) {
    if (list[i - 2].is(PickleKind::kString) && list[i - 2].text() == key) return &list[i - 1];
  }
  return nullptr;
}

}  // namespace transept
