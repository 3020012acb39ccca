#include "services/learner/rows_metrics.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/lib/wire/key_folder_for_test.h"
#include "tests/services/learner/rows_agent_fixture.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;

using RowsMetricsTest = RowsAgentFixture;

TEST_F(RowsMetricsTest, CountersOfTheAgentAreServed) {
  MetricsRegistry registry;
  RowsMetrics metrics(registry);
  wire::RowsClient actor = Client();
  ListRemote();
  Cycle(2);
  (void)actor.Send(OpenOf(0));
  const auto opened = Hear<wire::RowsOpened>(actor);
  ASSERT_TRUE(opened);
  const std::uint64_t stream = std::get<wire::RowsOpened>(opened->message).stream;
  for (const std::uint64_t first : {0U, 0U, 7U}) {
    (void)actor.Send(wire::RowBatch{stream, first, 2, wire::RowsPacking::kNone},
                     RemoteRows(layout_, 1, first, 2));
  }
  ASSERT_TRUE(Hear<wire::RowsAck>(actor, [](const wire::RowsAck& ack) {
    return !ack.streams.empty() && ack.streams[0].released == 2;
  }));
  wire::RowsClient stranger = Client(9);
  (void)stranger.Send(wire::WeightsGet{1, 0});
  ASSERT_TRUE(Hear<wire::WeightsRefused>(stranger));
  const Deadline deadline = Deadline::AfterMs(10'000);
  while (rows_->counters().gaps.load() == 0 && !deadline.Passed()) (void)rows_->DoWork();
  (void)rows_->DoWork();
  metrics.Refresh(*rows_);
  const std::string text = registry.SerializeText();
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_streams 1"));
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_rows_total{result=\"accepted\"} 2"));
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_rows_total{result=\"duplicate\"} 2"));
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_rows_total{result=\"gap\"} 2"));
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_bytes_total{kind=\"rows\"} " +
                              std::to_string(2 * layout_.row_bytes)));
  EXPECT_THAT(text, HasSubstr("tetrion_learner_remote_weights_refused_total 1"));
  EXPECT_THAT(text, HasSubstr("tetrion_link_messages_total{"));
}

struct Keys {
  Keys() { folder.Allow("actor", actor); }
  wire::KeyFolder folder;
  wire::CurveKeys learner = wire::CurveKeys::Make(), actor = wire::CurveKeys::Make();
};

class EncryptedRowsMetricsTest : private Keys, public RowsAgentFixture {
 protected:
  EncryptedRowsMetricsTest()
      : RowsAgentFixture(wire::ServerSecurity::Make(learner, folder.path())) {}
  wire::ClientSecurity With(const wire::CurveKeys& own) const { return {own, learner.public_key}; }
  const wire::CurveKeys& allowed() const { return actor; }
};

TEST_F(EncryptedRowsMetricsTest, HandshakesOfActorsAreServed) {
  MetricsRegistry registry;
  RowsMetrics metrics(registry);
  wire::RowsClient stranger = Client(9, With(wire::CurveKeys::Make()));
  wire::RowsClient actor = Client(kProcess, With(allowed()));
  (void)actor.Send(wire::RowsPing{});
  ASSERT_TRUE(Hear<wire::RowsAck>(actor));
  const std::string accepted = "peer=\"actors\",result=\"accepted\"} 1";
  const std::string unknown = "peer=\"actors\",result=\"unknown_key\"} 1";
  std::string text;
  const Deadline deadline = Deadline::AfterMs(10'000);
  do {
    (void)rows_->DoWork();
    metrics.Refresh(*rows_);
    text = registry.SerializeText();
  } while (!deadline.Passed() &&
           (text.find(accepted) == std::string::npos || text.find(unknown) == std::string::npos));
  EXPECT_THAT(text, HasSubstr(accepted));
  EXPECT_THAT(text, HasSubstr(unknown));
}

}  // namespace
}  // namespace tetrion::learner
