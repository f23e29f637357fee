// Suites that run "every family" run every checkpoint of tests/models: each family must have one there.
#include "models/families.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/json.h"
#include "models/checkpoints_testing.h"

namespace transept {
namespace {

TEST(Families, EachHasACheckpoint) {
  std::set<std::string> names;
  for (const std::string& folder : testing::checkpoints()) {
    std::ifstream file(testing::checkpoint_path(folder + "/config.json"));
    const StatusOr<Json> config = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    ASSERT_TRUE(config.ok()) << folder;
    if (const Json* type = config->find("model_type"); type != nullptr) names.insert(type->as_string());
    const Json* architectures = config->find("architectures");
    if (architectures == nullptr) continue;
    for (const Json& architecture : architectures->as_array()) names.insert(architecture.as_string());
  }
#define TRANSEPT_EXPECT_CHECKPOINT(loader, model_type, architecture, kind) \
  EXPECT_TRUE(names.contains(model_type) || names.contains(architecture)) << (model_type);
  TRANSEPT_FAMILIES(TRANSEPT_EXPECT_CHECKPOINT)
#undef TRANSEPT_EXPECT_CHECKPOINT
}

}  // namespace
}  // namespace transept
