#include "services/common/play_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/run/run_config.h"
#include "lib/wire/codec.h"
#include "lib/wire/socket.h"

namespace tetrion {
namespace {

using wire::Message;

// The agent against a coordinator that the test plays by hand, over a real socket.
class PlayLinkTest : public ::testing::Test {
 protected:
  explicit PlayLinkTest(const Clock& clock = MonotonicClock::Get()) : server_("tcp://127.0.0.1:0") {
    run_.lanes = 4;
    agent_ = std::make_unique<PlayLink>(
        PlayLink::Config{.member = {.name = "actor-0",
                                    .link = {.endpoint = [this] { return server_.endpoint(); }}},
                         .workers = 1},
        PlayLink::Hooks{.build =
                            [this](const wire::Registered&, std::vector<wire::RingInfo>& rings,
                                   std::vector<CreditQueue*>& queues) {
                              ++builds_;
                              if (fail_) throw Error(ExitCode::kTryAgain, "no memory");
                              rings.push_back({.path = "/dev/shm/x/ring"});
                              queues.push_back(&queue_);
                            },
                        .stats = [] { return std::vector<wire::Stat>{}; },
                        .env_steps = [] { return std::uint64_t{42}; },
                        .workers_drained = [this] { return drained_; },
                        .close_rings = [this] { closed_ = true; }},
        outbox_, drain_, clock);
  }

  // Runs the agent until the coordinator has a message of type T from it.
  template <typename T>
  T Expect() {
    for (int i = 0; i < 4000; ++i) {
      (void)agent_->DoWork();
      while (auto received = server_.Receive()) {
        peer_ = received->peer;
        const wire::DecodeResult decoded = wire::Decode(received->bytes);
        if (const T* message = std::get_if<T>(&decoded.message)) return *message;
      }
    }
    ADD_FAILURE() << "the agent never sent it";
    return {};
  }
  // Sends it, and runs the agent until it has it.
  void Answer(const Message& message) {
    const std::uint64_t before = agent_->link_stats().messages_in;
    ASSERT_EQ(server_.Send(peer_, message), wire::SendStatus::kOk);
    for (int i = 0; i < 4000 && agent_->link_stats().messages_in == before; ++i) {
      (void)agent_->DoWork();
    }
    for (int i = 0; i < 20; ++i) (void)agent_->DoWork();
  }
  void BeginSession(std::uint64_t session) {
    Expect<wire::Register>();
    Answer(wire::Registered{.session = session,
                            .epoch = 1,
                            .run = "r",
                            .run_config = ToText(run_),
                            .slots = {2},
                            .heartbeat_ms = 20});
  }
  // Answers the agent's request for tokens with one range.
  void GrantOneRange(std::uint64_t first_id) {
    const auto request = Expect<wire::GrantRequest>();
    Answer(wire::Grant{.session = request.session,
                       .request = request.request,
                       .ranges = {{.first_id = first_id, .attempt = 0, .max_steps = 500}}});
  }

  RunConfig run_;
  wire::ControlServer server_;
  wire::PeerId peer_;
  Outbox outbox_;
  CreditQueue queue_;
  std::atomic<bool> drain_{false};
  int builds_ = 0;
  bool drained_ = false, closed_ = false, fail_ = false;
  std::unique_ptr<PlayLink> agent_;
};

TEST_F(PlayLinkTest, RegistersBuildsOnceAndAnnouncesItsRings) {
  BeginSession(7);
  EXPECT_EQ(builds_, 1);
  const auto ready = Expect<wire::RingsReady>();
  EXPECT_EQ(ready.session, 7U);
  ASSERT_EQ(ready.rings.size(), 1U);
  EXPECT_EQ(ready.rings[0].slot, 2);
  EXPECT_EQ(agent_->Problem(), "");
}

// Its next process would wait for the lease otherwise.
TEST_F(PlayLinkTest, ActorThatCannotBuildItsWorkersSaysGoodbye) {
  fail_ = true;
  EXPECT_THROW(BeginSession(7), Error);
  agent_->OnClose();
  std::optional<wire::Goodbye> goodbye;
  while (auto received = server_.Receive()) {
    const wire::DecodeResult decoded = wire::Decode(received->bytes);
    if (const auto* said = std::get_if<wire::Goodbye>(&decoded.message)) goodbye = *said;
  }
  ASSERT_TRUE(goodbye.has_value());
  EXPECT_EQ(goodbye->session, 7U);
}

TEST_F(PlayLinkTest, GrantsBecomeCreditsOfTheWorker) {
  BeginSession(7);
  GrantOneRange(512);
  EXPECT_EQ(queue_.size(), 256U);
  Token token;
  ASSERT_EQ(queue_.Take(token, 0), TakeResult::kToken);
  EXPECT_EQ(token.id, 512U);
  EXPECT_EQ(token.max_steps, 500U);
}

TEST_F(PlayLinkTest, ReportsAreRepeatedUntilAcknowledged) {
  BeginSession(7);
  GrantOneRange(0);
  outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = 3}, {.token_id = 4}});
  const auto first = Expect<wire::ReportBatch>();
  EXPECT_EQ(first.episodes.size(), 2U);
  EXPECT_EQ(first.env_steps, 42U);
  const auto again = Expect<wire::ReportBatch>();  // the coordinator said nothing
  EXPECT_EQ(again.batch, first.batch);
  Answer(wire::ReportAck{.session = 7, .batch = first.batch, .accepted = 2});
  EXPECT_EQ(agent_->acknowledged(), 2U);
}

TEST_F(PlayLinkTest, EpisodesOfTokensItDoesNotHoldAreCountedNotReported) {
  BeginSession(7);
  GrantOneRange(0);
  outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = 9999}, {.token_id = 5}});
  EXPECT_EQ(Expect<wire::ReportBatch>().episodes.size(), 1U);
  EXPECT_EQ(agent_->fenced(), 1U);
}

TEST_F(PlayLinkTest, FenceCutsTheWorkerAndANewSessionBeginsWithoutTheOldTokens) {
  BeginSession(7);
  GrantOneRange(0);
  Answer(wire::Fenced{.session = 7});
  EXPECT_EQ(queue_.State(), TakeResult::kFenced);
  const auto again = Expect<wire::Register>();
  EXPECT_EQ(again.previous_session, 7U);  // its process is no new one
  EXPECT_TRUE(again.held.empty());
  EXPECT_EQ(again.rings.size(), 1U);  // rings belong to the process
  Answer(wire::Registered{
      .session = 8, .epoch = 1, .run_config = ToText(run_), .slots = {2}, .heartbeat_ms = 20});
  const auto request = Expect<wire::GrantRequest>();
  EXPECT_EQ(request.session, 8U);
  EXPECT_EQ(request.request, 1U);  // numbered anew
  EXPECT_EQ(builds_, 1);
}

TEST_F(PlayLinkTest, FenceOfAnotherSessionIsIgnored) {
  BeginSession(7);
  Answer(wire::Fenced{.session = 6});
  EXPECT_EQ(queue_.State(), TakeResult::kToken);
}

TEST_F(PlayLinkTest, RestartedCoordinatorIsToldWhatIsHeld) {
  BeginSession(7);
  GrantOneRange(256);
  const auto beat = Expect<wire::Heartbeat>();
  EXPECT_EQ(beat.env_steps, 42U);
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 2});
  const auto again = Expect<wire::Register>();
  EXPECT_EQ(again.previous_session, 7U);
  ASSERT_EQ(again.held.size(), 1U);
  EXPECT_EQ(again.held[0].first_id, 256U);
  Answer(wire::Registered{
      .session = 7, .epoch = 2, .run_config = ToText(run_), .slots = {2}, .heartbeat_ms = 20});
  EXPECT_EQ(queue_.State(), TakeResult::kToken);  // the session goes on
  EXPECT_EQ(queue_.size(), 256U);
}

TEST_F(PlayLinkTest, RunThatWasResumedWithOtherSettingsEndsIt) {
  BeginSession(7);
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 2});
  Expect<wire::Register>();
  run_.vtrace.learning_rate = 0.5;
  try {
    Answer(wire::Registered{
        .session = 7, .epoch = 2, .run_config = ToText(run_), .slots = {2}, .heartbeat_ms = 20});
    ADD_FAILURE() << "it goes on with the old settings";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  }
}

TEST_F(PlayLinkTest, DrainReturnsTokensReportsTheRestAndSaysGoodbye) {
  BeginSession(7);
  GrantOneRange(0);
  Token playing;
  ASSERT_EQ(queue_.Take(playing, 0), TakeResult::kToken);
  drain_ = true;
  std::size_t returned = 0;
  const auto abandon = Expect<wire::Abandon>();
  EXPECT_EQ(abandon.reason, "drain");
  for (const std::uint8_t byte : abandon.tokens.at(0).held) {
    returned += static_cast<std::size_t>(__builtin_popcount(byte));
  }
  EXPECT_EQ(returned, 255U);
  Answer(wire::AbandonAck{.session = 7, .request = abandon.request});
  EXPECT_FALSE(closed_);  // the worker has not cut its lanes yet
  outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = playing.id}});
  drained_ = true;
  const auto report = Expect<wire::ReportBatch>();
  Answer(wire::ReportAck{.session = 7, .batch = report.batch, .accepted = 1});
  EXPECT_TRUE(closed_);
  EXPECT_EQ(Expect<wire::Goodbye>().env_steps, 42U);
  EXPECT_FALSE(agent_->Done());
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(agent_->Done());
}

TEST_F(PlayLinkTest, DrainAskedForByTheCoordinatorIsADrainToo) {
  BeginSession(7);
  GrantOneRange(0);
  Expect<wire::Heartbeat>();
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .drain = true});
  EXPECT_EQ(queue_.State(), TakeResult::kDrain);
}

TEST_F(PlayLinkTest, RefusalWithBothValuesEndsTheProcessWithTheConfigCode) {
  Expect<wire::Register>();
  try {
    Answer(wire::Refused{.reason = wire::RefuseReason::kConfigMismatch,
                         .text = "lanes: here 8, the run has 4"});
    FAIL() << "a contradiction must not be ignored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("here 8, the run has 4"), std::string::npos);
  }
}

// The same under a clock that the test moves.
class PlayLinkGatherTest : public PlayLinkTest {
 protected:
  PlayLinkGatherTest() : PlayLinkTest(clock_) {}

  void SetUp() override {
    BeginSession(7);
    GrantOneRange(0);
  }
  void Finish(std::uint64_t first, std::uint64_t count) {
    std::vector<EpisodeResult> episodes;
    for (std::uint64_t id = first; id < first + count; ++id) episodes.push_back({.token_id = id});
    outbox_.PutEpisodes(0, episodes);
    for (int i = 0; i < 5; ++i) (void)agent_->DoWork();
  }

  // Whether a goodbye is among what the agent says now.
  bool SaysGoodbye() {
    bool said = false;
    for (int i = 0; i < 20; ++i) {
      (void)agent_->DoWork();
      while (auto received = server_.Receive()) {
        said |= std::holds_alternative<wire::Goodbye>(wire::Decode(received->bytes).message);
      }
    }
    return said;
  }

  static inline FakeClock clock_;  // begun before the agent, and outlives it
};

TEST_F(PlayLinkGatherTest, FinishedEpisodesWaitForCompany) {
  Finish(0, 1);
  Finish(1, 3);
  clock_.AdvanceMs(19);
  Finish(4, 1);
  clock_.AdvanceMs(1);
  EXPECT_EQ(Expect<wire::ReportBatch>().episodes.size(), 5U);
}

TEST_F(PlayLinkGatherTest, EnoughFinishedEpisodesGoOutAtOnce) {
  Finish(0, 255);
  Finish(255, 1);
  EXPECT_EQ(Expect<wire::ReportBatch>().episodes.size(), 256U);
}

// As while the coordinator's store is paused: heartbeats are answered, reports are not.
TEST_F(PlayLinkGatherTest, DrainGivesUpOnReportsThatAreNotAcknowledged) {
  Token playing;
  ASSERT_EQ(queue_.Take(playing, 0), TakeResult::kToken);
  drain_ = true;
  const auto abandon = Expect<wire::Abandon>();
  Answer(wire::AbandonAck{.session = 7, .request = abandon.request});
  Finish(playing.id, 1);
  drained_ = true;
  for (int second = 0; second < 5; ++second) {
    EXPECT_FALSE(SaysGoodbye()) << second;
    Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .drain = true});
    clock_.AdvanceMs(999);
  }
  clock_.AdvanceMs(999);
  EXPECT_TRUE(SaysGoodbye());
}

TEST_F(PlayLinkTest, DrainBeforeAnySessionIsDoneWithoutOne) {
  drain_ = true;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(agent_->DoWork(), 0);
  EXPECT_TRUE(agent_->Done());
  EXPECT_FALSE(server_.Receive().has_value()) << "it has nothing to say";
  EXPECT_EQ(builds_, 0);
}

TEST(PlayLinkUnreachableTest, UnreachableCoordinatorIsTheProblemAndEndsInTryAgain) {
  FakeClock clock;
  Outbox outbox;
  std::atomic<bool> drain{false};
  PlayLink agent({.member = {.name = "a", .link = {.endpoint = [] { return std::string(); }}}},
                 {.build = nullptr}, outbox, drain, clock);
  (void)agent.DoWork();
  EXPECT_NE(agent.Problem(), "");
  try {
    for (int i = 0; i < 2 * 121; ++i) {
      clock.AdvanceMs(500);  // more at once would be this process's own standstill
      (void)agent.DoWork();
    }
    FAIL() << "waiting for ever is not an option";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  }
}

}  // namespace
}  // namespace tetrion
