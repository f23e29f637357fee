// One of the things that a normalizer (normalizer.h) does to a text. Immutable, so thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/search_budget.h"

namespace transept {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  virtual StatusOr<std::string> apply(std::string text, SearchBudget& budget) const = 0;
  // Whether the step takes the text's first character away and puts nothing in its place.
  virtual bool drops_front(std::string_view /*text*/) const { return false; }
};

}  // namespace transept
