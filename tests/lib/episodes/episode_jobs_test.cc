#include "lib/episodes/episode_jobs.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::int64_t kPatienceNs = 60 * kNanosPerSecond;

std::shared_ptr<BatchRequest> MakeRequest(int episodes) {
  auto request = std::make_shared<BatchRequest>();
  request->episodes = episodes;
  request->steps = 3;
  return request;
}

struct Keeper final : StagedRows {
  void Release(int row) override { released.push_back(row); }
  std::vector<int> released;
};

TEST(EpisodeJobsTest, HandsOutEveryJobOnceInOrder) {
  EpisodeJobs jobs;
  const auto request = MakeRequest(3);
  jobs.Start(request);
  std::shared_ptr<BatchRequest> taken;
  int job = -1;
  for (int expected = 0; expected < 3; ++expected) {
    ASSERT_EQ(jobs.Take(nullptr, taken, job, 0), TakeResult::kToken);
    EXPECT_EQ(job, expected);
    EXPECT_EQ(taken, request);
  }
  EXPECT_EQ(jobs.Take(nullptr, taken, job, 0), TakeResult::kTimeout);
}

TEST(EpisodeJobsTest, WorkerBoundToARequestGetsNoJobOfAnother) {
  EpisodeJobs jobs;
  const auto old = MakeRequest(2), fresh = MakeRequest(2);
  std::shared_ptr<BatchRequest> taken;
  int job = -1;
  jobs.Start(old);
  ASSERT_EQ(jobs.Take(nullptr, taken, job, 0), TakeResult::kToken);
  jobs.Drop(*old);
  jobs.Start(fresh);
  EXPECT_EQ(jobs.Take(old.get(), taken, job, 0), TakeResult::kTimeout);
  ASSERT_EQ(jobs.Take(nullptr, taken, job, 0), TakeResult::kToken);
  EXPECT_EQ(taken, fresh);
  EXPECT_EQ(job, 0);
}

TEST(EpisodeJobsTest, DropOfAnotherRequestChangesNothing) {
  EpisodeJobs jobs;
  const auto old = MakeRequest(1), fresh = MakeRequest(1);
  jobs.Start(fresh);
  jobs.Drop(*old);
  std::shared_ptr<BatchRequest> taken;
  int job = -1;
  EXPECT_EQ(jobs.Take(nullptr, taken, job, 0), TakeResult::kToken);
}

TEST(EpisodeJobsTest, WaitingWorkerWakesForAJobAndForStop) {
  EpisodeJobs jobs;
  TakeResult first = TakeResult::kTimeout, second = TakeResult::kTimeout;
  std::atomic<bool> took{false};
  std::thread worker([&] {
    std::shared_ptr<BatchRequest> taken;
    int job = -1;
    first = jobs.Take(nullptr, taken, job, kPatienceNs);
    took = true;
    second = jobs.Take(nullptr, taken, job, kPatienceNs);
  });
  jobs.Start(MakeRequest(1));
  while (!took) std::this_thread::yield();
  jobs.Stop();
  worker.join();
  EXPECT_EQ(first, TakeResult::kToken);
  EXPECT_EQ(second, TakeResult::kDrain);
}

TEST(BatchRequestTest, FirstFailureCountsAndCancels) {
  const auto request = MakeRequest(2);
  EXPECT_TRUE(request->FinishInPlace());
  request->Fail(std::make_exception_ptr(std::runtime_error("first")));
  request->Fail(std::make_exception_ptr(std::logic_error("second")));
  EXPECT_FALSE(request->FinishInPlace());
  const MutexLock lock(request->mu);
  EXPECT_EQ(request->finished, 1);
  EXPECT_THROW(std::rethrow_exception(request->error), std::runtime_error);
}

TEST(BatchRequestTest, CancelGivesStagedRowsBack) {
  const auto request = MakeRequest(3);
  Keeper keeper;
  EXPECT_TRUE(request->FinishStaged({&keeper, nullptr, 4}));
  EXPECT_TRUE(request->FinishStaged({&keeper, nullptr, 1}));
  request->Cancel();
  EXPECT_EQ(keeper.released, (std::vector<int>{4, 1}));
  EXPECT_FALSE(request->FinishStaged({&keeper, nullptr, 2}));
  EXPECT_EQ(keeper.released.size(), 2U);  // the row stays the worker's
}

TEST(BatchRequestTest, GivenActionsEndATokenAtMinusOne) {
  const auto request = MakeRequest(3);
  EXPECT_EQ(request->MaxSteps(2), 3U);
  request->actions = {1, 2, 3, 4, -1, -1, 5, 6, -1};
  EXPECT_EQ(request->MaxSteps(0), 3U);
  EXPECT_EQ(request->MaxSteps(1), 1U);
  EXPECT_EQ(request->MaxSteps(2), 2U);
}

}  // namespace
}  // namespace tetrion
