// One step of a normalizer (normalizer.h). Immutable, so thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/unicode/search_budget.h"

namespace transept {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // REQUIRES and errors: as Normalizer::apply.
  virtual StatusOr<std::string> apply(std::string text, SearchBudget& budget) const = 0;
  // Whether the step removes the first character of `text` and puts nothing in its place.
  virtual bool drops_front(std::string_view /*text*/) const { return false; }
};

}  // namespace transept
