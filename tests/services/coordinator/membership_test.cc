#include "services/coordinator/membership.h"

#include <gtest/gtest.h>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

using MembershipTest = CoordinatorFixture;

// Its sender gave that connection up and registered again over another; what the older one lists as
// held lacks what was granted since.
TEST_F(MembershipTest, RegistrationThatArrivesAfterAYoungerOneFreesNothing) {
  auto dead = Connect();
  auto alive = Connect(last_process_);
  const wire::Register older{
      .name = "actor-0", .held_below = ~0ULL, .workers = 1, .registration = 1};
  const std::uint64_t session =
      Join(*alive, {.name = "actor-0", .workers = 1, .registration = 2}).session;
  ASSERT_EQ(GetGrant(*alive, session, 1).ranges.size(), 1U);
  wire::Register stale = older;
  stale.previous_session = session;
  ASSERT_EQ(dead->Send(stale), wire::SendStatus::kOk);
  for (int i = 0; i < 5; ++i) Cycle();
  EXPECT_EQ(dead->Receive(20).status, wire::ReceiveStatus::kTimeout);
  EXPECT_EQ(Ask<wire::ReportAck>(*alive, Batch(session, 1, 0, 60))->accepted, 60U);
  EXPECT_EQ(CheckAccount(), 0);
}

}  // namespace
}  // namespace tetrion::coordinator
