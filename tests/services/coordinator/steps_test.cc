#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

// Steps are counted once, whatever ends: a session, the coordinator, or the actor.
namespace tetrion::coordinator {
namespace {

class StepsTest : public CoordinatorFixture {
 protected:
  std::uint64_t Steps() {
    Pass(2000);
    const std::string status = control_->Status();
    const auto at = status.find("\"env_steps\":");
    return at == std::string::npos ? 0 : std::stoull(status.substr(at + 12));
  }
  void Tell(wire::ControlClient& client, std::uint64_t session, std::uint64_t steps) {
    ASSERT_TRUE(
        Ask<wire::HeartbeatAck>(client, wire::Heartbeat{.session = session, .env_steps = steps})
            .has_value());
  }
};

TEST_F(StepsTest, FencedProcessIsCountedOnNotAgain) {
  auto client = Connect();
  std::uint64_t session = JoinActor(*client).session;
  std::uint64_t steps = 0;
  for (std::uint64_t fence = 0; fence < 4; ++fence) {
    GetGrant(*client, session, 1);
    Tell(*client, session, steps += 700);
    Pass(4000);
    ASSERT_TRUE(Ask<wire::Fenced>(*client, wire::Heartbeat{.session = session}).has_value());
    // Even when it does not say that it had a session.
    session = Join(*client, {.name = "actor-0", .workers = 1}).session;
  }
  Tell(*client, session, steps += 50);
  EXPECT_EQ(Steps(), steps);
  EXPECT_EQ(CheckAccount(), 0);
}

// Killed between two heartbeats: the account has the steps of every episode that it has.
// Fenced, it asked for a session, was told to end before the answer came, and knows the old one.
TEST_F(StepsTest, AGoodbyeEndsAlsoTheSessionThatItsProcessDoesNotKnowYet) {
  auto client = Connect();
  const std::uint64_t old = JoinActor(*client).session;
  Pass(4000);
  ASSERT_NE(Join(*client, {.name = "actor-0", .previous_session = old, .workers = 1}).session, old);
  ASSERT_TRUE(Ask<wire::GoodbyeAck>(*client, wire::Goodbye{.session = old}).has_value());
  Pass(500);
  EXPECT_NE(control_->Status().find("\"actors\":0"), std::string::npos) << control_->Status();
}

TEST_F(StepsTest, StepsAreAccountedWithTheEpisodesThatTheyMade) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  wire::ReportBatch batch = Batch(session, 1, 0, 5);
  batch.env_steps = 64;
  ASSERT_TRUE(Ask<wire::ReportAck>(*client, batch).has_value());
  Crash();
  EXPECT_EQ(Steps(), 64U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(StepsTest, FencedProcessIsCountedOnAfterARestartOfTheCoordinator) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Tell(*client, session, 900);
  Pass(4000);  // fenced
  Crash();
  auto back = Connect(last_process_);
  const std::uint64_t second = Join(*back, {.name = "actor-0", .workers = 1}).session;
  EXPECT_NE(second, session);
  Tell(*back, second, 1000);
  EXPECT_EQ(Steps(), 1000U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(StepsTest, GoodbyeOfAFencedSessionTellsTheLastSteps) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Tell(*client, session, 900);
  Pass(4000);  // fenced
  ASSERT_TRUE(Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 950}).has_value());
  EXPECT_EQ(Steps(), 950U);
  ASSERT_TRUE(Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 950}).has_value());
  EXPECT_EQ(Steps(), 950U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(StepsTest, GoodbyeSaidTwiceCountsOnce) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  ASSERT_TRUE(Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 300}).has_value());
  ASSERT_TRUE(Ask<wire::GoodbyeAck>(*client, wire::Goodbye{session, 300}).has_value());
  EXPECT_EQ(Steps(), 300U);
}

TEST_F(StepsTest, ProcessThatIsNoLongerKnownCountsFromWhatItTellsFirst) {
  auto client = Connect();
  const std::uint64_t session =
      Join(*client, {.name = "actor-0", .previous_session = 99, .workers = 1}).session;
  GetGrant(*client, session, 1);
  Tell(*client, session, 5000);
  EXPECT_EQ(Steps(), 0U);
  Tell(*client, session, 5200);
  EXPECT_EQ(Steps(), 200U);
  EXPECT_EQ(CheckAccount(), 0);
}

TEST_F(StepsTest, CrashBetweenHeartbeatAndStoreLosesNothing) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1);
  Tell(*client, session, 400);
  Crash();  // perhaps before the count was written
  auto back = Connect(last_process_);
  Tell(*back, session, 450);
  EXPECT_EQ(Steps(), 450U);
  EXPECT_EQ(CheckAccount(), 0);
}

}  // namespace
}  // namespace tetrion::coordinator
