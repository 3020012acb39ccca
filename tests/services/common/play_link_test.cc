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
                        .close_rings = [this] { closed_ = true; },
                        .rows_left = [this] { return closed_ ? std::uint64_t{23} : 0; }},
        outbox_, drain_, clock);
  }

  // Runs the agent until the coordinator has a message of type T from it. Requests for tokens on
  // the way are noted.
  template <typename T>
  T Expect() {
    for (int i = 0; i < 4000; ++i) {
      (void)agent_->DoWork();
      while (auto received = server_.Receive()) {
        peer_ = received->peer;
        const wire::DecodeResult decoded = wire::Decode(received->bytes);
        if (const auto* request = std::get_if<wire::GrantRequest>(&decoded.message)) {
          requests_.push_back(request->request);
        }
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
    Answer(Welcome(session));
  }
  wire::Registered Welcome(std::uint64_t session, std::uint64_t epoch = 1) const {
    return {.session = session,
            .epoch = epoch,
            .run = "r",
            .run_config = ToText(run_),
            .slots = {2},
            .heartbeat_ms = 20};
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
  std::vector<std::uint64_t> requests_;  // numbers of the requests for tokens that were heard
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

TEST_F(PlayLinkTest, EveryRangeOfAGrantBecomesCredits) {
  BeginSession(7);
  const auto request = Expect<wire::GrantRequest>();
  Answer(wire::Grant{.session = 7,
                     .request = request.request,
                     .ranges = {{.first_id = 0, .max_steps = 500}, {.first_id = 512}}});
  EXPECT_EQ(queue_.size(), 512U);
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

TEST_F(PlayLinkTest, EpisodesThatTheCoordinatorRefusesAreNotCountedAsAcknowledged) {
  BeginSession(7);
  GrantOneRange(0);
  outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = 3}, {.token_id = 4}});
  const auto report = Expect<wire::ReportBatch>();
  Answer(wire::ReportAck{.session = 7, .batch = report.batch, .accepted = 1, .refused = 1});
  EXPECT_EQ(agent_->acknowledged(), 1U);
  EXPECT_EQ(agent_->fenced(), 1U);
}

TEST_F(PlayLinkTest, TokensItDoesNotHoldAreNotGivenBack) {
  BeginSession(7);
  GrantOneRange(0);
  outbox_.PutAbandoned(std::vector<Token>{{.id = 9999}, {.id = 5}}, "reset");
  const auto abandon = Expect<wire::Abandon>();
  ASSERT_EQ(abandon.tokens.size(), 1U);
  EXPECT_EQ(abandon.tokens[0].first_id, 0U);
}

TEST_F(PlayLinkTest, TokensOfAcknowledgedReportsAndReturnsAreHeldNoMore) {
  BeginSession(7);
  GrantOneRange(0);
  outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = 0}, {.token_id = 1}});
  const auto report = Expect<wire::ReportBatch>();
  outbox_.PutAbandoned(std::vector<Token>{{.id = 2}}, "reset");
  const auto abandon = Expect<wire::Abandon>();
  Answer(wire::ReportAck{.session = 7, .batch = report.batch, .accepted = 2});
  Answer(wire::AbandonAck{.session = 7, .request = abandon.request});
  Answer(wire::HeartbeatAck{.session = 7, .epoch = 2});
  EXPECT_EQ(Expect<wire::Register>().held.at(0).held[0], 0xF8);
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
  Answer(Welcome(8));
  const auto request = Expect<wire::GrantRequest>();
  EXPECT_EQ(request.session, 8U);
  EXPECT_EQ(request.request, 1U);  // numbered anew
  EXPECT_EQ(builds_, 1);
}

TEST_F(PlayLinkTest, RingsAreAnnouncedAgainInASessionAfterAFence) {
  BeginSession(7);
  Expect<wire::RingsReady>();
  Answer(wire::RingsAck{.session = 7});
  Answer(wire::Fenced{.session = 7});
  Expect<wire::Register>();
  wire::Registered welcome = Welcome(8);
  welcome.slots = {3};
  Answer(welcome);
  const auto ready = Expect<wire::RingsReady>();
  EXPECT_EQ(ready.session, 8U);
  EXPECT_EQ(ready.rings.at(0).slot, 3);
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
  Answer(Welcome(7, /*epoch=*/2));
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
    Answer(Welcome(7, /*epoch=*/2));
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

TEST_F(PlayLinkGatherTest, FencedSessionsReportsAndReturnsAreCountedAndNotRepeatedInTheNext) {
  Finish(0, 2);
  clock_.AdvanceMs(20);
  Expect<wire::ReportBatch>();
  outbox_.PutAbandoned(std::vector<Token>{{.id = 2}}, "reset");
  Expect<wire::Abandon>();
  Finish(3, 1);  // waits for company
  Answer(wire::Fenced{.session = 7});
  EXPECT_EQ(agent_->fenced(), 3U);
  clock_.AdvanceMs(1000);
  BeginSession(8);
  GrantOneRange(256);
  outbox_.PutAbandoned(std::vector<Token>{{.id = 256}}, "reset");
  const auto abandon = Expect<wire::Abandon>();
  EXPECT_EQ(abandon.request, 1U);
  EXPECT_EQ(abandon.tokens.at(0).first_id, 256U);
  Finish(257, 1);
  clock_.AdvanceMs(20);
  const auto report = Expect<wire::ReportBatch>();
  EXPECT_EQ(report.batch, 1U);
  ASSERT_EQ(report.episodes.size(), 1U);
  EXPECT_EQ(report.episodes[0].token_id, 257U);
}

TEST_F(PlayLinkGatherTest, NoTokensAreAskedForWhileTooManyReportsWaitForTheirAnswers) {
  const auto report = [&](std::uint64_t id) {
    outbox_.PutEpisodes(0, std::vector<EpisodeResult>{{.token_id = id}});
    (void)agent_->DoWork();
    clock_.AdvanceMs(20);
    (void)agent_->DoWork();
  };
  const auto request = Expect<wire::GrantRequest>();
  for (std::uint64_t id = 0; id <= kMaxUnackedBatches; ++id) report(id);
  Answer(wire::Grant{.session = 7, .request = request.request});
  report(kMaxUnackedBatches + 1);
  while (Expect<wire::ReportBatch>().batch < kMaxUnackedBatches + 2) {
  }
  EXPECT_EQ(requests_.back(), request.request);
  for (const std::uint64_t batch : {1U, 2U}) {
    Answer(wire::ReportAck{.session = 7, .batch = batch, .accepted = 1});
  }
  EXPECT_EQ(Expect<wire::GrantRequest>().request, request.request + 1);
}

TEST_F(PlayLinkGatherTest, DrainAsksForNoTokensAgain) {
  Expect<wire::GrantRequest>();
  drain_ = true;
  Expect<wire::Abandon>();
  const std::size_t heard = requests_.size();
  for (int time = 0; time < 2; ++time) {
    clock_.AdvanceMs(1000);
    Expect<wire::Abandon>();  // repeated, and before it whatever else was
  }
  EXPECT_EQ(requests_.size(), heard);
}

TEST_F(PlayLinkGatherTest, DrainThatEndsWithItsTimeTellsOfTheRowsThatTheLearnerHasNotTaken) {
  drain_ = true;
  Expect<wire::Abandon>();
  ::testing::internal::CaptureStdout();
  clock_.AdvanceMs(999);
  EXPECT_FALSE(SaysGoodbye());
  for (int second = 0; second < 10; ++second) {
    clock_.AdvanceMs(999);
    Answer(wire::HeartbeatAck{.session = 7, .epoch = 1, .drain = true});
  }
  const std::string log = ::testing::internal::GetCapturedStdout();
  const std::string said =
      "--drain-timeout is over before the workers were done: the learner has "
      "not taken 23 rows\n";
  ASSERT_NE(log.find(said), std::string::npos) << log;
  EXPECT_EQ(log.find(said), log.rfind(said)) << "once";
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

TEST_F(PlayLinkTest, DrainBeforeTheAnswerToTheRegistrationSaysGoodbyeAndBuildsNothing) {
  Expect<wire::Register>();
  drain_ = true;
  (void)agent_->DoWork();
  Answer(Welcome(7));
  EXPECT_EQ(Expect<wire::Goodbye>().session, 7U);
  EXPECT_EQ(builds_, 0);
  Answer(wire::GoodbyeAck{.session = 7});
  EXPECT_TRUE(agent_->Done());
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
