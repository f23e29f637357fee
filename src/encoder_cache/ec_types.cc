#include "encoder_cache/ec_types.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/quoted.h"

namespace transept {
namespace {

// Time left is added to a clock's time, which must not overflow.
constexpr std::chrono::hours kMaxTimeLeft{24 * 366};

constexpr std::string_view kNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";

// Rows of more bytes than that do not lie in any memory. Nullopt: more.
std::optional<int64_t> payload_bytes(const EcMeta& meta) {
  const auto elements = checked_mul<int64_t>(meta.num_positions, meta.width);
  return elements ? checked_mul<int64_t>(*elements, static_cast<int64_t>(dtype_bytes(meta.dtype))) : std::nullopt;
}

Status check_grid(const std::array<int32_t, 3>& grid) {
  const auto is_negative = [](int32_t side) { return side < 0; };
  if (std::ranges::any_of(grid, is_negative)) return field_error("grid", "has a negative side");
  const auto num_zeros = std::ranges::count(grid, 0);
  if (num_zeros != 0 && num_zeros != 3) return field_error("grid", "has sides that are 0 and sides that are not");
  const auto area = checked_mul(grid[1], grid[2]);
  if (!area || !checked_mul(grid[0], *area)) return field_error("grid", "has more patches than an int32 counts");
  return ok_status();
}

Status check_place(const PlaceholderRange& place, int32_t num_positions) {
  if (place.offset < 0) return field_error("offset", str_cat(place.offset, " is negative"));
  if (place.length < 0 || place.length > num_positions) {
    return field_error("length", str_cat(place.length, " is not in 0 to num_positions, which is ", num_positions));
  }
  if (!checked_add(place.offset, place.length)) {
    return field_error("length", str_cat(place.length, " rows from ", place.offset, " on end after 2147483647"));
  }
  return check_grid(place.grid);
}

}  // namespace

Status check_ec_name(std::string_view what, std::string_view name) {
  if (name.empty()) return field_error(what, "is empty");
  if (name.size() > kMaxEcNameBytes) {
    return field_error(what, str_cat("has ", name.size(), " bytes; at most ", kMaxEcNameBytes, " are allowed"));
  }
  if (name.find_first_not_of(kNameChars) != std::string_view::npos) {
    return field_error(what, str_cat(in_quotes(name), " has characters other than [A-Za-z0-9._:-]"));
  }
  return ok_status();
}

Status check_trace(const TraceContext& trace) {
  const auto check = [](std::string_view what, std::string_view text, std::string_view more) {
    if (text.size() > TraceContext::kMaxBytes) {
      return field_error(what,
                         str_cat("has ", text.size(), " bytes; at most ", TraceContext::kMaxBytes, " are allowed"));
    }
    const bool is_fit = std::ranges::all_of(text, [&](char c) {
      return kNameChars.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
    });
    return is_fit ? ok_status() : field_error(what, str_cat(in_quotes(text), " has characters that it may not have"));
  };
  RETURN_IF_ERROR(check("trace.request_id", trace.request_id, "/"));
  return check("trace.traceparent", trace.traceparent, "");
}

Status check_ec_meta(const EcMeta& meta) {
  RETURN_IF_ERROR(check_ec_name("request_id", meta.key.request_id));
  if (meta.num_positions <= 0) return field_error("num_positions", str_cat(meta.num_positions, " is not positive"));
  if (meta.width <= 0) return field_error("width", str_cat(meta.width, " is not positive"));
  if (meta.dtype != DType::kFloat32 && meta.dtype != DType::kBFloat16) {
    const std::string_view type = dtype_name(meta.dtype);
    return field_error("dtype", str_cat(type.empty() ? "unknown" : type, " does not travel; float32 and bfloat16 do"));
  }
  if (!payload_bytes(meta)) {
    return field_error("num_positions", str_cat(meta.num_positions, " rows of ", meta.width, " ",
                                                dtype_name(meta.dtype), " are more than 9e18 bytes"));
  }
  RETURN_IF_ERROR(check_place(meta.place, meta.num_positions));
  if (meta.time_left < Duration::zero() || meta.time_left > kMaxTimeLeft) {
    return field_error("time_left", str_cat(seconds(meta.time_left), " s is not in 0 to 366 days"));
  }
  return ok_status();
}

uint64_t ec_payload_bytes(const EcMeta& meta) {
  const auto bytes = payload_bytes(meta);
  CHECK(bytes.has_value() && *bytes >= 0, "ec_payload_bytes() of metadata that was not checked");
  return static_cast<uint64_t>(*bytes);
}

std::string_view name(EcVerdict verdict) {
  switch (verdict) {
    case EcVerdict::kAllocated: return "allocated";
    case EcVerdict::kHit: return "hit";
    case EcVerdict::kWait: return "wait";
    case EcVerdict::kNever: return "never";
    case EcVerdict::kIncompatible: return "incompatible";
    case EcVerdict::kBusy: return "busy";
    case EcVerdict::kGone: return "gone";
  }
  return "";
}

}  // namespace transept
