#include "services/common/member_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <variant>
#include <vector>

#include "lib/core/error.h"
#include "lib/metrics/registry.h"
#include "lib/wire/codec.h"
#include "lib/wire/socket.h"

namespace tetrion {
namespace {

using wire::Message;

constexpr MemberLink::GoodbyeTimes kTimes = {.repeat_ns = 100 * kNanosPerMilli,
                                             .give_up_ns = kNanosPerSecond};

// A member that does nothing of its own, against a coordinator that the test plays by hand over a
// real socket and under a clock that the test moves.
class MemberLinkTest : public ::testing::Test, private wire::SessionOwner {
 protected:
  MemberLinkTest()
      : server_("tcp://127.0.0.1:0"),
        member_({.name = "actor-0",
                 .http_endpoint = "127.0.0.1:9",
                 .shm_dir = "/dev/shm/x",
                 .drain_timeout_ns = 10 * kNanosPerSecond,
                 .given = {{.key = "lanes", .value = "8"}},
                 .traffic = &traffic_,
                 .link = {.endpoint = [this] { return server_.endpoint(); }}},
                kTimes, *this, drain_, clock_) {}

  void Cycle() {
    member_.link().DoWork(1);
    clock_.AdvanceMs(1);
    member_.PublishState(own_problem_);
    member_.SayGoodbye(member_.link().last_session(), /*env_steps=*/42);
    while (auto received = server_.Receive()) {
      peer_ = received->peer;
      received_.push_back(wire::Decode(received->bytes).message);
    }
  }
  template <typename T>
  int Count() const {
    int count = 0;
    for (const Message& message : received_) count += std::holds_alternative<T>(message) ? 1 : 0;
    return count;
  }
  // Cycles until the coordinator has one more T; the newest.
  template <typename T>
  T Expect() {
    const int before = Count<T>();
    for (int i = 0; i < 4000 && Count<T>() == before; ++i) Cycle();
    for (auto message = received_.rbegin(); message != received_.rend(); ++message) {
      if (const T* found = std::get_if<T>(&*message); Count<T>() > before && found != nullptr) {
        return *found;
      }
    }
    ADD_FAILURE() << "the member never sent it";
    return {};
  }
  void Answer(const Message& message) {
    ASSERT_EQ(server_.Send(peer_, message), wire::SendStatus::kOk);
    const std::uint64_t read = member_.link().stats().messages_in;
    // The socket's own thread may be kept waiting on a busy machine.
    for (int i = 0; i < 500 && member_.link().stats().messages_in == read; ++i) Cycle();
    for (int i = 0; i < 20; ++i) Cycle();
  }
  void BeginSession() {
    Expect<wire::Register>();
    Answer(wire::Registered{.session = 7, .epoch = 1, .run = "r", .heartbeat_ms = 20});
    ASSERT_TRUE(member_.link().registered());
  }

  wire::ControlServer server_;
  wire::PeerId peer_;
  FakeClock clock_;
  std::atomic<bool> drain_{false};
  std::string own_problem_;
  std::vector<Message> received_;
  int registered_ = 0;  // sessions that the member was told of
  MetricsRegistry metrics_;
  LinkRecorders traffic_{metrics_, "coordinator"};
  MemberLink member_;

 private:
  wire::Register MakeRegister() override { return member_.Registration(wire::Role::kActor); }
  void OnRegistered(const wire::Registered& registered, bool) override {
    ++registered_;
    member_.CheckSettings(registered);
  }
  void OnFenced() override { member_.OnFenced(); }
  wire::Heartbeat MakeHeartbeat() override { return {.phase = "running"}; }
  void OnHeartbeatAck(const wire::HeartbeatAck&) override {}
  void OnRunEnds() override {}
  void OnMessage(const Message& message) override {
    if (std::holds_alternative<wire::GoodbyeAck>(message)) member_.OnGoodbyeAck();
  }
};

// So that what watches reconnects sees them while they happen.
TEST_F(MemberLinkTest, TrafficIsShownWhileTheCoordinatorSaysNothing) {
  Expect<wire::Register>();
  for (int reconnects = 1; reconnects <= 2; ++reconnects) {
    clock_.AdvanceMs(10'000);
    Expect<wire::Register>();
    EXPECT_NE(metrics_.SerializeText().find("tetrion_link_reconnects_total{peer=\"coordinator\"} " +
                                            std::to_string(reconnects)),
              std::string::npos);
  }
}

TEST_F(MemberLinkTest, RegistersWithWhatTheConfigurationSays) {
  const auto said = Expect<wire::Register>();
  EXPECT_EQ(said.role, wire::Role::kActor);
  EXPECT_EQ(said.name, "actor-0");
  EXPECT_EQ(said.http_endpoint, "127.0.0.1:9");
  EXPECT_EQ(said.shm_dir, "/dev/shm/x");
  ASSERT_EQ(said.given.size(), 1U);
  EXPECT_EQ(said.given[0].key, "lanes");
}

TEST_F(MemberLinkTest, TheCoordinatorIsToldTheAdvertisedAddressForScrapers) {
  MemberOptions options = {.run_folder = "runs/a", .name = "actor-0"};
  EXPECT_EQ(MemberConfigOf(options, "127.0.0.1:9").http_endpoint, "127.0.0.1:9");
  options.run_folder.clear();
  for (const char* here : {"tcp://127.0.0.1:9000", "ipc:///run/c"}) {
    options.coordinator = here;
    EXPECT_EQ(MemberConfigOf(options, "127.0.0.1:9").http_endpoint, "127.0.0.1:9") << here;
  }
  options.coordinator = "tcp://head.example:9000";
  EXPECT_EQ(MemberConfigOf(options, "127.0.0.1:9").http_endpoint, "") << "it would be the other's";
  EXPECT_EQ(MemberConfigOf(options, "10.0.0.1:9").http_endpoint, "10.0.0.1:9");
  options.http_advertise = "actor-0.actors";
  EXPECT_EQ(MemberConfigOf(options, "0.0.0.0:9").http_endpoint, "actor-0.actors:9");
  EXPECT_EQ(MemberConfigOf(options, "").http_endpoint, "");  // serves no pages
}

TEST_F(MemberLinkTest, ProblemIsTheSessionsUntilItStandsThenTheMembersOwn) {
  EXPECT_EQ(member_.Problem(), "starting");
  own_problem_ = "replay is being made";
  Cycle();
  EXPECT_NE(member_.Problem(), own_problem_);
  EXPECT_NE(member_.Problem(), "");
  BeginSession();
  EXPECT_EQ(member_.Problem(), own_problem_);
  own_problem_.clear();
  Cycle();
  EXPECT_EQ(member_.Problem(), "");
}

TEST_F(MemberLinkTest, OtherSettingsThanTheFirstEndTheMember) {
  member_.CheckSettings({.run_config = "lanes = 4"});
  EXPECT_NO_THROW(member_.CheckSettings({.run_config = "lanes = 4"}));
  try {
    member_.CheckSettings({.run_config = "lanes = 8"});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  }
}

TEST_F(MemberLinkTest, DrainIsAskedOnceAndLateOnlyAfterItsTime) {
  EXPECT_FALSE(member_.DrainIsAsked());
  drain_ = true;
  EXPECT_TRUE(member_.DrainIsAsked());
  member_.StartDrain(/*built=*/true);
  EXPECT_FALSE(member_.DrainIsAsked());
  EXPECT_TRUE(member_.Draining());
  EXPECT_FALSE(member_.Running());
  clock_.AdvanceNs(10 * kNanosPerSecond - 1);
  EXPECT_FALSE(member_.DrainIsLate());
  clock_.AdvanceNs(1);
  EXPECT_TRUE(member_.DrainIsLate());
  EXPECT_FALSE(member_.Done());
}

TEST_F(MemberLinkTest, WithoutAnythingBuiltADrainIsTheEnd) {
  member_.StartDrain(/*built=*/false);
  EXPECT_TRUE(member_.Done());
}

// Else the coordinator would keep the session, and its place, for as long as its lease.
TEST_F(MemberLinkTest, SessionOfARegistrationThatWasUnansweredAtTheEndIsSaidGoodbyeFor) {
  Expect<wire::Register>();
  member_.StartDrain(/*built=*/false);
  EXPECT_FALSE(member_.Done());
  EXPECT_EQ(Count<wire::Goodbye>(), 0);
  Answer(wire::Registered{.session = 7, .epoch = 1, .run = "r", .heartbeat_ms = 20});
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(member_.Done());
  EXPECT_EQ(registered_, 0) << "the member was told of a session that it only ends";
  EXPECT_EQ(Count<wire::Heartbeat>(), 0);
}

TEST_F(MemberLinkTest, SessionOfAnAnswerThatIsReadAtTheEndOfTheWaitIsSaidGoodbyeFor) {
  Expect<wire::Register>();
  member_.StartDrain(/*built=*/false);
  ASSERT_EQ(server_.Send(peer_, wire::Registered{.session = 7, .epoch = 1, .run = "r"}),
            wire::SendStatus::kOk);
  for (int i = 0; i < 4000 && member_.link().session() == 0; ++i) member_.link().DoWork(1);
  clock_.AdvanceMs(1000);
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_FALSE(member_.Done()) << "a goodbye may be lost";
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(member_.Done());
}

TEST_F(MemberLinkTest, RegistrationThatIsRefusedAfterTheEndEndsTheWait) {
  Expect<wire::Register>();
  member_.StartDrain(/*built=*/false);
  Answer(wire::Refused{.reason = wire::RefuseReason::kDraining, .text = "the run ends"});
  EXPECT_TRUE(member_.Done());
}

TEST_F(MemberLinkTest, RegistrationWithoutAnAnswerIsAwaitedForASecond) {
  Expect<wire::Register>();
  member_.StartDrain(/*built=*/false);
  clock_.AdvanceMs(990);
  Cycle();
  EXPECT_FALSE(member_.Done());
  clock_.AdvanceMs(10);
  Cycle();
  EXPECT_TRUE(member_.Done());
  EXPECT_EQ(Count<wire::Goodbye>(), 0);
}

TEST_F(MemberLinkTest, GoodbyeIsRepeatedUntilAnsweredAndNoHeartbeatFollowsIt) {
  BeginSession();
  member_.StartDrain(/*built=*/true);
  Cycle();
  EXPECT_EQ(Count<wire::Goodbye>(), 0);
  member_.StartGoodbye();
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  const int heartbeats = Count<wire::Heartbeat>();
  EXPECT_EQ(Expect<wire::Goodbye>().env_steps, 42U);
  EXPECT_FALSE(member_.Done());
  EXPECT_EQ(Count<wire::Heartbeat>(), heartbeats);
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(member_.Done());
}

TEST_F(MemberLinkTest, GoodbyeWithoutAnAnswerEndsWithItsTime) {
  BeginSession();
  member_.StartDrain(/*built=*/true);
  member_.StartGoodbye();
  for (int i = 0; i < 990; ++i) Cycle();
  EXPECT_FALSE(member_.Done());
  for (int i = 0; i < 20; ++i) Cycle();
  EXPECT_TRUE(member_.Done());
  EXPECT_GE(Count<wire::Goodbye>(), 9);
  EXPECT_LE(Count<wire::Goodbye>(), 11);
}

TEST_F(MemberLinkTest, AnswerBeforeTheGoodbyeMeansNothing) {
  BeginSession();
  member_.OnGoodbyeAck();
  EXPECT_TRUE(member_.Running());
}

TEST_F(MemberLinkTest, WithoutASessionThereIsNothingToSayGoodbyeFor) {
  member_.StartDrain(/*built=*/true);
  member_.StartGoodbye();
  member_.SayGoodbye(/*session=*/0, /*env_steps=*/1);
  EXPECT_TRUE(member_.Done());
}

TEST_F(MemberLinkTest, MemberThatIsFencedWhileItDrainsAsksForNoNewSession) {
  BeginSession();
  const int registrations = Count<wire::Register>();
  member_.StartDrain(/*built=*/true);
  Answer(wire::Fenced{.session = 7});
  clock_.AdvanceMs(30'000);
  for (int i = 0; i < 20; ++i) Cycle();
  EXPECT_EQ(Count<wire::Register>(), registrations);
}

}  // namespace
}  // namespace tetrion
