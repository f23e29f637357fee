// The values of a template: Python's None, bool, int, float, str, list, tuple, dict and a few objects. A Value is a
// small copyable handle; a Heap owns what handles point to, until the render (or, for constants, the template) ends, so
// that closures and namespaces may refer to one another. Values of Python that change are namespaces and loops alone:
// the sandbox forbids changes of lists and dicts.
//
// A Heap also counts steps: one for each node that is evaluated and each item that is visited, and one for each 64
// bytes that are made. kMaxSteps of them bound the time and the memory of a render, to about 200 MB at worst.
//
// A Heap is used by one thread; values of a heap that no longer changes may be read by all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept::jinja {

inline constexpr int64_t kMaxSteps = 1'000'000;
// Of values in values: more is an error, where Python has RecursionError at about 1000.
inline constexpr int kMaxValueDepth = 200;

enum class Kind : uint8_t {
  kMissing,  // no value: a name that is not set, an argument that is not given
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  // outside of int64: prints and compares, no more
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kNamespace,
  kIterator,
  kLoop,
  kMacro,
  kFunction,
  kMethod,
};

struct Text;
struct List;
struct Dict;
struct DictView;
struct Range;
struct Iterator;
struct Loop;
struct Macro;
struct Method;
enum class Function : int64_t;

struct Value {
  Kind kind = Kind::kMissing;
  union {
    int64_t integer = 0;  // kBool, kInt
    double number;        // kFloat
    const Text* text;     // kText; kBigInt: its digits; kUndefined: why, or null
    const List* list;     // kList, kTuple
    Dict* dict;           // kDict, which does not change, and kNamespace
    const DictView* view;
    const Range* range;
    Iterator* iterator;
    Loop* loop;
    const Macro* macro;
    Function function;
    const Method* method;
  };

  bool is(Kind k) const { return kind == k; }
  bool missing() const { return kind == Kind::kMissing; }
  bool is_integral() const { return kind == Kind::kInt || kind == Kind::kBool; }  // bool is an int in Python
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
};

// Of one of the kinds that hold a pointer: point_to(Kind::kText, &Value::text, text).
template <typename T>
Value point_to(Kind kind, T Value::*member, T target) {
  Value value;
  value.kind = kind;
  value.*member = target;
  return value;
}

Value none();
Value undefined();
Value boolean(bool value);
Value integer(int64_t value);
Value floating(double value);
Value function(Function id);

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
};

struct Text final : Object {
  std::string own;        // empty if `view` is of bytes that another owns
  std::string_view view;  // valid UTF-8
  size_t num_chars = 0;   // code points
  bool safe = false;      // what the filter `safe` made (Markup): some operations on it are refused
};

struct List final : Object {
  std::vector<Value> items;
};

struct Dict final : Object {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion, keys unequal
};

struct DictView final : Object {
  enum class Part : uint8_t { kKeys, kValues, kItems };
  const Dict* dict = nullptr;
  Part part = Part::kKeys;
};

struct Range final : Object {
  int64_t start = 0, stop = 0, step = 1, length = 0;
};

class Heap final {
 public:
  explicit Heap(int64_t steps) : steps_(steps) {}

  // kResourceExhausted once more than the steps are spent.
  Status charge(int64_t steps = 1) {
    steps_ -= steps;
    return steps_ >= 0 ? Status() : exhausted();
  }
  Status charge_bytes(size_t bytes) { return charge(1 + static_cast<int64_t>(bytes / 64)); }

  // Levels of what runs within one another: of generators that visit generators.
  static constexpr int kMaxNesting = 100;
  int& nesting() { return nesting_; }

  template <typename T>
  T& make() {
    steps_ -= 1;
    auto owned = std::make_unique<T>();
    T& object = *owned;
    objects_.push_back(std::move(owned));
    return object;
  }
  template <typename T>
  T& adopt(std::unique_ptr<T> owned) {
    steps_ -= 1;
    T& object = *owned;
    objects_.push_back(std::move(owned));
    return object;
  }

  // REQUIRES: valid UTF-8. These spend steps, and a later charge() says if there were too many: what makes more than a
  // few times its input charges first.
  Value text(std::string value, bool safe = false);
  // The bytes must outlive the heap.
  Value borrowed_text(std::string_view value, bool safe = false);
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value dict(std::vector<std::pair<Value, Value>> items);  // REQUIRES: keys unequal
  Value undefined_because(std::string reason);

 private:
  Status exhausted() const;

  int64_t steps_;
  int nesting_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// A text that grows within the steps of a heap, and within `max_bytes`.
class TextBuilder final {
 public:
  explicit TextBuilder(Heap& heap, size_t max_bytes = SIZE_MAX) : heap_(&heap), max_bytes_(max_bytes) {}

  Heap& heap() { return *heap_; }
  Status append(std::string_view part);
  std::string take() { return std::move(out_); }

 private:
  Heap* heap_;
  size_t max_bytes_;
  std::string out_;
};

// Returns the value of a document. Borrows its texts, which must outlive the heap. Errors: kInvalidArgument: more than
// kMaxValueDepth levels.
StatusOr<Value> from_json(Heap& heap, const Json& json, int depth = 0);

// "str", "list", "Undefined": as Python names the type.
std::string_view type_name(const Value& value);

}  // namespace transept::jinja
