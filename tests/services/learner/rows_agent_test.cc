#include "services/learner/rows_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/services/learner/rows_agent_fixture.h"

namespace tetrion::learner {
namespace {

using RowsAgentTest = RowsAgentFixture;

TEST_F(RowsAgentTest, RowsTravelFromAnActorIntoTheReplay) {
  wire::RowsClient actor = Client();
  ListRemote();
  Cycle(2);
  ASSERT_EQ(actor.Send(OpenOf(0)), wire::SendStatus::kOk);
  const auto opened = Hear<wire::RowsOpened>(actor);
  ASSERT_TRUE(opened);
  const std::uint64_t stream = std::get<wire::RowsOpened>(opened->message).stream;
  std::vector<std::byte> packed;
  ASSERT_EQ(wire::RowsPacker().Pack(RemoteRows(layout_, 1, 4, 4), packed),
            wire::RowsPacking::kZstd);
  (void)actor.Send(wire::RowBatch{stream, 0, 4, wire::RowsPacking::kNone},
                   RemoteRows(layout_, 1, 0, 4));
  (void)actor.Send(wire::RowBatch{stream, 4, 4, wire::RowsPacking::kZstd}, packed);
  (void)actor.Send(wire::CloseRows{stream, 8});
  const auto over = Hear<wire::RowsAck>(actor, [](const wire::RowsAck& ack) {
    return !ack.streams.empty() && ack.streams[0].closed && ack.streams[0].released == 8;
  });
  ASSERT_TRUE(over);
  EXPECT_EQ(RowsIn(0), 8U);
  EXPECT_EQ(rows_->counters().rows.load(), 8U);
  EXPECT_GE(rows_->link_stats().messages_in, 4U);
}

TEST_F(RowsAgentTest, ActorWithAStreamDownloadsTheWeightsThatAPingHasNamed) {
  wire::RowsClient actor = Client();
  ListRemote();
  Cycle(2);
  ASSERT_EQ(actor.Send(OpenOf(0)), wire::SendStatus::kOk);
  ASSERT_TRUE(Hear<wire::RowsOpened>(actor));
  std::vector<std::byte> blob(kBlobBytes, std::byte{4});
  publisher_.Publish(6, blob);
  std::vector<std::byte> got;
  const std::function<bool(const wire::RowsAck&)> named = [](const wire::RowsAck& ack) {
    return ack.weights_version == 6;
  };
  std::optional<wire::RowsReceived> ack;
  const Deadline deadline = Deadline::AfterMs(10'000);
  while (!ack && !deadline.Passed()) {
    (void)actor.Send(wire::RowsPing{});
    const auto heard = Hear<wire::RowsAck>(actor);
    ASSERT_TRUE(heard);
    if (named(std::get<wire::RowsAck>(heard->message))) ack.emplace();
  }
  ASSERT_TRUE(ack);
  for (const std::uint32_t chunk : {0U, 1U}) {
    (void)actor.Send(wire::WeightsGet{6, chunk});
    const auto part = Hear<wire::WeightsChunk>(actor);
    ASSERT_TRUE(part);
    const auto bytes = part->payload.bytes();
    got.insert(got.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(std::get<wire::WeightsChunk>(part->message).hash, WeightsHash(blob, 6));
  }
  EXPECT_EQ(got, blob);
  EXPECT_EQ(rows_->weights_bytes(), kBlobBytes);
  (void)actor.Send(wire::WeightsGet{5, 0});
  const auto gone = Hear<wire::WeightsGone>(actor);
  ASSERT_TRUE(gone);
  EXPECT_EQ(std::get<wire::WeightsGone>(gone->message).newest, 6U);
}

TEST_F(RowsAgentTest, ProcessWithoutAStreamOfThisRunGetsNoWeightsAndIsTold) {
  publisher_.Publish(6, std::vector<std::byte>(kBlobBytes, std::byte{4}));
  wire::RowsClient actor = Client();
  ListRemote();
  Cycle(2);
  ASSERT_EQ(actor.Send(OpenOf(0)), wire::SendStatus::kOk);
  ASSERT_TRUE(Hear<wire::RowsOpened>(actor));
  wire::RowsClient stranger = Client(kProcess + 1);
  wire::RowsClient elsewhere(
      {.endpoint = endpoint_, .identity = {.run_id = kRun + 1, .process = kProcess}});
  std::uint64_t refused = 0;
  for (wire::RowsClient* client : {&stranger, &elsewhere}) {
    (void)client->Send(wire::RowsPing{});
    const auto alive = Hear<wire::RowsAck>(*client);
    ASSERT_TRUE(alive) << "it hears that a learner is there";
    EXPECT_EQ(std::get<wire::RowsAck>(alive->message).weights_version, 0U);
    (void)client->Send(wire::WeightsGet{6, 0});
    const auto answer = Hear<wire::WeightsRefused>(*client);
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<wire::WeightsRefused>(answer->message).version, 6U);
    EXPECT_NE(std::get<wire::WeightsRefused>(answer->message).text.find("open a stream first"),
              std::string::npos);
    EXPECT_EQ(rows_->weights_refused(), ++refused);
  }
  EXPECT_EQ(rows_->weights_bytes(), 0U);
}

TEST_F(RowsAgentTest, AgentWithoutActorsWaitsAndGoesOn) {
  EXPECT_EQ(rows_->name(), "rows");
  EXPECT_EQ(rows_->DoWork(), 1);
  EXPECT_EQ(rows_->counters().streams.load(), 0U);
}

}  // namespace
}  // namespace tetrion::learner
