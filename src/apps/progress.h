// A progress line on a terminal; silent elsewhere. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace transept {

class Progress final {
 public:
  explicit Progress(std::string_view what);
  ~Progress() { clear(); }

  bool is_terminal() const { return is_terminal_; }
  // Whether update() and draw() would draw now.
  bool is_due() const;
  // Redraws at most ten times a second. `total` < 0: unknown (a pipe). `rate` e.g. "1234 tokens/s".
  void update(int64_t done, int64_t total, std::string_view rate);
  // A bar of this share of its length, and a text of any kind.
  void draw(double share, std::string_view text);
  // Removes the line, so that something else can be written.
  void clear();

 private:
  void write_line(std::string_view line);

  std::string what_;
  bool is_terminal_;
  bool is_drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace transept
