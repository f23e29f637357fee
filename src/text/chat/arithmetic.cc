// Arithmetic of values.
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "text/chat/text_format.h"
#include "text/chat/value_ops.h"

namespace transept::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

Status unsupported_operands(BinaryOp op, const Value& a, const Value& b) {
  for (const Value& value : {a, b}) {
    if (value.is(Kind::kUndefined) && value.text != nullptr) return invalid_argument(value.text->view);
    if (value.is(Kind::kBigInt)) return unimplemented("arithmetic beyond 64 bits is not supported");
  }
  return invalid_argument("unsupported operand types for ", kSymbols[static_cast<size_t>(op)], ": ", type_name(a),
                          " and ", type_name(b));
}

Status too_large() { return unimplemented("arithmetic beyond 64 bits is not supported"); }
Status division_by_zero() { return invalid_argument("division by zero"); }

StatusOr<Value> of_checked(const std::optional<int64_t>& result) {
  if (!result.has_value()) return too_large();
  return integer(*result);
}

StatusOr<Value> power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    return floating(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0 && result != 0 && (base != 1 || result != 1); --exponent) {
    const std::optional<int64_t> product = checked_mul(result, base);
    if (!product.has_value()) return too_large();
    result = *product;
    if (base == -1) return integer(exponent % 2 == 0 ? 1 : -1);
  }
  return integer(result);
}

StatusOr<Value> binary_integers(BinaryOp op, int64_t a, int64_t b) {
  constexpr int64_t kExact = int64_t{1} << 53;
  int64_t result = 0;
  switch (op) {
    case BinaryOp::kAdd: return of_checked(checked_add(a, b));
    case BinaryOp::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? StatusOr<Value>(too_large()) : integer(result);
    case BinaryOp::kMultiply: return of_checked(checked_mul(a, b));
    case BinaryOp::kPower: return power(a, b);
    case BinaryOp::kDivide:
      if (b == 0) return division_by_zero();
      if (a > kExact || a < -kExact || b > kExact || b < -kExact) return too_large();
      return floating(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDivide:
    case BinaryOp::kModulo: break;
  }
  if (b == 0) return division_by_zero();
  if (b == -1) return op == BinaryOp::kModulo ? integer(0) : negative(integer(a));
  const int64_t remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == BinaryOp::kModulo) return integer(adjust ? remainder + b : remainder);
  return integer(a / b - (adjust ? 1 : 0));
}

// As float_divmod of CPython (Objects/floatobject.c).
StatusOr<Value> floor_divide(double a, double b, bool remainder) {
  if (b == 0) return division_by_zero();
  double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      quotient -= 1;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  if (remainder) return floating(mod);
  if (quotient == 0) return floating(std::copysign(0.0, a / b));
  const double floor = std::floor(quotient);
  return floating(quotient - floor > 0.5 ? floor + 1 : floor);
}

StatusOr<Value> binary_doubles(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return floating(a + b);
    case BinaryOp::kSubtract: return floating(a - b);
    case BinaryOp::kMultiply: return floating(a * b);
    case BinaryOp::kDivide: return b == 0 ? StatusOr<Value>(division_by_zero()) : floating(a / b);
    case BinaryOp::kFloorDivide: return floor_divide(a, b, /*remainder=*/false);
    case BinaryOp::kModulo: return floor_divide(a, b, /*remainder=*/true);
    case BinaryOp::kPower: break;
  }
  if (a == 0 && b < 0) return division_by_zero();
  if (a < 0 && std::isfinite(b) && std::isfinite(a) && b != std::floor(b)) {
    return unimplemented("complex numbers are not supported");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) return invalid_argument("the result is too large");
  return floating(result);
}

double as_double(const Value& value) {
  return value.is(Kind::kFloat) ? value.number : static_cast<double>(value.integer);
}

StatusOr<Value> repeat(Heap& heap, const Value& sequence, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (sequence.is(Kind::kText)) {
    const std::string_view text = sequence.text->view;
    const std::optional<int64_t> size = checked_mul(times, static_cast<int64_t>(text.size()));
    RETURN_IF_ERROR(heap.charge(size.has_value() ? 1 + *size / 64 : kMaxSteps + 1));
    std::string out;
    out.reserve(static_cast<size_t>(*size));
    for (int64_t i = 0; i < times && !text.empty(); ++i) out += text;
    return heap.text(std::move(out));
  }
  const std::vector<Value>& items = sequence.list->items;
  const std::optional<int64_t> size = checked_mul(times, static_cast<int64_t>(items.size()));
  RETURN_IF_ERROR(heap.charge(size.value_or(kMaxSteps + 1)));
  std::vector<Value> out;
  for (int64_t i = 0; i < times && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return sequence.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

StatusOr<Value> concatenate(Heap& heap, const Value& a, const Value& b) {
  if (a.is(Kind::kText)) {
    RETURN_IF_ERROR(heap.charge_bytes(a.text->view.size() + b.text->view.size()));
    return heap.text(str_cat(a.text->view, b.text->view));
  }
  RETURN_IF_ERROR(heap.charge(static_cast<int64_t>(a.list->items.size() + b.list->items.size())));
  std::vector<Value> items = a.list->items;
  items.insert(items.end(), b.list->items.begin(), b.list->items.end());
  return a.is(Kind::kList) ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

bool is_safe(const Value& value) { return value.is(Kind::kText) && value.text->safe; }
bool repeats(const Value& value) { return value.is(Kind::kText) || value.is_sequence(); }

}  // namespace

StatusOr<Value> binary(Heap& heap, BinaryOp op, const Value& a, const Value& b) {
  if (is_safe(a) || is_safe(b)) {
    return unimplemented(kSymbols[static_cast<size_t>(op)], " on a text that `safe` made is not supported");
  }
  if (a.is_integral() && b.is_integral()) return binary_integers(op, a.integer, b.integer);
  if ((a.is_integral() || a.is(Kind::kFloat)) && (b.is_integral() || b.is(Kind::kFloat))) {
    return binary_doubles(op, as_double(a), as_double(b));
  }
  if (op == BinaryOp::kAdd && a.kind == b.kind && repeats(a)) return concatenate(heap, a, b);
  if (op == BinaryOp::kMultiply && repeats(a) && b.is_integral()) return repeat(heap, a, b.integer);
  if (op == BinaryOp::kMultiply && repeats(b) && a.is_integral()) return repeat(heap, b, a.integer);
  if (op == BinaryOp::kModulo && a.is(Kind::kText)) return format_percent(heap, *a.text, b);
  return unsupported_operands(op, a, b);
}

StatusOr<Value> negative(const Value& value) {
  if (value.is(Kind::kFloat)) return floating(-value.number);
  if (!value.is_integral()) return unsupported_operands(BinaryOp::kSubtract, value, value);
  int64_t result = 0;
  if (__builtin_sub_overflow(int64_t{0}, value.integer, &result)) return too_large();
  return integer(result);
}

StatusOr<Value> positive(const Value& value) {
  if (value.is(Kind::kFloat)) return value;
  if (!value.is_integral()) return unsupported_operands(BinaryOp::kAdd, value, value);
  return integer(value.integer);
}

}  // namespace transept::jinja
