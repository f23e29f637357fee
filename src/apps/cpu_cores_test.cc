// Processors are grouped by the core that the system says they are of.
#include "apps/cpu_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using testing::TestFolder;

void add_cpu(const TestFolder& folder, int cpu, const std::string& siblings) {
  const std::string topology = "cpu" + std::to_string(cpu) + "/topology";
  std::filesystem::create_directories(folder.path() + "/" + topology);
  folder.write(topology + "/thread_siblings_list", siblings);
}

TEST(GroupByCore, SiblingsAreOneCore) {
  const TestFolder folder;
  for (int cpu = 0; cpu < 6; ++cpu) {
    add_cpu(folder, cpu, std::to_string(cpu % 3) + "," + std::to_string(cpu % 3 + 3) + "\n");
  }
  const auto grouped = [&](std::vector<int> cpus) { return group_by_core(cpus, folder.path()); };
  EXPECT_THAT(grouped({0, 1, 2, 3, 4, 5}), ElementsAre(ElementsAre(0, 3), ElementsAre(1, 4), ElementsAre(2, 5)));
  EXPECT_THAT(grouped({5, 0, 2}), ElementsAre(ElementsAre(5, 2), ElementsAre(0)));
  EXPECT_THAT(grouped({}), ElementsAre());
}

TEST(GroupByCore, WithoutATopologyEachIsACore) {
  const TestFolder folder;
  add_cpu(folder, 1, "what is no list");
  const std::vector<int> cpus = {1, 0};
  EXPECT_THAT(group_by_core(cpus, folder.path()), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

}  // namespace
}  // namespace transept
