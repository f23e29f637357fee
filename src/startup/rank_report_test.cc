#include "startup/rank_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace transept {
namespace {

TEST(RankReport, NamesTheNodesThatHaveTheProcessors) {
  const testing::TestFolder folder;
  const auto add = [&](const std::string& node, const std::string& cpus) {
    std::filesystem::create_directory(folder.path() + "/" + node);
    std::ofstream(folder.path() + "/" + node + "/cpulist") << cpus << "\n";
  };
  add("node0", "0-3,8");
  add("node1", "4-7");
  add("node2", "");  // memory alone
  add("node10", "9");
  add("nodelist", "0");
  const auto nodes = [&](std::vector<int> cpus) { return numa_nodes(cpus, folder.path()); };
  EXPECT_EQ(nodes({0}), "0");
  EXPECT_EQ(nodes({4, 5}), "1");
  EXPECT_EQ(nodes({8, 7, 9}), "0-1,10");
  EXPECT_EQ(nodes({12}), "");
  EXPECT_EQ(numa_nodes(std::vector{0}, folder.path() + "/none"), "");
}

TEST(RankReport, IsALineOfTheLog) {
  RankReport report{.pid = 77, .num_threads = 1, .num_blocks = 5, .seconds = 0.5};
  report.host.fill('h');  // no end
  report.cpus[0] = '3';
  const std::string text = report.text(2);
  EXPECT_TRUE(text.starts_with("rank 2: host " + std::string(64, 'h') + ", pid 77, processors 3, 1 thread, ")) << text;
  report.nodes[0] = '1';
  EXPECT_NE(report.text(2).find(", node 1, processors 3"), std::string::npos);
  report.num_threads_alone = 2;
  EXPECT_NE(report.text(2).find(", 1 thread (2 for a step alone), "), std::string::npos) << report.text(2);
}

}  // namespace
}  // namespace transept
