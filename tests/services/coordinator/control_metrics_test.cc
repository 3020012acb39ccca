#include "services/coordinator/control_metrics.h"

#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

class ControlMetricsTest : public CoordinatorFixture {
 protected:
  // The value that is scraped of a series.
  std::string Scraped(const std::string& series) const {
    const std::string text = registry_->SerializeText();
    const std::string start_of_line = "\n" + series + " ";
    const std::size_t at = text.find(start_of_line);
    if (at == std::string::npos) return "missing";
    const std::size_t value = at + start_of_line.size();
    return text.substr(value, text.find('\n', value) - value);
  }
  std::string Ended(const std::string& reason) const {
    return Scraped("tetrion_coordinator_sessions_ended_total{reason=\"" + reason + "\"}");
  }
  std::string Tokens(const std::string& event) const {
    return Scraped("tetrion_coordinator_tokens_total{event=\"" + event + "\"}");
  }
  std::string AllEnded() const {
    return Ended("goodbye") + Ended("died") + Ended("lease") + Ended("refused");
  }
};

TEST_F(ControlMetricsTest, EndedSessionsAreCountedByTheReasonTheyEndedFor) {
  EXPECT_EQ(AllEnded(), "0000") << "every reason is there from the start";
  auto leaves = Connect();
  Ask<wire::GoodbyeAck>(*leaves, wire::Goodbye{JoinActor(*leaves).session, 0});
  EXPECT_EQ(AllEnded(), "1000");

  auto learner = Connect(), dies = Connect();
  const std::uint64_t learner_session = JoinLearner(*learner).session;
  const wire::Registered joined = JoinActor(*dies);
  const wire::RingInfo ring{"/dev/shm/x/ring.1", 0, joined.slots[0], joined.session};
  Ask<wire::RingsAck>(*dies, wire::RingsReady{joined.session, {ring}});
  Ask<wire::RingList>(*learner,
                      wire::RingGone{learner_session, ring.path, wire::RingEnd::kOwnerDead, ""});
  Cycle();
  EXPECT_EQ(AllEnded(), "1100");

  auto lies = Connect();
  const std::uint64_t session = JoinActor(*lies).session;
  const std::uint64_t too_many = std::uint64_t{1} << 62;
  Ask<wire::Refused>(*lies, wire::Heartbeat{.session = session, .env_steps = too_many});
  EXPECT_EQ(AllEnded(), "1101");

  Pass(4000);  // beyond the learner's lease
  EXPECT_EQ(AllEnded(), "1111");
}

TEST_F(ControlMetricsTest, TokensAreCountedFromTheStartOfThisCoordinator) {
  auto client = Connect();
  const std::uint64_t session = JoinActor(*client).session;
  GetGrant(*client, session, 1, 2);
  Ask<wire::ReportAck>(*client, Batch(session, 1, 0, 60));
  Pass(500);
  EXPECT_EQ(Tokens("issued"), "512");
  EXPECT_EQ(Tokens("done"), "60");
  Crash();
  ASSERT_EQ(stored_.counts.tokens.done, 60U);
  for (const char* event : {"issued", "done", "abandoned", "freed", "duplicate", "refused"}) {
    EXPECT_EQ(Tokens(event), "0") << event;
  }
  EXPECT_EQ(Scraped("tetrion_coordinator_tokens_outstanding"), "452") << "of the run";
  auto other = Connect();
  GetGrant(*other, JoinActor(*other).session, 1);
  Pass(500);
  EXPECT_EQ(Tokens("issued"), "256");
}

}  // namespace
}  // namespace tetrion::coordinator
