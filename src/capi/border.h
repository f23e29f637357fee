// The border between C and C++: statuses and exceptions become codes and error objects, structs of other versions
// become ours, and texts and arrays are checked. No function of transept.h does any of these by itself. Pure functions:
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "capi/transept.h"

namespace transept {

// Returns the error of a call whose handle is older than a fork: its code at the border is TRANSEPT_FORKED.
Status forked_error(std::string_view message);

transept_code code_of(const Status& status);

// Returns the code, and gives the caller an object, if it wants one, unless `status` is ok.
transept_code report(const Status& status, transept_error** error) noexcept;
transept_code report_out_of_memory(transept_error** error) noexcept;

// Runs the body of a function of transept.h, which returns a Status, and stops its exceptions.
template <typename Body>
transept_code at_border(transept_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    return report(std::forward<Body>(body)(), error);
  } catch (const std::bad_alloc&) {
    return report_out_of_memory(error);
  } catch (const std::exception& exception) {
    return report(absl::InternalError(exception.what()), error);
  } catch (...) {
    return report(absl::InternalError("an exception of an unknown type"), error);
  }
}

// ---- Arguments. Errors are kInvalidArgument with the argument's name as param.

Status require(const void* pointer, std::string_view name);

// Returns the bytes; an absent text is empty. Errors: a size without data.
StatusOr<std::string_view> read_text(const transept_text& text, std::string_view name);

// Errors: a number without data, or above INT32_MAX.
template <typename T>
StatusOr<std::span<const T>> read_array(const T* data, size_t size, std::string_view name) {
  if (data == nullptr && size > 0) return field_error(name, str_cat(name, " is NULL, and its number is ", size));
  if (size > INT32_MAX) return field_error(name, str_cat(name, ": their number is ", size, ", above 2147483647"));
  return std::span<const T>(data, size);
}

Status check_struct_size(size_t struct_size, size_t first_size, std::string_view name);
// Errors (kUnimplemented): one of these bytes, which belong to members that this library does not know, is not zero.
Status check_unknown_members(std::span<const char> bytes, std::string_view name);

// Returns the caller's struct as this library knows it: members that the caller does not know are zero. `first_size`:
// its size in the first version that had it. Errors: NULL; a struct_size below that, or absurd; a member that this
// library does not know and that is set (kUnimplemented).
template <typename T>
StatusOr<T> read_struct(const T* given, size_t first_size, std::string_view name) {
  RETURN_IF_ERROR(require(given, name));
  const size_t size = given->struct_size;
  RETURN_IF_ERROR(check_struct_size(size, first_size, name));
  const char* bytes = reinterpret_cast<const char*>(given);
  if (size > sizeof(T)) RETURN_IF_ERROR(check_unknown_members({bytes + sizeof(T), size - sizeof(T)}, name));
  T known{};
  std::memcpy(&known, bytes, std::min(size, sizeof(T)));
  return known;
}

// Writes `value` as far as the caller's struct_size reaches; members that this library does not know become zero.
// Errors: as read_struct, but for members that are set.
template <typename T>
Status write_struct(T value, size_t first_size, T* given, std::string_view name) {
  RETURN_IF_ERROR(require(given, name));
  const size_t size = given->struct_size;
  RETURN_IF_ERROR(check_struct_size(size, first_size, name));
  value.struct_size = size;
  char* bytes = reinterpret_cast<char*>(given);
  std::memcpy(bytes, &value, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(bytes + sizeof(T), 0, size - sizeof(T));
  return ok_status();
}

// ---- Results

inline transept_text as_text(std::string_view text) { return {text.data(), text.size()}; }  // ends with a zero byte

// Returns a copy for transept_free, with a zero byte behind it. Throws std::bad_alloc.
char* copy_text(std::string_view text);
int32_t* copy_ids(std::span<const int32_t> ids);
float* copy_samples(std::span<const float> samples);

}  // namespace transept
