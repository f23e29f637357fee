// Ranks that meet over 127.0.0.1: who is let in, what is compared, and what ends the group.
#include "comm/group_link.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "base/check.h"
#include "comm/group_proof.h"
#include "net/client_socket.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using Link = StatusOr<std::unique_ptr<GroupLink>>;

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

ControlSocket await_guest(const ControlListener& listener) {
  std::optional<ControlSocket> socket;
  while (!socket.has_value()) socket = listener.accept();
  return *std::move(socket);
}

class GroupLinks : public ::testing::Test {
 protected:
  GroupLinks() : listener_(ControlListener::open("127.0.0.1", 0)) { CHECK(listener_.ok()); }

  GroupLink::Options options(int rank, int size) const {
    GroupLink::Options options;
    options.rank = rank;
    options.size = size;
    options.port = listener_->port();
    options.join_timeout = std::chrono::seconds(20);
    options.settings = {{"--dtype", "auto"}, {"--block-size", "16"}};
    return options;
  }

  // All ranks at once, the first as the first; what each got, and how long they live: until all have met.
  std::vector<Status> meet(std::vector<GroupLink::Options> all, const std::function<void(GroupLink&)>& work = {}) {
    std::vector<Status> met(all.size());
    std::latch done(std::ssize(all));
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] {
        Link link = i == 0 ? GroupLink::host(*listener_, all[i]) : GroupLink::join(all[i]);
        met[i] = link.status();
        if (link.ok() && work) work(**link);
        done.arrive_and_wait();
      });
    }
    threads.clear();
    return met;
  }

  // A stranger's connection, after which a real rank comes: what it was told, until it was closed.
  std::string tell(const std::string& bytes, bool is_patient = false) {
    GroupLink::Options first = options(0, 2), other = options(1, 2);
    first.token = other.token = "secret";
    first.hello_timeout = std::chrono::milliseconds(300);
    std::string told;
    std::vector<Status> met(2);
    std::jthread hosts([&] {
      Link link = GroupLink::host(*listener_, first);
      met[0] = link.status();
    });
    ClientSocket stranger;
    CHECK(stranger.connect("127.0.0.1", listener_->port(), soon()).ok());
    if (!bytes.empty()) CHECK(stranger.write(bytes, soon()).ok());
    std::array<char, 512> some{};
    while (is_patient || !bytes.empty()) {
      const StatusOr<size_t> count = stranger.read(some, soon());
      if (!count.ok() || *count == 0) break;
      told.append(some.data(), *count);
    }
    met[1] = GroupLink::join(other).status();
    hosts.join();
    EXPECT_EQ(met, std::vector<Status>(2)) << "the start goes on";
    return told;
  }

  StatusOr<ControlListener> listener_;
};

TEST_F(GroupLinks, RanksMeetAndKnowEachOther) {
  std::atomic<int> num_right = 0;
  const std::vector<Status> met =
      meet({options(0, 4), options(3, 4), options(1, 4), options(2, 4)}, [&](GroupLink& link) {
        EXPECT_EQ(link.size(), 4);
        EXPECT_EQ(link.local_address(), "127.0.0.1");
        EXPECT_EQ(link.member(2).pid, ::getpid());
        EXPECT_THAT(link.name_of(2), ::testing::ContainsRegex("^rank 2 \\(host .*, pid [0-9]+\\)$"));
        const auto values = link.swap({static_cast<std::byte>(link.rank()), std::byte{7}}, soon());
        ASSERT_TRUE(values.ok()) << values.status();
        for (size_t rank = 0; rank < 4; ++rank) {
          num_right += (*values)[rank] == std::vector{static_cast<std::byte>(rank), std::byte{7}} ? 1 : 0;
        }
      });
  EXPECT_EQ(met, std::vector<Status>(4));
  EXPECT_EQ(num_right, 16);
}

TEST_F(GroupLinks, ARankMayComeBeforeTheFirst) {
  uint16_t port = 0;
  {
    const StatusOr<ControlListener> later = ControlListener::open("127.0.0.1", 0);
    ASSERT_TRUE(later.ok());
    port = later->port();
  }
  GroupLink::Options first = options(0, 2), other = options(1, 2);
  other.port = port;
  Status joined = invalid_argument("not yet");
  std::jthread joins([&] { joined = GroupLink::join(other).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const StatusOr<ControlListener> listener = ControlListener::open("127.0.0.1", port);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(GroupLink::host(*listener, first).ok());
  joins.join();
  EXPECT_TRUE(joined.ok()) << joined;
}

TEST_F(GroupLinks, WhatDiffersIsTheErrorOfAll) {
  std::vector<GroupLink::Options> all = {options(0, 3), options(1, 3), options(2, 3)};
  all[2].settings[0].value = "float16";
  const std::vector<Status> met = meet(all);
  EXPECT_TRUE(absl::IsInvalidArgument(met[0]));
  EXPECT_THAT(
      error_message(met[0]),
      ::testing::ContainsRegex(
          "^ranks of one model differ: --dtype is auto on rank 0 \\(host .*\\) and float16 on rank 2 \\(host .*\\)$"));
  EXPECT_EQ(met[1], met[0]);
  EXPECT_EQ(met[2], met[0]);
}

TEST_F(GroupLinks, AnotherListOfSettingsIsAnotherBuild) {
  std::vector<GroupLink::Options> all = {options(0, 2), options(1, 2)};
  all[1].settings.pop_back();
  EXPECT_THAT(error_message(meet(all)[1]), HasSubstr("--block-size is 16 on rank 0"));
}

TEST_F(GroupLinks, AnotherNumberOfRanksIsTheErrorOfAll) {
  const std::vector<Status> met = meet({options(0, 2), options(1, 4)});
  EXPECT_THAT(error_message(met[0]), HasSubstr("there are 2 ranks for rank 0"));
  EXPECT_THAT(error_message(met[0]), HasSubstr("and 4 for rank 1"));
  EXPECT_EQ(met[1], met[0]);
}

TEST_F(GroupLinks, WhoDoesNotComeIsNamed) {
  GroupLink::Options first = options(0, 3);
  first.join_timeout = std::chrono::milliseconds(100);
  const Link link = GroupLink::host(*listener_, first);
  EXPECT_TRUE(absl::IsDeadlineExceeded(link.status()));
  EXPECT_EQ(error_message(link.status()), "ranks 1, 2 have not joined within 0.1 s");
}

TEST_F(GroupLinks, NobodyListens) {
  GroupLink::Options other = options(1, 2);
  {
    const StatusOr<ControlListener> gone = ControlListener::open("127.0.0.1", 0);
    other.port = gone->port();
  }
  other.join_timeout = std::chrono::milliseconds(200);
  EXPECT_THAT(error_message(GroupLink::join(other).status()),
              HasSubstr("the first rank has not listened within 0.2 s"));
}

TEST_F(GroupLinks, ACheckEndsTheWaiting) {
  GroupLink::Options first = options(0, 2);
  first.check = [] { return absl::UnavailableError("rank 1 has ended"); };
  EXPECT_EQ(error_message(GroupLink::host(*listener_, first).status()), "rank 1 has ended");
}

TEST_F(GroupLinks, AnotherTokenIsRefusedAndTheStartGoesOn) {
  GroupLink::Options first = options(0, 2), wrong = options(1, 2), right = options(1, 2);
  first.token = right.token = "secret";
  wrong.token = "guess";
  std::vector<Status> met(3);
  std::jthread hosts([&] { met[0] = GroupLink::host(*listener_, first).status(); });
  met[1] = GroupLink::join(wrong).status();
  EXPECT_THAT(error_message(met[1]), HasSubstr("--group-token-file"));
  wrong.token = "";
  EXPECT_THAT(error_message(GroupLink::join(wrong).status()), HasSubstr("--group-token-file"));
  met[2] = GroupLink::join(right).status();
  hosts.join();
  EXPECT_TRUE(met[0].ok()) << met[0];
  EXPECT_TRUE(met[2].ok()) << met[2];
}

// Its proof is of another nonce: it has seen the one of an earlier connection.
TEST_F(GroupLinks, AProofIsOfOneConnection) {
  EXPECT_NE(group_proof("t", ProofOf::kOther, random_bytes(), 1), group_proof("t", ProofOf::kOther, random_bytes(), 1));
  const ControlBytes nonce = random_bytes();
  EXPECT_EQ(group_proof("t", ProofOf::kOther, nonce, 1), group_proof("t", ProofOf::kOther, nonce, 1));
  EXPECT_NE(group_proof("t", ProofOf::kOther, nonce, 1), group_proof("t", ProofOf::kFirst, nonce, 1));
  EXPECT_NE(group_proof("t", ProofOf::kOther, nonce, 1), group_proof("t", ProofOf::kOther, nonce, 2));
  EXPECT_NE(group_proof("t", ProofOf::kOther, nonce, 1), group_proof("u", ProofOf::kOther, nonce, 1));
}

// A first rank that does not know the token is none.
TEST_F(GroupLinks, TheFirstRankShowsThatItKnowsTheTokenToo) {
  GroupLink::Options other = options(1, 2);
  other.token = "secret";
  Status joined;
  std::jthread joins([&] { joined = GroupLink::join(other).status(); });
  ControlSocket socket = await_guest(*listener_);
  ASSERT_TRUE(socket.send(ChallengeFrame{}, soon()).ok());
  ASSERT_TRUE(socket.receive(soon()).ok());
  ASSERT_TRUE(socket.send(WelcomeFrame{.proof = {}, .secret = {}, .members = {{"a", 1}, {"b", 2}}}, soon()).ok());
  joins.join();
  EXPECT_THAT(error_message(joined), HasSubstr("does not know the group's token"));
}

TEST_F(GroupLinks, ARankWhoseConnectionIsLostComesAgain) {
  Status joined;
  std::jthread joins([&] { joined = GroupLink::join(options(1, 2)).status(); });
  await_guest(*listener_).close();  // before it was asked
  {
    ControlSocket asked = await_guest(*listener_);
    ASSERT_TRUE(asked.send(ChallengeFrame{}, soon()).ok());
    ASSERT_TRUE(asked.receive(soon()).ok());
  }
  EXPECT_EQ(GroupLink::host(*listener_, options(0, 2)).status(), ok_status());
  joins.join();
  EXPECT_EQ(joined, ok_status());
}

TEST_F(GroupLinks, AFirstRankThatHasEndedIsNotWaitedFor) {
  Status joined;
  std::jthread joins([&] { joined = GroupLink::join(options(1, 2)).status(); });
  {
    const ControlSocket guest = await_guest(*listener_);
    listener_ = absl::CancelledError("ended");
  }
  joins.join();
  EXPECT_TRUE(absl::IsUnavailable(joined)) << joined;
  EXPECT_THAT(error_message(joined), HasSubstr("the first rank at 127.0.0.1 port "));
}

TEST_F(GroupLinks, StrangersAreLetGo) {
  tell("GET / HTTP/1.1\r\n\r\n");                     // a size of gigabytes
  tell(std::string("\x08\0\0\0", 4) + "\x02garbag");  // a hello that is none
  tell(std::string("\0\0\0\0", 4));                   // an empty frame
  tell(std::string("\x01\0\0\0\x07", 5));             // a goodbye
  tell(std::string("\x05\0", 2), true);               // slow
  tell("", true);                                     // silent
  tell("");                                           // gone, or silent, when the rank comes
}

TEST_F(GroupLinks, MoreStrangersThanAreKept) {
  std::vector<ClientSocket> strangers(200);
  std::jthread connects([&] {
    // Until all have met: then connections are not taken any more.
    for (ClientSocket& stranger : strangers) {
      const TimePoint until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
      if (!stranger.connect("127.0.0.1", listener_->port(), until).ok()) return;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(meet({options(0, 2), options(1, 2)}), std::vector<Status>(2));
}

TEST_F(GroupLinks, ASecondOfARankIsRefused) {
  std::vector<Status> met(4);
  std::jthread hosts([&] { met[0] = GroupLink::host(*listener_, options(0, 3)).status(); });
  std::jthread first([&] { met[1] = GroupLink::join(options(1, 3)).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_THAT(error_message(GroupLink::join(options(1, 3)).status()), HasSubstr("rank 1 is there already (host "));
  met[2] = GroupLink::join(options(2, 3)).status();
  hosts.join();
  first.join();
  EXPECT_EQ(met, std::vector<Status>(4));
}

TEST_F(GroupLinks, ARankThatLeavesBeforeAllAreThereMayComeAgain) {
  Status hosted;
  std::jthread hosts([&] { hosted = GroupLink::host(*listener_, options(0, 3)).status(); });
  {
    ClientSocket socket;
    ASSERT_TRUE(socket.connect("127.0.0.1", listener_->port(), soon()).ok());
    ControlSocket control(socket.release());
    const StatusOr<ControlFrame> challenge = control.receive(soon());
    ASSERT_TRUE(challenge.ok());
    HelloFrame hello{.rank = 1, .size = 3};
    hello.proof = group_proof("", ProofOf::kOther, std::get<ChallengeFrame>(*challenge).nonce, 1);
    hello.settings = options(1, 3).settings;
    ASSERT_TRUE(control.send(hello, soon()).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Status first, second;
  std::jthread joins([&] { first = GroupLink::join(options(1, 3)).status(); });
  second = GroupLink::join(options(2, 3)).status();
  joins.join();
  hosts.join();
  EXPECT_TRUE(hosted.ok() && first.ok() && second.ok()) << hosted << first << second;
}

// ---- The group's end

// Three ranks that have met, and the failure of each after `work` of each.
class GroupEnds : public GroupLinks {
 protected:
  std::vector<Status> ends(const std::function<void(std::unique_ptr<GroupLink>&)>& work) {
    std::vector<Status> ended(3);
    std::vector<std::jthread> threads;
    threads.reserve(3);
    std::latch begun(3), done(3);
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        Link made = rank == 0 ? GroupLink::host(*listener_, options(0, 3)) : GroupLink::join(options(rank, 3));
        CHECK(made.ok(), error_message(made.status()));
        std::unique_ptr<GroupLink> link = std::move(made).value();
        link->begin([&] { ++num_told_; });
        begun.arrive_and_wait();
        work(link);
        if (link != nullptr)
          ended[static_cast<size_t>(rank)] = link->await_failure(std::chrono::seconds(10)).value_or(ok_status());
        done.arrive_and_wait();
      });
    }
    threads.clear();
    return ended;
  }

  std::atomic<int> num_told_ = 0;
};

TEST_F(GroupEnds, WhatARankReportsIsToldToAllOnce) {
  for (const int reporter : {0, 1}) {
    num_told_ = 0;
    const std::vector<Status> ended = ends([&](std::unique_ptr<GroupLink>& link) {
      if (link->rank() == reporter) link->fail(absl::ResourceExhaustedError("no memory"));
      if (link->rank() == reporter) link->fail(invalid_argument("another"));
    });
    EXPECT_EQ(ended, std::vector<Status>(3, absl::ResourceExhaustedError("no memory")));
    EXPECT_EQ(num_told_, 3);
  }
}

TEST_F(GroupEnds, OfTwoReportsOneIsToldToAll) {
  const std::vector<Status> ended =
      ends([](std::unique_ptr<GroupLink>& link) { link->fail(absl::UnavailableError(str_cat("of ", link->rank()))); });
  EXPECT_EQ(ended[1], ended[0]);
  EXPECT_EQ(ended[2], ended[0]);
}

TEST_F(GroupEnds, TheFirstRanksGoodbyeEndsTheOthers) {
  const std::vector<Status> ended = ends([](std::unique_ptr<GroupLink>& link) {
    if (link->rank() == 0) link.reset();
  });
  EXPECT_TRUE(absl::IsCancelled(ended[1])) << ended[1];
  EXPECT_TRUE(absl::IsCancelled(ended[2])) << ended[2];
}

// ---- Addresses

TEST(ControlListener, ListensAtLoopbackAndPrivateAddressesAlone) {
  EXPECT_TRUE(is_private_address("127.0.0.1"));
  EXPECT_TRUE(is_private_address("10.255.0.1"));
  EXPECT_TRUE(is_private_address("172.16.0.1"));
  EXPECT_TRUE(is_private_address("172.31.255.255"));
  EXPECT_TRUE(is_private_address("192.168.1.1"));
  EXPECT_TRUE(is_private_address("100.64.0.1"));
  EXPECT_TRUE(is_private_address("169.254.1.1"));
  EXPECT_TRUE(is_private_address("::1"));
  EXPECT_TRUE(is_private_address("fe80::1"));
  EXPECT_TRUE(is_private_address("fd00::1"));
  for (const char* text : {"172.32.0.1", "172.15.0.1", "11.0.0.1", "192.169.0.1", "100.128.0.1", "8.8.8.8", "0.0.0.0",
                           "2001:db8::1", "::", "", "host"}) {
    EXPECT_FALSE(is_private_address(text)) << text;
  }
  EXPECT_THAT(error_message(ControlListener::open("0.0.0.0", 0).status()), HasSubstr("ranks do not encrypt"));
  EXPECT_THAT(error_message(ControlListener::open("8.8.8.8", 1).status()), HasSubstr("8.8.8.8 port 1"));
}

TEST(ControlListener, APortThatIsTakenIsNamed) {
  const StatusOr<ControlListener> first = ControlListener::open("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(error_message(ControlListener::open("127.0.0.1", first->port()).status()),
              HasSubstr(str_cat("127.0.0.1 port ", first->port(), ": the first rank cannot listen there")));
}

}  // namespace
}  // namespace transept
