#include "services/coordinator/control_metrics.h"

#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

class ControlMetricsTest : public CoordinatorFixture {
 protected:
  std::string Ended(const std::string& reason) const {
    const std::string name = "tetrion_coordinator_sessions_ended_total{reason=\"" + reason + "\"} ";
    const std::string text = registry_->SerializeText();
    const std::size_t at = text.find(name);
    if (at == std::string::npos) return "missing";
    return text.substr(at + name.size(), text.find('\n', at) - at - name.size());
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

}  // namespace
}  // namespace tetrion::coordinator
