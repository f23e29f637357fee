#include "text/subword/token_decoder.h"

#include <algorithm>

namespace transept {

bool EarlierTokens::none() const {
  return std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return spelling(id).empty(); });
}

std::string_view EarlierTokens::last() const {
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    if (const std::string_view token = spelling(*id); !token.empty()) return token;
  }
  return {};
}

}  // namespace transept
