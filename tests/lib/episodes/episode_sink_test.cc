#include "lib/episodes/episode_sink.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace tetrion {
namespace {

constexpr std::uint32_t kRecord = 16;

// The sink driven by hand, as a lane loop drives it.
struct Driver {
  explicit Driver(std::uint32_t lanes, int staging_rows = 0)
      : sink({kRecord, lanes, false}, 4, staging_rows, jobs,
             MakeRecordWriter({.record_bytes = kRecord})) {}

  std::shared_ptr<BatchRequest> Start(int episodes, bool by_completion = false) {
    auto request = std::make_shared<BatchRequest>();
    request->episodes = episodes;
    request->steps = 4;
    request->first_token = 100;
    request->max_lanes_per_worker = episodes;
    request->by_completion = by_completion;
    request->owner = std::make_shared<EpisodeBatch>(episodes, 4, kRecord);
    request->batch = request->owner.get();
    jobs.Start(request);
    return request;
  }
  // Lane `lane` takes the next job, if there is one.
  TakeResult Take(int lane) {
    Token token;
    const TakeResult result = sink.Take(token, 0);
    if (result == TakeResult::kToken) sink.OnToken(lane, token);
    return result;
  }
  // One row of lane 0 (others idle): record filled with `mark`.
  void Row(int mark, std::uint8_t flags, float reward, bool decide = true) {
    RowView row;
    ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
    for (std::size_t l = 0; l < sink.lanes().size(); ++l) row.flags[l] = kIsLast | kTruncated;
    std::memset(row.record, mark, kRecord);
    row.flags[0] = flags;
    row.reward[0] = reward;
    row.action[0] = mark;
    row.log_prob[0] = -1.0F;
    if (decide) {
      ASSERT_TRUE(sink.Observe(
          {.n = static_cast<int>(sink.lanes().size()), .records = row.record, .flags = row.flags}));
    }
    sink.Complete();
  }
  void End(std::uint32_t length) {
    const EpisodeResult result = {
        .token_id = 100, .length_steps = length, .lines = 3, .episode_return = 1.5F};
    sink.OnEpisodes({&result, 1});
  }

  EpisodeJobs jobs;
  EpisodeSink sink;
};

TEST(EpisodeSinkTest, RewardBelongsToTheActionThatEarnedIt) {
  Driver d(1);
  const auto request = d.Start(1);
  ASSERT_EQ(d.Take(0), TakeResult::kToken);
  d.Row(1, kIsFirst, 0.0F);
  d.Row(2, 0, 10.0F);
  d.Row(3, kIsLast | kTerminated, 20.0F);
  d.End(2);
  EpisodeBatch& batch = *request->batch;
  EXPECT_EQ(batch.actions[0], 1);
  EXPECT_EQ(batch.actions[1], 2);
  EXPECT_EQ(batch.actions[2], 0);
  EXPECT_EQ(batch.rewards[0], 10.0F);
  EXPECT_EQ(batch.rewards[1], 20.0F);
  EXPECT_EQ(batch.dones[0], 0);
  EXPECT_EQ(batch.dones[1], 1);
  EXPECT_EQ(static_cast<int>(*batch.Observation(0, 1)), 2);
  EXPECT_EQ(static_cast<int>(*batch.Observation(0, 2)), 0);
  EXPECT_EQ(static_cast<int>(*batch.FinalObservation(0)), 3);
  EXPECT_EQ(batch.lines[0], 3);
  EXPECT_EQ(batch.returns[0], 1.5F);
  EXPECT_EQ(d.sink.request(), nullptr);  // it lets go of the request
  const MutexLock lock(request->mu);
  EXPECT_EQ(request->finished, 1);
}

TEST(EpisodeSinkTest, RefusedRowGivesTheEpisodeUp) {
  Driver d(1);
  const auto request = d.Start(2);
  ASSERT_EQ(d.Take(0), TakeResult::kToken);
  d.Row(1, kIsFirst, 0.0F);
  d.sink.Refuse();
  d.Row(2, kIsLast | kTruncated, 0.0F, false);
  d.End(1);  // of a lane it has given up: ignored
  EXPECT_EQ(d.sink.request(), nullptr);
  const MutexLock lock(request->mu);
  EXPECT_EQ(request->finished, 0);
}

TEST(EpisodeSinkTest, LaneOfACancelledRequestTakesNoJobUntilItIsGivenUp) {
  Driver d(2);
  const auto old = d.Start(5);
  ASSERT_EQ(d.Take(0), TakeResult::kToken);
  old->Cancel();
  d.jobs.Drop(*old);
  const auto fresh = d.Start(2);
  EXPECT_EQ(d.Take(1), TakeResult::kIdle);
  d.Row(1, kIsLast | kTruncated, 0.0F, false);
  EXPECT_EQ(d.Take(1), TakeResult::kToken);
  EXPECT_EQ(d.sink.request(), fresh.get());
}

TEST(EpisodeSinkTest, WithoutAFreeStagingRowThereIsNoJob) {
  Driver d(1, 1);
  const auto request = d.Start(2, true);
  ASSERT_EQ(d.Take(0), TakeResult::kToken);
  d.Row(1, kIsFirst, 0.0F);
  d.Row(2, kIsLast | kTruncated, 1.0F);
  d.End(1);
  EXPECT_EQ(d.Take(0), TakeResult::kIdle);
  {
    const MutexLock lock(request->mu);
    ASSERT_EQ(request->staged.size(), 1U);
    request->batch->CopyRow(0, *request->staged[0].batch, request->staged[0].row);
  }
  d.sink.Release(0);
  EXPECT_EQ(d.Take(0), TakeResult::kToken);
  EXPECT_EQ(request->batch->rewards[0], 1.0F);
  EXPECT_EQ(request->batch->truncated[0], 1);
}

TEST(EpisodeSinkTest, StopDrains) {
  Driver d(1);
  EXPECT_EQ(d.sink.State(), TakeResult::kToken);
  d.jobs.Stop();
  EXPECT_EQ(d.sink.State(), TakeResult::kDrain);
  EXPECT_EQ(d.Take(0), TakeResult::kDrain);
}

}  // namespace
}  // namespace tetrion
