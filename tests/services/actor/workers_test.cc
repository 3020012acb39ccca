#include "services/actor/workers.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/run/run_config.h"
#include "lib/shm/shm_dir.h"
#include "lib/weights/learner_region.h"
#include "tests/lib/shm/scratch_dir.h"
#include "tests/support/no_open_files.h"

namespace tetrion::actor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kRun = 7;

// Workers of one process, built as its coordinator's answer would have them built.
class WorkersTest : public ::testing::Test {
 protected:
  // A run's settings of `lanes` lanes, and its learner's region.
  LearnerRegion BeginRun(int lanes, int ring_rows) {
    run_.lanes = lanes;
    run_.ring_rows = ring_rows;
    ResolveShapes(run_);
    return LearnerRegion::CreateOrAdopt(dir_.path(), kRun, 64, RunConfigHash(run_));
  }
  void Build(const ActorOptions& options) {
    workers_ = std::make_unique<Workers>(options, outbox_, metrics_,
                                         [](const std::exception_ptr&) { FAIL(); });
    workers_->Build({.run_id = kRun, .run_config = ToText(run_), .shm_dir = dir_.path()},
                    /*process=*/5, rings_, queues_);
  }
  std::string StopAndScrape() {
    workers_->Stop();
    workers_->RefreshMetrics();
    return metrics_.SerializeText();
  }

  const ScratchDir dir_;
  RunConfig run_;
  Outbox outbox_;
  MetricsRegistry metrics_;
  std::vector<wire::RingInfo> rings_;
  std::vector<CreditQueue*> queues_;
  std::unique_ptr<Workers> workers_;
};

TEST_F(WorkersTest, WeightsThatNoWorkerCanUseAreToldInFiguresAndMetrics) {
  LearnerRegion learner = BeginRun(/*lanes=*/2, run_.ring_rows);
  learner.MakeWriter().Publish(1, std::vector<std::byte>(8));  // no network is so small
  Build({.workers = 2});
  const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
  while (workers_->Figures().all()[ActorFigure("weights_refused").index()] < 2 &&
         !deadline.Passed()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(workers_->Figures().all()[ActorFigure("weights_refused").index()], 2)
      << "each of the two workers has met them once";
  EXPECT_THAT(StopAndScrape(), HasSubstr("tetrion_actor_weights_refused_total{worker=\"1\"} 1\n"));
}

TEST_F(WorkersTest, AsManyLoopsAsARunTakesHaveFiguresOfTheirOwn) {
  const LearnerRegion learner = BeginRun(/*lanes=*/1, /*ring_rows=*/64);
  ActorOptions options = {.workers = 64};
  options.inference = "streamed";
  options.groups = 4;
  Build(options);
  EXPECT_EQ(rings_.size(), 256U);
  const std::string text = StopAndScrape();
  EXPECT_THAT(text, HasSubstr("tetrion_actor_env_steps_total{worker=\"255\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("\"other\"")));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_answer_seconds_count 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("tetrion_actor_inference_seconds"))) << "the learner decides";
}

// Rings that were never announced are nobody's: the actor's next start finds their room free.
TEST_F(WorkersTest, ActorThatCannotMakeAllItsRingsLeavesNoneBehind) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  for (const char* inference : {"local", "streamed"}) {
    const LearnerRegion learner = BeginRun(/*lanes=*/1, /*ring_rows=*/64);
    ActorOptions options = {.workers = 64};
    options.inference = inference;
    {
      const testing::NoOpenFiles after(8);
      EXPECT_THROW(Build(options), Error) << inference;
    }
    EXPECT_GT(ListRegions(dir_.path()).size(), 2U) << "some were made";
    workers_.reset();
    EXPECT_EQ(ListRegions(dir_.path()).size(), 1U) << "the learner's";
  }
}

}  // namespace
}  // namespace tetrion::actor
