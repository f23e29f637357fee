// How ranks on several hosts meet: GroupLink::host() of the first, GroupLink::join() of the others.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/hmac_sha256.h"
#include "base/log.h"
#include "base/quoted.h"
#include "comm/group_link.h"
#include "comm/group_proof.h"
#include "net/client_socket.h"

namespace transept {
namespace {

constexpr size_t kMaxGuests = 128;  // who have not said who they are
constexpr Duration kSendTimeout = std::chrono::seconds(1), kBetweenTries = std::chrono::milliseconds(100);
constexpr Duration kBetweenChecks = std::chrono::milliseconds(200);

std::string own_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

struct Guest {
  ControlSocket socket;
  std::string from;
  TimePoint since;
  ControlBytes nonce{};
};

// What differs between the first rank's settings and another's; OK: nothing.
Status compare(const std::vector<GroupSetting>& first, const HelloFrame& other, const std::string& first_host) {
  std::vector<std::string> found;
  const auto differs = [&](std::string_view name, std::string_view ours, std::string_view theirs) {
    found.push_back(str_cat(name, " is ", ours, " on rank 0 (host ", first_host, ") and ", theirs, " on rank ",
                            other.rank, " (host ", printable(other.member.host), ")"));
  };
  for (size_t i = 0; i < std::max(first.size(), other.settings.size()); ++i) {
    const GroupSetting ours = i < first.size() ? first[i] : GroupSetting{"", "not there"};
    const GroupSetting theirs = i < other.settings.size() ? other.settings[i] : GroupSetting{ours.name, "not there"};
    const std::string& name = ours.name.empty() ? theirs.name : ours.name;
    if (!ours.name.empty() && ours.name != theirs.name) {
      differs("the list of settings", ours.name, printable(theirs.name));
      break;
    }
    if (ours.value != theirs.value) differs(printable(name), ours.value, printable(theirs.value));
  }
  if (found.empty()) return ok_status();
  return invalid_argument("ranks of one model differ: ", join(found, "; "));
}

}  // namespace

// ---- The first rank's side

class GroupMeeting final {
 public:
  GroupMeeting(const ControlListener& listener, const GroupLink::Options& options)
      : listener_(listener), options_(options), members_(static_cast<size_t>(options.size)) {
    for (int rank = 0; rank < options.size; ++rank) joined_.emplace_back();
    members_[0] = {own_host(), ::getpid()};
  }

  StatusOr<std::unique_ptr<GroupLink>> run() {
    Status met = await_all();
    if (met.ok()) met = check_settings();
    if (!met.ok()) {
      for (const Joined& other : joined_) {
        if (other.socket.is_open()) other.socket.send(FailureFrame{met}, steady_now() + kSendTimeout).IgnoreError();
      }
      return met;
    }
    return welcome();
  }

 private:
  struct Joined {
    ControlSocket socket;
    HelloFrame hello;
  };

  int num_joined() const {
    return static_cast<int>(std::ranges::count_if(joined_, [](const Joined& j) { return j.socket.is_open(); }));
  }

  Status await_all() {
    const TimePoint until = steady_now() + options_.join_timeout;
    while (num_joined() < options_.size - 1) {
      if (steady_now() >= until) return late();
      if (options_.check) RETURN_IF_ERROR(options_.check());
      wait(until);
      while (std::optional<ControlSocket> socket = listener_.accept()) receive_guest(*std::move(socket));
      for (size_t i = 0; i < guests_.size();) {
        ASSIGN_OR_RETURN(const bool stays, look_after(guests_[i]));
        if (stays) {
          ++i;
        } else {
          guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      for (Joined& other : joined_) forget_if_left(other);
    }
    return ok_status();
  }

  Status late() const {
    std::vector<std::string> missing;
    for (int rank = 1; rank < options_.size; ++rank) {
      if (!joined_[static_cast<size_t>(rank)].socket.is_open()) missing.push_back(str_cat(rank));
    }
    return absl::DeadlineExceededError(str_cat(missing.size() == 1 ? "rank " : "ranks ", join(missing, ", "),
                                               missing.size() == 1 ? " has" : " have", " not joined within ",
                                               seconds(options_.join_timeout), " s"));
  }

  // Until somebody comes, says something or leaves, or a guest has been silent for too long.
  void wait(TimePoint until) {
    std::vector<pollfd> fds = {{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_) {
      fds.push_back({.fd = guest.socket.fd(), .events = POLLIN, .revents = 0});
      until = std::min(until, guest.since + options_.hello_timeout);
    }
    for (const Joined& other : joined_) {
      if (other.socket.is_open()) fds.push_back({.fd = other.socket.fd(), .events = POLLIN, .revents = 0});
    }
    if (options_.check) until = std::min(until, steady_now() + kBetweenChecks);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_now()).count();
    ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
  }

  void receive_guest(ControlSocket socket) {
    if (guests_.size() >= kMaxGuests) {
      refuse(guests_.front(), "others have connected since");
      guests_.erase(guests_.begin());
    }
    Guest guest{.socket = std::move(socket), .from = "", .since = steady_now(), .nonce = random_bytes()};
    guest.from = guest.socket.remote_address();
    if (guest.socket.send(ChallengeFrame{guest.nonce}, steady_now()).ok()) guests_.push_back(std::move(guest));
  }

  static void refuse(const Guest& guest, std::string_view why) {
    log_warning("a connection of ", guest.from, " to the ranks' port was refused: ", why);
  }

  // False: it is no guest any more. Errors: those of the group.
  StatusOr<bool> look_after(Guest& guest) {
    StatusOr<std::optional<ControlFrame>> frame = guest.socket.poll(kMaxStrangersFrameBytes);
    if (frame.ok() && !frame->has_value()) {
      if (steady_now() < guest.since + options_.hello_timeout) return true;
      frame = absl::DeadlineExceededError("it has not said who it is");
    }
    if (!frame.ok()) {
      refuse(guest, error_message(frame.status()));
      return false;
    }
    HelloFrame* hello = std::get_if<HelloFrame>(&**frame);
    if (hello == nullptr) {
      refuse(guest, "it has not said who it is");
      return false;
    }
    const ControlBytes proof = group_proof(options_.token, ProofOf::kOther, guest.nonce, hello->rank);
    if (!equal_in_constant_time(proof, hello->proof)) {
      return turn_away(guest, "the group's token is another one: --group-token-file");
    }
    return admit(guest, std::move(*hello));
  }

  StatusOr<bool> turn_away(Guest& guest, std::string_view why) {
    refuse(guest, why);
    guest.socket.send(FailureFrame{invalid_argument(why)}, steady_now()).IgnoreError();
    return false;
  }

  StatusOr<bool> admit(Guest& guest, HelloFrame hello) {
    if (hello.size != options_.size) {
      Status differs = invalid_argument("ranks of one model differ: there are ", options_.size,
                                        " ranks for rank 0 (host ", members_[0].host, ") and ", hello.size,
                                        " for rank ", hello.rank, " (host ", printable(hello.member.host), ")");
      guest.socket.send(FailureFrame{differs}, steady_now()).IgnoreError();
      return differs;
    }
    if (hello.rank < 1 || hello.rank >= options_.size) {
      return turn_away(guest, str_cat("rank ", hello.rank, " of ", options_.size));
    }
    Joined& place = joined_[static_cast<size_t>(hello.rank)];
    forget_if_left(place);  // a rank whose connection was lost comes again at once
    if (place.socket.is_open()) {
      const GroupMember& first = place.hello.member;
      return turn_away(guest,
                       str_cat("rank ", hello.rank, " is there already (host ", first.host, ", pid ", first.pid, ")"));
    }
    hello.member.host = printable(hello.member.host);
    place = {std::move(guest.socket), std::move(hello)};
    return false;
  }

  static void forget_if_left(Joined& other) {
    if (!other.socket.is_open()) return;
    const StatusOr<std::optional<ControlFrame>> frame = other.socket.poll(kMaxStrangersFrameBytes);
    if (frame.ok() && !frame->has_value()) return;
    log_warning("rank ", other.hello.rank, " (host ", other.hello.member.host, ", pid ", other.hello.member.pid,
                ") left before all had joined");
    other.socket.close();
  }

  Status check_settings() const {
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      RETURN_IF_ERROR(compare(options_.settings, joined_[rank].hello, members_[0].host));
    }
    return ok_status();
  }

  StatusOr<std::unique_ptr<GroupLink>> welcome() {
    std::unique_ptr<GroupLink> link(new GroupLink);
    WelcomeFrame welcome{.proof = {}, .secret = random_bytes(), .members = {}};
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      members_[rank] = joined_[rank].hello.member;
    }
    welcome.members = members_;
    for (size_t rank = 1; rank < joined_.size(); ++rank) {
      const HelloFrame& hello = joined_[rank].hello;
      welcome.proof = group_proof(options_.token, ProofOf::kFirst, hello.nonce, hello.rank);
      RETURN_IF_ERROR(joined_[rank].socket.send(welcome, steady_now() + kSendTimeout));
    }
    link->rank_ = 0;
    link->secret_ = welcome.secret;
    link->members_ = std::move(members_);
    for (Joined& other : joined_) link->sockets_.push_back(std::move(other.socket));
    link->local_address_ = link->sockets_.size() > 1 ? link->sockets_[1].local_address() : "127.0.0.1";
    return link;
  }

  const ControlListener& listener_;
  const GroupLink::Options& options_;
  std::vector<GroupMember> members_;
  std::vector<Joined> joined_;  // by rank; the first rank's stays empty
  std::vector<Guest> guests_;
};

StatusOr<std::unique_ptr<GroupLink>> GroupLink::host(const ControlListener& listener, const Options& options) {
  CHECK(options.rank == 0 && options.size >= 1);
  return GroupMeeting(listener, options).run();
}

// ---- The others' side

namespace {

StatusOr<ControlSocket> connect(const GroupLink::Options& options, TimePoint until) {
  while (true) {
    ClientSocket socket;
    const Status connected = socket.connect(options.host, options.port, until);
    if (connected.ok()) return ControlSocket(socket.release());
    if (options.check) RETURN_IF_ERROR(options.check());
    if (steady_now() + kBetweenTries >= until) {
      return absl::DeadlineExceededError(str_cat("the first rank has not listened within ",
                                                 seconds(options.join_timeout), " s: ", error_message(connected)));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

StatusOr<ControlFrame> receive(ControlSocket& socket, TimePoint until, const GroupLink::Options& options) {
  while (true) {
    StatusOr<ControlFrame> frame =
        socket.receive(options.check ? std::min(until, steady_now() + kBetweenChecks) : until);
    if (!absl::IsDeadlineExceeded(frame.status()) || steady_now() >= until) return frame;
    RETURN_IF_ERROR(options.check());
  }
}

template <typename Frame>
StatusOr<Frame> expect(ControlSocket& socket, TimePoint until, const GroupLink::Options& options) {
  ASSIGN_OR_RETURN(ControlFrame frame, receive(socket, until, options));
  if (const FailureFrame* failure = std::get_if<FailureFrame>(&frame)) return failure->why;
  Frame* wanted = std::get_if<Frame>(&frame);
  if (wanted == nullptr) return invalid_argument("it says something else than a first rank does");
  return std::move(*wanted);
}

bool is_lost(ControlSocket& socket) { return !socket.poll(kMaxStrangersFrameBytes).ok(); }

// `place`: goes before errors that are this side's own.
StatusOr<WelcomeFrame> introduce(ControlSocket& socket, const GroupLink::Options& options, TimePoint until,
                                 const std::string& place) {
  StatusOr<ChallengeFrame> challenge =
      expect<ChallengeFrame>(socket, std::min(until, steady_now() + options.hello_timeout), options);
  if (!challenge.ok()) return with_prefix(challenge.status(), place);
  HelloFrame hello{.rank = options.rank,
                   .size = options.size,
                   .nonce = random_bytes(),
                   .proof = group_proof(options.token, ProofOf::kOther, challenge->nonce, options.rank),
                   .member = {own_host(), ::getpid()},
                   .settings = options.settings};
  if (const Status sent = socket.send(hello, steady_now() + kSendTimeout); !sent.ok()) return with_prefix(sent, place);
  StatusOr<WelcomeFrame> welcome = expect<WelcomeFrame>(socket, until, options);
  if (absl::IsDeadlineExceeded(welcome.status()) || absl::IsUnavailable(welcome.status())) {
    return with_prefix(welcome.status(), place);
  }
  RETURN_IF_ERROR(welcome.status());
  if (std::ssize(welcome->members) != options.size) {
    return invalid_argument(place, ": it has ", welcome->members.size(), " ranks, and there are ", options.size);
  }
  const ControlBytes proof = group_proof(options.token, ProofOf::kFirst, hello.nonce, options.rank);
  if (!equal_in_constant_time(proof, welcome->proof)) {
    return invalid_argument(place, ": it does not know the group's token (--group-token-file)");
  }
  return welcome;
}

}  // namespace

StatusOr<std::unique_ptr<GroupLink>> GroupLink::join(const Options& options) {
  CHECK(options.rank > 0 && options.rank < options.size);
  const TimePoint until = steady_now() + options.join_timeout;
  ASSIGN_OR_RETURN(ControlSocket socket, connect(options, until));
  const std::string place = str_cat("the first rank at ", options.host, " port ", options.port);
  StatusOr<WelcomeFrame> welcome = introduce(socket, options, until, place);
  // The first rank lets its oldest guests go when more connect than it keeps. One that has ended listens no more.
  while (absl::IsUnavailable(welcome.status()) && is_lost(socket) && steady_now() + kBetweenTries < until) {
    if (options.check) RETURN_IF_ERROR(options.check());
    std::this_thread::sleep_for(kBetweenTries);
    ClientSocket again;
    if (!again.connect(options.host, options.port, until).ok()) break;
    socket = ControlSocket(again.release());
    welcome = introduce(socket, options, until, place);
  }
  RETURN_IF_ERROR(welcome.status());
  std::unique_ptr<GroupLink> link(new GroupLink);
  link->rank_ = options.rank;
  link->secret_ = welcome->secret;
  link->members_ = std::move(welcome->members);
  link->local_address_ = socket.local_address();
  link->sockets_.push_back(std::move(socket));
  return link;
}

}  // namespace transept
