// For tests: a variable of the environment that is set for as long as the object lives, and then as it was. Not
// thread-safe, as the environment is not.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace transept::testing {

class ScopedVariable final {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() { before_.has_value() ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str()); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

}  // namespace transept::testing
