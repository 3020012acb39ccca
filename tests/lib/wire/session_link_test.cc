#include "lib/wire/session_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"

namespace tetrion::wire {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kEpoch = 3;

int TimesIn(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

// Writes down what the link asks of it.
class Owner final : public SessionOwner {
 public:
  Register MakeRegister() override { return {.name = "actor-0"}; }
  void OnRegistered(const Registered&, bool renewed) override { registered.push_back(renewed); }
  void OnFenced() override { ++fenced; }
  Heartbeat MakeHeartbeat() override {
    if (on_heartbeat) on_heartbeat();
    return {.phase = "running"};
  }
  void OnHeartbeatAck(const HeartbeatAck& ack) override { episodes = ack.episodes; }
  void OnRunEnds() override { drain = true; }
  void OnMessage(const Message& message) override { messages.push_back(message); }

  std::vector<bool> registered;  // each call's `renewed`
  int fenced = 0;
  std::uint64_t episodes = 0;
  bool drain = false;
  std::vector<Message> messages;
  std::function<void()> on_heartbeat;  // empty: none
};

// The link against a coordinator that the test plays by hand. Time moves only where a test says so.
class SessionLinkTest : public ::testing::Test {
 protected:
  SessionLinkTest() : server_(std::make_unique<ControlServer>("tcp://127.0.0.1:0")) {
    endpoint_ = server_->endpoint();
    SetUpLink();
  }

  void SetUpLink() {
    link_ = std::make_unique<SessionLink>(
        SessionLink::Config{.endpoint =
                                [this] {
                                  ++asked_;
                                  if (on_asked_) on_asked_();
                                  CoordinatorPlace place(endpoint_, told_run_, "mine");
                                  place.why_unknown = "no file tells it";
                                  return place;
                                }},
        owner_, clock_);
  }

  // What the coordinator has received after the link was run until something came, or not at all.
  std::vector<Message> Heard(int cycles = 400) {
    std::vector<Message> heard;
    for (int i = 0; i < cycles && heard.empty(); ++i) {
      link_->DoWork(2);
      while (auto received = server_->Receive()) {
        peer_ = received->peer;
        const DecodeResult decoded = Decode(received->bytes);
        sender_ = decoded.sender;
        heard.push_back(decoded.message);
      }
    }
    return heard;
  }
  // Runs the link through so many seconds; what it threw, of the code kTryAgain.
  std::string Wait(int seconds) {
    try {
      for (int i = 0; i < 2 * seconds; ++i) {
        clock_.AdvanceMs(500);
        link_->DoWork(0);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      return error.what();
    }
    return "";
  }
  // The next message of this type; a heartbeat sent earlier may arrive before it.
  template <typename T>
  T Expect() {
    for (auto heard = Heard(); !heard.empty(); heard = Heard()) {
      for (const Message& message : heard) {
        if (const T* wanted = std::get_if<T>(&message)) return *wanted;
      }
    }
    ADD_FAILURE() << "the link never sent it";
    return {};
  }
  // Whether the link, run now, asks for a session. What it has sent is waited for: one that came
  // late would count for the next call.
  bool HeardRegister() {
    const std::uint64_t sent = link_->stats().messages_out;
    std::vector<Message> heard = Heard(3);
    if (heard.empty() && link_->stats().messages_out > sent) heard = Heard();
    return std::any_of(heard.begin(), heard.end(),
                       [](const Message& m) { return std::holds_alternative<Register>(m); });
  }
  // Sends and runs the link until it has read the message.
  void Answer(const Message& message) {
    ASSERT_EQ(server_->Send(peer_, message), SendStatus::kOk);
    const std::uint64_t read = link_->stats().messages_in;
    for (int i = 0; i < 1000 && link_->stats().messages_in == read; ++i) link_->DoWork(2);
    ASSERT_GT(link_->stats().messages_in, read);
  }
  void Begin(std::uint64_t session, std::uint64_t epoch = kEpoch) {
    Expect<Register>();
    Answer(Registered{.session = session, .epoch = epoch, .heartbeat_ms = 1000});
  }

  FakeClock clock_;
  std::unique_ptr<ControlServer> server_;
  std::string endpoint_;
  std::uint64_t told_run_ = 0;  // beside the endpoint
  int asked_ = 0;
  std::function<void()> on_asked_;  // empty: none
  PeerId peer_;
  Identity sender_;  // of the last message heard
  Owner owner_;
  std::unique_ptr<SessionLink> link_;
};

TEST_F(SessionLinkTest, RegistersAndThenBeatsAtTheCoordinatorsPace) {
  const auto message = Expect<Register>();
  EXPECT_EQ(message.name, "actor-0");
  EXPECT_EQ(message.previous_session, 0U);
  EXPECT_NE(sender_.process, 0U);
  EXPECT_EQ(sender_.process >> 63, 0U);
  EXPECT_EQ(sender_.run_id, 0U);
  EXPECT_FALSE(link_->registered());
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 400});
  EXPECT_TRUE(link_->registered());
  EXPECT_EQ(link_->session(), 7U);
  EXPECT_EQ(link_->problem(), "");
  EXPECT_EQ(owner_.registered, (std::vector<bool>{false}));
  const auto heartbeat = Expect<Heartbeat>();
  EXPECT_EQ(heartbeat.session, 7U);
  EXPECT_EQ(heartbeat.phase, "running");
  clock_.AdvanceMs(399);
  EXPECT_TRUE(Heard(20).empty());
  clock_.AdvanceMs(1);
  Expect<Heartbeat>();
}

TEST_F(SessionLinkTest, UnansweredRegistrationIsRepeatedWithTheSameIdentityAfterABackOff) {
  Expect<Register>();
  const Identity first = sender_;
  EXPECT_TRUE(Heard(20).empty());  // no time has passed
  clock_.AdvanceMs(630);           // 500 ms and a quarter at most
  Expect<Register>();
  EXPECT_EQ(sender_, first);
  clock_.AdvanceMs(560);  // 750 ms less a quarter at least
  EXPECT_TRUE(Heard(20).empty());
}

TEST_F(SessionLinkTest, EachRegistrationHasAHigherNumberThanTheLast) {
  EXPECT_EQ(Expect<Register>().registration, 1U);
  clock_.AdvanceMs(630);
  EXPECT_EQ(Expect<Register>().registration, 2U);
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 1000});
  Expect<Heartbeat>();
  clock_.AdvanceMs(3001);
  EXPECT_EQ(Expect<Register>().registration, 3U);
}

TEST_F(SessionLinkTest, RefusalAnswersOneOfSeveralRegistrations) {
  EXPECT_FALSE(link_->registering());
  Expect<Register>();
  clock_.AdvanceMs(630);
  Expect<Register>();
  Answer(Refused{.reason = RefuseReason::kSlotsAwaited, .text = "no slot yet"});
  EXPECT_TRUE(link_->registering());
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 1000});
  EXPECT_FALSE(link_->registering());
}

// Nobody listens: what is sent stays in the socket.
TEST_F(SessionLinkTest, RepetitionThatFindsNoRoomLeavesTheFirstRegistrationUnanswered) {
  server_.reset();
  link_->DoWork(0);
  ASSERT_TRUE(link_->registering());
  constexpr int kMoreThanASocketHolds = 100'000;
  int sent = 0;
  while (sent < kMoreThanASocketHolds && link_->Send(Goodbye{})) ++sent;
  ASSERT_LT(sent, kMoreThanASocketHolds);
  clock_.AdvanceMs(630);
  const std::uint64_t dropped = link_->stats().dropped_out;
  link_->DoWork(0);
  EXPECT_EQ(link_->stats().dropped_out, dropped + 1) << "the repetition";
  EXPECT_TRUE(link_->registering());
}

TEST_F(SessionLinkTest, SecondAnswerToARepeatedRegistrationChangesNothing) {
  Begin(7);
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 1000});
  EXPECT_EQ(owner_.registered.size(), 1U);
}

TEST_F(SessionLinkTest, WithoutAnAddressNothingIsSentUntilThereIsOne) {
  endpoint_.clear();
  EXPECT_TRUE(Heard(5).empty());
  EXPECT_FALSE(link_->Send(Goodbye{}));
  endpoint_ = server_->endpoint();
  clock_.AdvanceMs(3000);
  Expect<Register>();
}

TEST_F(SessionLinkTest, WhyThereIsNoAddressIsTheProblemAndLoggedOnceAfterAWhile) {
  endpoint_.clear();
  link_->DoWork(0);
  EXPECT_EQ(link_->problem(), "no file tells it");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Wait(2), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Wait(100), "");
  EXPECT_EQ(TimesIn(::testing::internal::GetCapturedStdout(), "no file tells it"), 1);
  EXPECT_THAT(Wait(30), HasSubstr("(no file tells it)"));
}

TEST_F(SessionLinkTest, CoordinatorThatNeverAnswersIsTheProblemAndLoggedOnce) {
  link_->DoWork(0);
  EXPECT_EQ(link_->problem(), "the coordinator at " + endpoint_ + " has not answered yet");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Wait(100), "");
  const std::string said = "the coordinator at " + endpoint_ + " does not answer";
  EXPECT_EQ(TimesIn(::testing::internal::GetCapturedStdout(), said), 1);
  EXPECT_EQ(link_->problem(), said);
}

TEST_F(SessionLinkTest, NameThatDoesNotAnswerMayHaveNoAddress) {
  endpoint_ = "tcp://localhost:1";
  EXPECT_EQ(Wait(10), "");
  EXPECT_EQ(link_->problem(),
            "the coordinator at tcp://localhost:1 does not answer, or its name "
            "has no address here");
}

TEST_F(SessionLinkTest, SilentCoordinatorIsReconnectedToWithThePreviousSession) {
  Begin(7);
  Expect<Heartbeat>();
  clock_.AdvanceMs(3001);
  const int asked = asked_;
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
  EXPECT_GT(asked_, asked);
  EXPECT_FALSE(link_->registered());
  EXPECT_NE(link_->problem(), "");
  EXPECT_EQ(link_->stats().reconnects, 1U);
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 1000});
  EXPECT_TRUE(link_->registered());
  EXPECT_EQ(owner_.registered, (std::vector<bool>{false, true}));
  EXPECT_EQ(owner_.fenced, 0);
}

TEST_F(SessionLinkTest, CoordinatorOfRareHeartbeatsIsNotSilentBetweenThem) {
  Expect<Register>();
  Answer(Registered{.session = 7, .epoch = kEpoch, .heartbeat_ms = 60'000});
  Expect<Heartbeat>();
  ASSERT_EQ(Wait(179), "") << "longer than for a coordinator of quick ones";
  Expect<Heartbeat>();
  EXPECT_EQ(link_->stats().reconnects, 0U);
  Answer(HeartbeatAck{.session = 7, .epoch = kEpoch});
  ASSERT_EQ(Wait(179), "");
  Expect<Heartbeat>();
  EXPECT_TRUE(link_->registered());
  clock_.AdvanceMs(2'000);
  Expect<Register>();
  EXPECT_EQ(link_->stats().reconnects, 1U);
}

// Nothing but the link sees an answer arrive, so that one try may come before it; a link that does
// not look fails them all.
TEST_F(SessionLinkTest, AnswerThatWaitsWhileTheMemberStoodStillIsNoSilence) {
  bool kept = false;
  for (int i = 0; i < 20 && !kept; ++i) {
    SetUpLink();
    Begin(7);
    Expect<Heartbeat>();
    ASSERT_EQ(server_->Send(peer_, HeartbeatAck{.session = 7, .epoch = kEpoch}), SendStatus::kOk);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    clock_.AdvanceMs(3001);
    link_->DoWork(0);
    kept = link_->registered() && link_->stats().reconnects == 0;
  }
  EXPECT_TRUE(kept);
}

TEST_F(SessionLinkTest, NewConnectionMayBeSilentForTwiceAsLong) {
  Begin(7);
  Expect<Heartbeat>();
  clock_.AdvanceMs(3001);
  Expect<Register>();
  EXPECT_EQ(link_->stats().reconnects, 1U);
  clock_.AdvanceMs(5999);
  Heard(3);
  EXPECT_EQ(link_->stats().reconnects, 1U);
  clock_.AdvanceMs(2);
  Heard(3);
  EXPECT_EQ(link_->stats().reconnects, 2U);
}

TEST_F(SessionLinkTest, CoordinatorThatMovedIsFoundAtItsNewAddress) {
  Begin(7);
  Expect<Heartbeat>();
  server_ = std::make_unique<ControlServer>("tcp://127.0.0.1:0");
  endpoint_ = server_->endpoint();
  clock_.AdvanceMs(3001);
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
}

TEST_F(SessionLinkTest, AnswersOfAnyKindKeepTheConnection) {
  Begin(7);
  for (int i = 0; i < 5; ++i) {
    clock_.AdvanceMs(2000);
    Expect<Heartbeat>();
    Answer(HeartbeatAck{.session = 7, .epoch = kEpoch, .episodes = 11});
  }
  EXPECT_TRUE(link_->registered());
  EXPECT_EQ(owner_.episodes, 11U);
  EXPECT_EQ(link_->stats().reconnects, 0U);
}

TEST_F(SessionLinkTest, NewEpochMakesItRegisterAgainUnderItsNumber) {
  Begin(7);
  Expect<Heartbeat>();
  Answer(HeartbeatAck{.session = 7, .epoch = kEpoch + 1});
  EXPECT_FALSE(link_->registered());
  clock_.AdvanceMs(700);  // past the delay after the first registration
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
  Answer(Registered{.session = 7, .epoch = kEpoch + 1, .heartbeat_ms = 1000});
  EXPECT_EQ(owner_.registered, (std::vector<bool>{false, true}));
  Expect<Heartbeat>();
  Answer(HeartbeatAck{.session = 7, .epoch = kEpoch + 1});
  EXPECT_TRUE(link_->registered());
}

TEST_F(SessionLinkTest, FencedSessionIsOverAndANewOneBegins) {
  Begin(7);
  Answer(Fenced{.session = 7});
  EXPECT_EQ(owner_.fenced, 1);
  EXPECT_EQ(link_->session(), 0U);
  clock_.AdvanceMs(700);  // past the delay after the first registration
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
  Answer(Registered{.session = 8, .epoch = kEpoch, .heartbeat_ms = 1000});
  EXPECT_EQ(owner_.registered, (std::vector<bool>{false, false}));
  EXPECT_EQ(owner_.fenced, 1);  // told once
}

TEST_F(SessionLinkTest, MemberFencedAgainAndAgainAsksEverMoreRarely) {
  std::int64_t waited_ms = 0;
  for (std::uint64_t session = 1; session <= 20; ++session) {
    for (; !HeardRegister(); waited_ms += 50) clock_.AdvanceMs(50);
    Answer(Registered{.session = session, .epoch = kEpoch, .session_lease_ms = 10'000});
    Answer(Fenced{.session = session});
  }
  EXPECT_GT(waited_ms, 15'000);  // 20 registrations; the last ones 3 s apart
  EXPECT_EQ(owner_.fenced, 20);
}

TEST_F(SessionLinkTest, SessionThatStoodForALeaseMakesTheNextRegistrationQuickAgain) {
  for (std::uint64_t session = 1; session <= 10; ++session) {
    while (!HeardRegister()) clock_.AdvanceMs(50);
    Answer(Registered{.session = session, .epoch = kEpoch, .session_lease_ms = 10'000});
    if (session < 10) Answer(Fenced{.session = session});
  }
  for (int i = 0; i < 11; ++i) {
    clock_.AdvanceMs(1000);
    Expect<Heartbeat>();
    Answer(HeartbeatAck{.session = 10, .epoch = kEpoch});
  }
  Answer(Fenced{.session = 10});
  Expect<Register>();  // at once
}

TEST_F(SessionLinkTest, AnotherRunAtTheSameAddressEndsTheMember) {
  Expect<Register>();
  Answer(Registered{.session = 7, .epoch = kEpoch, .run = "first", .run_id = 11});
  Expect<Heartbeat>();
  EXPECT_EQ(sender_.run_id, 11U);
  server_.reset();
  server_ = std::make_unique<ControlServer>(endpoint_, /*run_id=*/12);
  clock_.AdvanceMs(3001);
  Expect<Register>();
  ASSERT_EQ(server_->Send(peer_, Registered{.session = 7, .epoch = kEpoch, .run_id = 12}),
            SendStatus::kOk);
  try {
    for (int i = 0; i < 1000; ++i) link_->DoWork(2);
    FAIL() << "it goes on with a run that it does not belong to";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find("another run than first"), std::string::npos)
        << error.what();
  }
}

// Of the run's folder: its coordinator is gone, and another run's has taken the port.
TEST_F(SessionLinkTest, AnotherRunAtThePlaceThatWasToldIsNotJoined) {
  server_ = std::make_unique<ControlServer>("tcp://127.0.0.1:0", /*run_id=*/12);
  const std::string others = server_->endpoint();
  endpoint_ = others;
  told_run_ = 11;
  Expect<Register>();
  EXPECT_EQ(sender_.run_id, 11U) << "by which that coordinator refuses it";
  Answer(Registered{.session = 7, .epoch = kEpoch, .run_id = 12});
  EXPECT_FALSE(link_->registered());
  EXPECT_TRUE(owner_.registered.empty());
  EXPECT_NE(link_->problem().find("another run's coordinator listens at " + others),
            std::string::npos)
      << link_->problem();
  EXPECT_NE(link_->problem().find("that of mine did"), std::string::npos);
  // The run's own is started, and tells where it is.
  const std::unique_ptr<ControlServer> others_server = std::move(server_);
  server_ = std::make_unique<ControlServer>("tcp://127.0.0.1:0", /*run_id=*/11);
  endpoint_ = server_->endpoint();
  clock_.AdvanceMs(3001);
  Expect<Register>();
  Answer(Registered{.session = 8, .epoch = kEpoch, .run = "mine", .run_id = 11});
  EXPECT_TRUE(link_->registered());
  EXPECT_EQ(link_->problem(), "");
}

TEST_F(SessionLinkTest, RefusalsForGoodEndTheMemberWithTheirText) {
  for (const RefuseReason reason : {RefuseReason::kOtherRun, RefuseReason::kRingUnusable,
                                    RefuseReason::kTooManySessions, RefuseReason::kImpossible}) {
    SetUpLink();
    Expect<Register>();
    ASSERT_EQ(server_->Send(peer_, Refused{reason, "this is why"}), SendStatus::kOk);
    try {
      for (int i = 0; i < 1000; ++i) link_->DoWork(2);
      FAIL() << "it does not end";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      EXPECT_NE(std::string(error.what()).find("this is why"), std::string::npos);
    }
  }
}

TEST_F(SessionLinkTest, AnswerThatSaysThatTheRunEndsTellsTheMemberToDrain) {
  Begin(7);
  Answer(HeartbeatAck{.session = 7, .epoch = kEpoch});
  EXPECT_FALSE(owner_.drain);
  Answer(HeartbeatAck{.session = 7, .epoch = kEpoch, .drain = true});
  EXPECT_TRUE(owner_.drain);
}

TEST_F(SessionLinkTest, FencedMemberThatIsRefusedAsTheRunEndsIsToldToDrain) {
  Begin(7);
  Answer(Fenced{.session = 7});
  clock_.AdvanceMs(700);
  Expect<Register>();
  Answer(Refused{RefuseReason::kDraining, "the run is ending"});
  EXPECT_TRUE(owner_.drain);
  EXPECT_EQ(link_->last_session(), 7U);
  ASSERT_TRUE(link_->Send(Goodbye{.session = link_->last_session(), .env_steps = 5}));
  Expect<Goodbye>();
  Answer(GoodbyeAck{.session = 7});
  EXPECT_EQ(owner_.messages.size(), 1U);
}

// It woke after its lease, registers again under its number, and finds the run ending.
TEST_F(SessionLinkTest, SilentMemberThatIsRefusedAsTheRunEndsIsToldToDrain) {
  Begin(7);
  Expect<Heartbeat>();
  clock_.AdvanceMs(3001);
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
  Answer(Refused{RefuseReason::kDraining, "the run is ending"});
  EXPECT_EQ(owner_.fenced, 1);
  EXPECT_TRUE(owner_.drain);
  EXPECT_EQ(link_->session(), 0U);
  ASSERT_TRUE(link_->Send(Goodbye{.session = link_->last_session(), .env_steps = 5}));
  Expect<Goodbye>();
  Answer(GoodbyeAck{.session = 7});
  EXPECT_EQ(owner_.messages.size(), 1U);
}

TEST_F(SessionLinkTest, AnotherNumberAtReRegistrationIsAFenceAndABeginning) {
  Begin(7);
  Expect<Heartbeat>();
  clock_.AdvanceMs(3001);
  Begin(9);
  EXPECT_EQ(owner_.fenced, 1);
  EXPECT_EQ(owner_.registered, (std::vector<bool>{false, false}));
  EXPECT_EQ(link_->session(), 9U);
}

TEST_F(SessionLinkTest, MessagesOfOtherSessionsAreIgnored) {
  Begin(7);
  Answer(Fenced{.session = 6});
  Answer(GoodbyeAck{.session = 6});
  Answer(HeartbeatAck{.session = 6, .epoch = kEpoch + 5, .episodes = 99});
  EXPECT_EQ(owner_.fenced, 0);
  EXPECT_TRUE(owner_.messages.empty());
  EXPECT_EQ(owner_.episodes, 0U);
  EXPECT_TRUE(link_->registered());
  Answer(GoodbyeAck{.session = 7});
  EXPECT_EQ(owner_.messages.size(), 1U);
}

TEST_F(SessionLinkTest, RetiredLinkSendsNothingByItselfButStillListens) {
  Begin(7);
  Expect<Heartbeat>();
  link_->Retire();
  clock_.AdvanceMs(10'000);
  EXPECT_TRUE(Heard(20).empty());
  Answer(GoodbyeAck{.session = 7});
  EXPECT_EQ(owner_.messages.size(), 1U);
}

TEST_F(SessionLinkTest, GivesUpAfterTheLongestSilence) {
  Begin(7);
  EXPECT_EQ(Wait(119), "");
  EXPECT_NE(Wait(2).find("--resume"), std::string::npos);
}

TEST_F(SessionLinkTest, GivesUpOnACoordinatorThatRefusesForSoLongWithItsReason) {
  Expect<Register>();
  for (int seconds = 0; seconds < 120; seconds += 2) {
    Answer(Refused{RefuseReason::kLearnerTaken, "run h has a learner"});
    ASSERT_EQ(Wait(2), "");
  }
  EXPECT_EQ(Wait(2), "the coordinator has refused for 120 s: run h has a learner");
}

TEST_F(SessionLinkTest, ProcessThatStoodStillRegistersAgainInsteadOfGivingUp) {
  Begin(7);
  Expect<Heartbeat>();
  clock_.AdvanceMs(200'000);
  EXPECT_EQ(Expect<Register>().previous_session, 7U);
}

// As where a name server does not answer: each attempt takes longer than the silence before it.
TEST_F(SessionLinkTest, TimeThatReconnectingTakesIsSilenceAndNoStandstill) {
  Begin(7);
  server_.reset();
  on_asked_ = [this] { clock_.AdvanceMs(10'000); };
  const std::int64_t began_ns = clock_.NowNs();
  EXPECT_NE(Wait(200).find("no coordinator for 120 s"), std::string::npos);
  EXPECT_LT(clock_.NowNs() - began_ns, 150 * kNanosPerSecond);
}

TEST_F(SessionLinkTest, AnswerReadAfterTheProcessStoodStillBeginsTheSilenceAnew) {
  Begin(7);
  owner_.on_heartbeat = [this] { clock_.AdvanceMs(200'000); };  // between a look and the answer
  ASSERT_EQ(server_->Send(peer_, HeartbeatAck{.session = 7, .epoch = kEpoch}), SendStatus::kOk);
  const std::uint64_t read = link_->stats().messages_in;
  link_->DoWork(10'000);
  ASSERT_GT(link_->stats().messages_in, read);
  owner_.on_heartbeat = nullptr;
  EXPECT_EQ(Wait(119), "");
  EXPECT_NE(Wait(2).find("--resume"), std::string::npos);
}

struct Refusal {
  const char* name;
  RefuseReason reason;
  std::optional<ExitCode> code;  // nothing: it asks again
};

class SessionLinkRefusedTest : public SessionLinkTest,
                               public ::testing::WithParamInterface<Refusal> {};

TEST_P(SessionLinkRefusedTest, EndsOrAsksAgain) {
  Expect<Register>();
  std::optional<ExitCode> code;
  try {
    Answer(Refused{.reason = GetParam().reason, .text = "lanes: here 8, there 4"});
  } catch (const Error& error) {
    code = error.code();
    EXPECT_NE(std::string(error.what()).find("here 8, there 4"), std::string::npos);
  }
  EXPECT_EQ(code, GetParam().code);
  EXPECT_EQ(link_->problem(), "lanes: here 8, there 4");
  if (GetParam().code) return;
  clock_.AdvanceMs(1000);
  Expect<Register>();
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, SessionLinkRefusedTest,
    ::testing::Values(Refusal{"Protocol", RefuseReason::kProtocolVersion, ExitCode::kConfig},
                      Refusal{"Config", RefuseReason::kConfigMismatch, ExitCode::kConfig},
                      Refusal{"NoSlot", RefuseReason::kNoSlot, ExitCode::kTryAgain},
                      Refusal{"Draining", RefuseReason::kDraining, ExitCode::kTryAgain},
                      Refusal{"LearnerTaken", RefuseReason::kLearnerTaken, std::nullopt},
                      Refusal{"SlotsAwaited", RefuseReason::kSlotsAwaited, std::nullopt},
                      Refusal{"StorePaused", RefuseReason::kStorePaused, std::nullopt},
                      Refusal{"Malformed", RefuseReason::kMalformed, std::nullopt}),
    [](const auto& info) { return std::string(info.param.name); });

// Also where it comes after a while: registrations are repeated before the coordinator counts as
// silent.
TEST_F(SessionLinkTest, RefusalThatIsRepeatedIsLoggedOnce) {
  ::testing::internal::CaptureStdout();
  int refused = 0;
  for (int half_seconds = 0; half_seconds < 120; ++half_seconds) {
    if (HeardRegister()) {
      Answer(Refused{.reason = RefuseReason::kStorePaused, .text = "its disk is full"});
      ++refused;
    }
    clock_.AdvanceMs(500);
  }
  Answer(Refused{.reason = RefuseReason::kStorePaused, .text = "its disk fails"});
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_GT(refused, 20);
  EXPECT_EQ(TimesIn(said, "its disk is full"), 1);
  EXPECT_EQ(TimesIn(said, "its disk fails"), 1);
  EXPECT_EQ(TimesIn(said, "does not answer"), 0);
}

// However long its disk is full, the coordinator lives.
TEST_F(SessionLinkTest, MemberWaitsForAStoreThatCannotBeWritten) {
  Expect<Register>();
  for (int i = 0; i < 125; ++i) {  // each answer before the silence of a lost connection
    ASSERT_EQ(Wait(2), "");
    Answer(Refused{.reason = RefuseReason::kStorePaused, .text = "the store cannot be written"});
  }
  EXPECT_EQ(Wait(100), "");
  EXPECT_NE(Wait(30).find("no coordinator for 120 s"), std::string::npos);
}

TEST_F(SessionLinkTest, MemberThatWaitsForSlotsAsksAgainWithoutOne) {
  link_ = std::make_unique<SessionLink>(
      SessionLink::Config{.endpoint = [this] { return endpoint_; }, .waits_for_slots = true},
      owner_, clock_);
  Expect<Register>();
  Answer(Refused{.reason = RefuseReason::kNoSlot, .text = "no replay slot"});
  EXPECT_EQ(link_->problem(), "no replay slot");
  clock_.AdvanceMs(1000);
  Expect<Register>();
}

// A coordinator of another release: raw bytes over a ROUTER.
class ForeignCoordinator {
 public:
  ForeignCoordinator() : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_ROUTER)) {
    const int linger = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof linger);
    EXPECT_EQ(zmq_bind(socket_, "tcp://127.0.0.1:*"), 0);
  }
  ~ForeignCoordinator() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  std::string endpoint() const {
    std::array<char, 64> text = {};
    std::size_t size = text.size();
    EXPECT_EQ(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, text.data(), &size), 0);
    return text.data();
  }
  // Sends `bytes` back to whoever has sent something; false when nobody has yet.
  bool Reply(const std::vector<std::byte>& bytes) {
    std::array<char, 256> id = {};
    const int size = zmq_recv(socket_, id.data(), id.size(), ZMQ_DONTWAIT);
    if (size < 0) return false;
    std::array<char, 4096> body = {};
    EXPECT_GT(zmq_recv(socket_, body.data(), body.size(), 0), 0);
    zmq_send(socket_, id.data(), static_cast<std::size_t>(size), ZMQ_SNDMORE);
    return zmq_send(socket_, bytes.data(), bytes.size(), 0) >= 0;
  }

 private:
  void* context_;
  void* socket_;
};

// A Registered whose envelope carries another protocol version.
std::vector<std::byte> OfAnotherVersion() {
  const auto encoded = Encode(Registered{.session = 7});
  std::vector<std::byte> bytes(encoded.begin(), encoded.end());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{0x20};
    if (Decode(changed).status == DecodeStatus::kWrongVersion) return changed;
  }
  ADD_FAILURE() << "no byte of the message is its version";
  return bytes;
}

TEST(SessionLinkVersionTest, CoordinatorOfAnotherProtocolEndsTheProcessWithTheConfigCode) {
  ForeignCoordinator foreign;
  Owner owner;
  SessionLink link({.endpoint = [&] { return foreign.endpoint(); }}, owner);
  std::optional<ExitCode> code;
  bool replied = false;
  for (int i = 0; i < 2000 && !code; ++i) {
    try {
      link.DoWork(2);
    } catch (const Error& error) {
      code = error.code();
    }
    if (!replied) replied = foreign.Reply(OfAnotherVersion());
  }
  EXPECT_EQ(code, ExitCode::kConfig);
  EXPECT_TRUE(owner.registered.empty());
}

}  // namespace
}  // namespace tetrion::wire
