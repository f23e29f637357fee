// Writes shortlist files for tests: valid ones from lists, with any number of the header replaced. Header-only, so that
// tests of other folders may use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "weights/shortlist.h"

namespace transept::testing {

struct TestShortlist {
  uint64_t magic = 0xF11A48D5013417F5;
  uint64_t first = 0, best = 0;
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> words;

  // lists[i]: of source id i.
  static TestShortlist of(uint64_t first, const std::vector<std::vector<uint32_t>>& lists) {
    TestShortlist out;
    out.first = first;
    out.offsets.push_back(0);
    for (const std::vector<uint32_t>& list : lists) {
      out.words.insert(out.words.end(), list.begin(), list.end());
      out.offsets.push_back(out.words.size());
      out.best = std::max<uint64_t>(out.best, list.size());
    }
    return out;
  }

  std::string bytes() const {
    std::string behind;
    for (const uint64_t value : {first, best, uint64_t{offsets.size()}, uint64_t{words.size()}}) append(value, behind);
    for (const uint64_t offset : offsets) append(offset, behind);
    for (const uint32_t word : words) append(word, behind);
    std::string file;
    append(magic, file);
    append(shortlist_checksum(std::as_bytes(std::span(behind))), file);
    return file + behind;
  }

 private:
  template <typename T>
  static void append(T value, std::string& out) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.append(raw, sizeof value);
  }
};

}  // namespace transept::testing
