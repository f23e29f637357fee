// The form of CTranslate2's model.bin, versions 3 to 6: the name of a spec, variables by name, and other names of them.
// The bytes are untrusted: everything is checked before it is used. A value; views live as long as the bytes.
// Source: CTranslate2 4.8.5, specs/model_spec.py, _serialize; src/models/model.cc, ModelLoader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class Ct2File final {
 public:
  struct Variable {
    std::string_view name;       // its own, not an alias
    std::vector<int64_t> shape;  // {}: a scalar
    std::string_view dtype;      // as safetensors spells it: F32, I8, I16, I32, F16, BF16
    std::span<const std::byte> data;

    bool is_scalar() const { return shape.empty(); }
  };

  // Errors begin with `file` and name the field or variable and the reason: another version; a file that ends early or
  // goes on behind its end; a name that is empty or over 4096 bytes; over 100,000 variables or aliases; a variable of
  // another type, over 4 dimensions, a size of 0, or whose bytes are not those of its shape; a name that is there
  // twice; an alias of nothing, or of itself by whatever way.
  static StatusOr<Ct2File> parse(std::span<const std::byte> bytes, std::string_view file);

  const std::string& file() const { return file_; }
  uint32_t version() const { return version_; }
  std::string_view spec() const { return spec_; }  // "TransformerSpec"
  uint32_t revision() const { return revision_; }
  // By name, without aliases.
  const std::map<std::string_view, Variable>& variables() const { return variables_; }

  // The variable of this name or alias; null: there is none.
  const Variable* find(std::string_view name) const;
  // A scalar of any type as a number; nullopt: there is no such variable, or it is no scalar.
  std::optional<double> scalar(std::string_view name) const;
  // kInvalidArgument "FILE: variable "NAME": REASON".
  Status error(std::string_view name, std::string_view reason) const;

 private:
  class Parser;

  std::string file_;
  uint32_t version_ = 0, revision_ = 0;
  std::string_view spec_;
  std::map<std::string_view, Variable> variables_;
  std::map<std::string_view, std::string_view> aliases_;  // to variables' own names
};

// The spec of which a file says it is at its beginning, whatever its version; nullopt: it is none of CTranslate2.
std::optional<std::string_view> ct2_spec(std::span<const std::byte> beginning);

}  // namespace transept
