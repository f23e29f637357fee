#include "startup/loaded_model.h"

#include <utility>

namespace transept {

std::vector<std::unique_ptr<LLMEngine>> LoadedModel::take_engines() {
  std::vector<std::unique_ptr<LLMEngine>> engines = std::move(more_engines);
  engines.insert(engines.begin(), std::move(engine));
  more_engines.clear();
  return engines;
}

void LoadedModel::give_back(std::vector<std::unique_ptr<LLMEngine>> engines) {
  engine = std::move(engines.front());
  engines.erase(engines.begin());
  more_engines = std::move(engines);
}

}  // namespace transept
