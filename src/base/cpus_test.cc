// Lists of processors are read and written as taskset does, cores come before their second threads, and a pool's
// threads run where they are told to.
#include "base/cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <set>
#include <thread>

#include "base/folder_testing.h"
#include "base/mutex.h"
#include "base/thread_pool.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;

std::vector<int> parsed(std::string_view text) {
  StatusOr<std::vector<int>> cpus = parse_cpu_list(text);
  EXPECT_TRUE(cpus.ok()) << text << ": " << cpus.status();
  return cpus.ok() ? std::move(cpus).value() : std::vector<int>{};
}

TEST(CpuList, IsReadInTheOrderGiven) {
  EXPECT_THAT(parsed("0"), ElementsAre(0));
  EXPECT_THAT(parsed("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parsed("5,2-3"), ElementsAre(5, 2, 3));
  EXPECT_THAT(parsed("7-7"), ElementsAre(7));
  EXPECT_THAT(parsed("4095"), ElementsAre(4095));
}

TEST(CpuList, WhatIsNoneIsRefused) {
  for (const char* text : {"", ",", "1,", "-1", "1-", "a", "1-b", "1 ,2", "0x1", "+1", "1.5", "1--2"}) {
    const Status status = parse_cpu_list(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(error_message(status), HasSubstr("is no processor")) << text;
  }
  EXPECT_THAT(error_message(parse_cpu_list("3-1").status()), HasSubstr("ends before it begins"));
  EXPECT_THAT(error_message(parse_cpu_list("0-2,1").status()), HasSubstr("processor 1 is named twice"));
  // A range of all numbers that there are is not even begun.
  for (const char* text : {"4096", "0-4096", "0-99999999999999999999"}) {
    EXPECT_THAT(error_message(parse_cpu_list(text).status()), HasSubstr("4095")) << text;
  }
}

TEST(CpuList, IsWrittenInRanges) {
  EXPECT_EQ(format_cpu_list({}), "");
  for (const char* text : {"0", "0-3,8", "1-2,4-5", "3,5,7"}) EXPECT_EQ(format_cpu_list(parsed(text)), text);
}

void write_cpu(const TestFolder& folder, int cpu, int package, int core) {
  const std::string name = str_cat("cpu", cpu, "/topology");
  std::filesystem::create_directories(folder.path() + "/" + name);
  folder.write(name + "/core_id", str_cat(core, "\n"));
  folder.write(name + "/physical_package_id", str_cat(package, "\n"));
}

TEST(SpreadOverCores, SecondThreadsOfACoreComeLast) {
  const TestFolder folder;
  // Two packages of two cores, the threads of a core side by side.
  for (int cpu = 0; cpu < 8; ++cpu) write_cpu(folder, cpu, cpu / 4, cpu / 2 % 2);
  EXPECT_THAT(spread_over_cores(parsed("0-7"), folder.path()), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(spread_over_cores(parsed("1,4-5"), folder.path()), ElementsAre(1, 4, 5));
  EXPECT_THAT(spread_over_cores(parsed("7-9"), folder.path()), ElementsAre(7, 8, 9)) << "8 is not described";
}

TEST(ThreadPoolCpus, ThreadsRunWhereTheyAreTold) {
  const std::vector<int> available = available_cpus();
  ASSERT_FALSE(available.empty());
  const int cpu = available.back();
  ThreadPool pool(3, {cpu, cpu, cpu});
  Mutex mutex;
  std::set<int> seen;
  std::set<std::vector<int>> allowed;
  std::thread caller([&] {  // a thread of its own: the test's stays free
    pool.pin_caller();
    pool.parallel_for(64, [&](int64_t, int) {
      const MutexLock lock(mutex);
      seen.insert(sched_getcpu());
      allowed.insert(available_cpus());
    });
  });
  caller.join();
  EXPECT_THAT(seen, ElementsAre(cpu));
  EXPECT_THAT(allowed, ElementsAre(ElementsAre(cpu)));
  EXPECT_EQ(available_cpus(), available) << "the pool's maker was pinned";
}

TEST(AvoidedCpu, KeepsTheThreadOffOneProcessorAndRestoresWhatItFound) {
  std::thread([] {
    const std::vector<int> before = available_cpus();
    if (before.size() < 2) return;
    {
      AvoidedCpu avoided;
      for (const int cpu : {before[0], before[1], before[0]}) {
        avoided.set(cpu);
        std::vector<int> others = before;
        std::erase(others, cpu);
        EXPECT_EQ(available_cpus(), others);
        EXPECT_NE(sched_getcpu(), cpu);
      }
      avoided.set(-1);
      EXPECT_EQ(available_cpus(), before);
      avoided.set(before[1]);
    }
    EXPECT_EQ(available_cpus(), before) << "its end is the end of it";
    pin_this_thread(before[1]);
    AvoidedCpu avoided;
    avoided.set(before[1]);
    EXPECT_THAT(available_cpus(), ElementsAre(before[1])) << "there is no other";
    avoided.set(-1);
    EXPECT_THAT(available_cpus(), ElementsAre(before[1]));
    avoided.set(kMaxCpu + 1);
    EXPECT_THAT(available_cpus(), ElementsAre(before[1]));
  }).join();
}

}  // namespace
}  // namespace transept
