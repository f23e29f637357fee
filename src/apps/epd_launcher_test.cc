// A fleet whose instances are scripts, with the real broker: what is said, when it is ready, and what is left.
#include "apps/epd_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/child_process_testing.h"
#include "base/folder_testing.h"
#include "base/log_sink.h"
#include "base/scoped_variable_testing.h"
#include "disagg/local_broker.h"
#include "encoder_cache/ec_secret.h"
#include "net/http_client.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string logged;  // a sink can reach nothing but a global

class EpdLauncherTest : public ::testing::Test {
 protected:
  // Writes its arguments to a file of its name, and ends when it is asked to.
  EpdLauncherTest() {
    folder_.write("program", str_cat("#!/bin/sh\n"
                                     "for a; do case $a in --instance-name=*) name=${a#*=};; esac; done\n"
                                     "trap 'echo ends >&2; exit 0' TERM\n"
                                     "printf '%s\\n' \"$@\" > ",
                                     folder_.path(),
                                     "/$name.part\n"
                                     "mv ",
                                     folder_.path(), "/$name.part ", folder_.path(), "/$name\n",
                                     "while :; do sleep 1000 & wait; done\n"));
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
    std::filesystem::create_directory(parent());
    logged.clear();
    set_log_sink([](LogLevel, std::string_view message) { logged += str_cat(message, "\n"); });
  }
  ~EpdLauncherTest() override {
    set_log_sink(nullptr);
    EXPECT_TRUE(std::filesystem::is_empty(parent())) << "the private folder is removed";
    EXPECT_FALSE(testing::has_children());
  }
  std::string program() const { return folder_.path() + "/program"; }
  std::string parent() const { return folder_.path() + "/run"; }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() + "/" + name); }
  // The private folder, as an instance was told.
  std::string private_folder() const {
    constexpr std::string_view kFlag = "--broker=local:";
    std::ifstream file(folder_.path() + "/e0");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(kFlag)) return std::filesystem::path(line.substr(kFlag.size())).parent_path();
    }
    return "";
  }

  const testing::TestFolder folder_;
  const testing::ScopedVariable runtime_{"XDG_RUNTIME_DIR", parent()};
};

// Announces instances, as they would themselves; requests go to the decode instance's port.
void announce(Broker& broker, const std::string& name) {
  InstanceRecord record;
  record.id = {name, 1};
  record.role = name.starts_with("e") ? InstanceRole::kEncode : InstanceRole::kDecode;
  record.url = name.starts_with("e") ? "http://127.0.0.1:7000" : "http://127.0.0.1:8000";
  EXPECT_TRUE(broker.announce(record, std::chrono::minutes(1)).ok());
}

TEST_F(EpdLauncherTest, RunsAFleetUntilItIsAskedToEnd) {
  const std::vector<FlagSpec> table = epd_flags();
  EpdSettings settings;
  settings.plan.shape = {2, 1};
  settings.plan.instances = plan_epd({2, 1}, EpdThreads{1, 2}, 4, std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
  settings.model = {"/models/tiny", "tiny"};
  settings.program = program();
  std::unique_ptr<LocalBroker> broker;
  const TimePoint begin = std::chrono::steady_clock::now();
  settings.num_interrupts = [&] {
    if (broker == nullptr && has("e0") && has("e1") && has("p0")) {
      const std::string path = private_folder();
      EXPECT_EQ(content(path + "/secret").size(), 64u);
      EXPECT_TRUE(EcSecret::read(path + "/secret").ok());
      auto connected = LocalBroker::connect(path + "/broker");
      EXPECT_TRUE(connected.ok()) << connected.status();
      if (!connected.ok()) return 2;
      broker = std::move(connected).value();
      for (const char* name : {"e0", "e1", "p0"}) announce(*broker, name);
    }
    const bool is_late = std::chrono::steady_clock::now() > begin + std::chrono::minutes(1);
    return is_late || logged.find("ready after") != std::string::npos ? 1 : 0;
  };
  ::testing::internal::CaptureStderr();
  const StatusOr<int> code = run_epd(Flags::parse(table, {"m", "--epd=2E1D"}).value(), table, settings);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << logged << said;
  EXPECT_THAT(logged, HasSubstr("--epd 2E1D: broker at " + parent() + "/transept-"));
  EXPECT_THAT(logged, ::testing::ContainsRegex("  e1: encode, process [0-9]+, 1 thread on processor 1\n"));
  EXPECT_THAT(logged, ::testing::ContainsRegex("  p0: decode, process [0-9]+, 2 threads on processors 2-3\n"));
  EXPECT_THAT(logged, ::testing::ContainsRegex("--epd 2E1D: ready after [0-9.]+ s: e0, e1, p0; requests go to "
                                               "http://127.0.0.1:8000\n"));
  EXPECT_LT(said.find("p0 | ends"), said.find("e0 | ends"));
  EXPECT_LT(said.find("e0 | ends"), said.size());
  EXPECT_THAT(content(folder_.path() + "/p0"), HasSubstr("--role=decode\n"));
}

TEST_F(EpdLauncherTest, IsNotReadyWhileAnInstanceIsMissing) {
  const std::vector<FlagSpec> table = epd_flags();
  EpdSettings settings;
  settings.plan = epd_plan(Flags::parse(table, {"--epd=1E1D"}).value(), {}).value().value();
  settings.program = program();
  std::unique_ptr<LocalBroker> broker;
  int looks = 0;
  settings.num_interrupts = [&] {
    if (broker == nullptr && has("e0") && has("p0")) {
      broker = LocalBroker::connect(private_folder() + "/broker").value();
      announce(*broker, "e0");
      announce(*broker, "p1");
    }
    return broker != nullptr && ++looks > 20 ? 1 : 0;
  };
  EXPECT_EQ(run_epd(Flags::parse(table, {"m", "--epd=1E1D"}).value(), table, settings).value(), 0);
  EXPECT_THAT(logged, Not(HasSubstr("ready after")));
  EXPECT_THAT(logged, ::testing::ContainsRegex("  p0: decode, process [0-9]+, 1 thread, not pinned\n"));
}

// Whether a proxy at the address that the line names forwards to so many.
bool has_ready(const std::string& line, int num_instances) {
  const size_t at = line.rfind("requests go to ");
  if (at == std::string::npos) return false;
  const HttpUrl url = HttpUrl::parse(line.substr(at + 15, line.find('\n', at) - at - 15)).value();
  const auto metrics = HttpClient(url.host, url.port, {}).get("/metrics");
  return metrics.ok() &&
         metrics->body.find(str_cat("transept_proxy_instances{state=\"ready\"} ", num_instances)) != std::string::npos;
}

TEST_F(EpdLauncherTest, IsNotReadyBeforeItsProxyHasAllDecodeInstances) {
  const std::vector<FlagSpec> table = epd_flags();
  EpdSettings settings;
  settings.plan = epd_plan(Flags::parse(table, {"--epd=1E2D"}).value(), {}).value().value();
  settings.program = program();
  settings.proxy = Proxy::Options{.http = {.port = 0}, .look_for_instances = std::chrono::seconds(1)};
  std::unique_ptr<LocalBroker> broker;
  const TimePoint begin = std::chrono::steady_clock::now();
  bool has_both = false;
  settings.num_interrupts = [&] {
    if (broker == nullptr && has("e0") && has("p0") && has("p1")) {
      broker = LocalBroker::connect(private_folder() + "/broker").value();
      for (const char* name : {"e0", "p0", "p1"}) announce(*broker, name);
    }
    const bool is_late = std::chrono::steady_clock::now() > begin + std::chrono::minutes(1);
    const bool is_ready = logged.find("ready after") != std::string::npos;
    if (is_ready) has_both = has_ready(logged, 2);
    return is_late || is_ready ? 1 : 0;
  };
  EXPECT_EQ(run_epd(Flags::parse(table, {"m", "--epd=1E2D"}).value(), table, settings).value(), 0);
  EXPECT_TRUE(has_both) << logged;
}

// What signals did before a test.
class KeptSignals final {
 public:
  KeptSignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~KeptSignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGCHLD};
  struct sigaction before_[std::size(kSignals)] = {};
};

TEST_F(EpdLauncherTest, SignalsOfTheProcessEndIt) {
  const KeptSignals kept;
  const std::vector<FlagSpec> table = epd_flags();
  EpdSettings settings;
  settings.plan = epd_plan(Flags::parse(table, {"--epd=1E1D"}).value(), {}).value().value();
  settings.program = program();
  for (const int signal : {SIGINT, SIGTERM}) {
    std::thread sender([&] {
      EXPECT_TRUE(testing::comes([&] { return has("e0") && has("p0"); }));
      ::kill(::getpid(), signal);
    });
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run_epd(Flags::parse(table, {"m", "--epd=1E1D"}).value(), table, settings).value(), 0);
    sender.join();
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_LT(said.find("p0 | ends"), said.find("e0 | ends"));
    EXPECT_THAT(said, HasSubstr("e0 | ends"));
    for (const char* name : {"/e0", "/p0"}) std::filesystem::remove(folder_.path() + name);
  }
}

TEST_F(EpdLauncherTest, AProgramThatIsMissingIsAnError) {
  const std::vector<FlagSpec> table = epd_flags();
  EpdSettings settings;
  settings.plan = epd_plan(Flags::parse(table, {"--epd=1E1D"}).value(), {}).value().value();
  settings.program = folder_.path() + "/missing";
  settings.num_interrupts = [] { return 0; };
  const Status status = run_epd(Flags::parse(table, {"m", "--epd=1E1D"}).value(), table, settings).status();
  EXPECT_THAT(error_message(status), HasSubstr("e0: " + settings.program + ": cannot be started"));
}

}  // namespace
}  // namespace transept
