// Archives of numpy's arrays (.npz): a zip of .npy files, stored and not compressed, each a header and the elements.
// The bytes are untrusted: everything is checked before it is used, and nothing of a file is run: arrays of objects,
// which are pickles, are refused. A pure function, and a value: thread-safe. Views live as long as the bytes.
// Source: numpy/lib/format.py (versions 1 to 3); marian-dev 1.12, 3rd_party/cnpy/cnpy.h, which writes Marian's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class NpzFile final {
 public:
  struct Array {
    std::string_view dtype;      // as safetensors spells it: F32, F16, F64, BOOL, I8 to I64, U8 to U64
    std::vector<int64_t> shape;  // {}: one number
    std::span<const std::byte> data;
  };

  // Errors begin with `file` and name the array and the reason: those of read_zip_directory(); an entry that is no
  // .npy; over 100,000 entries; another version; a header that is no dict of descr, fortran_order and shape, each once;
  // an array of objects, of structs, in big-endian or Fortran's order, of another type or over 8 dimensions; a size of
  // 0; bytes that are not those of the shape.
  static StatusOr<NpzFile> parse(std::span<const std::byte> bytes, std::string_view file);

  const std::string& file() const { return file_; }
  // By name, without ".npy".
  const std::map<std::string_view, Array>& arrays() const { return arrays_; }
  const Array* find(std::string_view name) const;  // null: there is none
  // kInvalidArgument "FILE: array "NAME": REASON".
  Status error(std::string_view name, std::string_view reason) const;

 private:
  std::string file_;
  std::map<std::string_view, Array> arrays_;
};

// Whether the bytes begin as such an archive does: with an entry that is a .npy.
bool begins_as_npz_file(std::span<const std::byte> bytes);

}  // namespace transept
