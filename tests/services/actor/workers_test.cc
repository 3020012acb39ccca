#include "services/actor/workers.h"

#include <gmock/gmock.h>

#include <thread>

#include "lib/run/run_config.h"
#include "lib/weights/learner_region.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion::actor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kRun = 7;

TEST(WorkersTest, WeightsThatNoWorkerCanUseAreToldInFiguresAndMetrics) {
  const ScratchDir dir;
  RunConfig run;
  run.lanes = 2;
  ResolveShapes(run);
  LearnerRegion learner = LearnerRegion::CreateOrAdopt(dir.path(), kRun, 64, RunConfigHash(run));
  learner.MakeWriter().Publish(1, std::vector<std::byte>(8));  // no network is so small

  const ActorOptions options = {.workers = 2};
  Outbox outbox;
  MetricsRegistry metrics;
  Workers workers(options, outbox, metrics, [](const std::exception_ptr&) { FAIL(); });
  std::vector<wire::RingInfo> rings;
  std::vector<CreditQueue*> queues;
  workers.Build({.run_id = kRun, .run_config = ToText(run), .shm_dir = dir.path()},
                /*process=*/5, rings, queues);
  const Deadline deadline(MonotonicClock::Get(), 20 * kNanosPerSecond);
  while (workers.Figures().all()[ActorFigure("weights_refused").index()] < 2 &&
         !deadline.Passed()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(workers.Figures().all()[ActorFigure("weights_refused").index()], 2)
      << "each of the two workers has met them once";
  workers.Stop();
  workers.RefreshMetrics();
  EXPECT_THAT(metrics.SerializeText(),
              HasSubstr("tetrion_actor_weights_refused_total{worker=\"1\"} 1\n"));
}

TEST(WorkersTest, AsManyLoopsAsARunTakesHaveFiguresOfTheirOwn) {
  const ScratchDir dir;
  RunConfig run;
  run.lanes = 1;
  run.ring_rows = 64;
  ResolveShapes(run);
  const LearnerRegion learner =
      LearnerRegion::CreateOrAdopt(dir.path(), kRun, 64, RunConfigHash(run));
  ActorOptions options = {.workers = 64};
  options.inference = "streamed";
  options.groups = 4;
  Outbox outbox;
  MetricsRegistry metrics;
  Workers workers(options, outbox, metrics, [](const std::exception_ptr&) { FAIL(); });
  std::vector<wire::RingInfo> rings;
  std::vector<CreditQueue*> queues;
  workers.Build({.run_id = kRun, .run_config = ToText(run), .shm_dir = dir.path()},
                /*process=*/5, rings, queues);
  EXPECT_EQ(rings.size(), 256U);
  workers.Stop();
  workers.RefreshMetrics();
  const std::string text = metrics.SerializeText();
  EXPECT_THAT(text, HasSubstr("tetrion_actor_env_steps_total{worker=\"255\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("\"other\"")));
}

}  // namespace
}  // namespace tetrion::actor
