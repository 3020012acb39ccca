// An update after the first ones allocates nothing: the learner's time does not depend on the heap.
// Apart from other tests, since it counts this program's allocations.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "tests/lib/nn/test_envs.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* Allocate(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return Allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tetrion {
namespace {

constexpr int kSteps = 4, kLanes = 40;

// Windows of random states and legal actions; every sixth row of a lane ends an episode. Counts
// what is allocated but for writing the rows, which an actor does.
class RandomSource final : public BatchSource {
 public:
  explicit RandomSource(const EnvSpec& env) : env_(env), rows_(RowsOf(env), 1, kCapacity) {}

  static RowSpec RowsOf(const EnvSpec& env) {
    return {.record_bytes = env.obs.record_bytes, .lanes = kLanes, .has_mask = env.action.has_mask};
  }

  TrainBatch Next() override {
    counting = false;
    ++batches_;
    gate_.BeginGeneration(0);
    for (int t = 0; t <= kSteps; ++t) {
      const Chunk chunk = gate_.Acquire(0, 1, 0);
      RowView row(rows_.layout(), rows_.Row(0, chunk.first));
      row.header->policy_version = 0;
      const auto seed = static_cast<std::uint64_t>(batches_ * (kSteps + 1) + t);
      const std::vector<float> views = testing::RandomViews(env_, kLanes, seed);
      std::memcpy(row.record, views.data(), views.size() * sizeof(float));
      for (int lane = 0; lane < kLanes; ++lane) Fill(row, t, lane);
      gate_.Commit(chunk);
    }
    counting = true;
    return {gate_.OpenLease(1, kSteps + 1, 0), rows_};
  }

 private:
  static constexpr int kCapacity = 64;

  void Fill(RowView& row, int t, int lane) const {
    const bool last = (t + lane) % 6 == 5;
    const int actions = env_.action.count;
    if (env_.action.has_mask) row.mask[lane] = (std::uint64_t{1} << actions) - 1;
    row.action[lane] = last ? 0 : (t + 3 * lane + batches_) % actions;
    row.log_prob[lane] = last ? 0.0F : -std::log(static_cast<float>(actions));
    row.flags[lane] = last ? kIsLast | kTerminated : 0;
    row.cont[lane] = last ? 0.0F : 1.0F;
    row.reward[lane] = static_cast<float>((lane + batches_) % 3);
  }

  const EnvSpec env_;
  int batches_ = 0;
  ReplayGate gate_{{.capacity_rows = kCapacity, .commit_stride = 1},
                   std::make_unique<FifoSelector>(1, kSteps),
                   FifoLimiter(/*batch_windows=*/1)};
  HostRows rows_;
};

EnvSpec EnvOf(const std::string& view) {
  return view == "boards"   ? testing::BoardsEnv()
         : view == "dt"     ? testing::AfterstatesDtEnv()
         : view == "vector" ? testing::VectorEnv()
         : view == "planes" ? testing::MaskedPlanesEnv()
                            : testing::AfterstatesEnv();
}

VtraceConfig ConfigOf(int threads, Precision precision) {
  return {.settings = {.learning_rate = 1e-3,
                       .average_updates = 10,
                       .reuse = 2,
                       .minibatches = 2,
                       .normalise_advantage = true,
                       .ppo_clip = 0.2,
                       .reward_scale = "symlog"},
          .precision = precision,
          .window = kSteps,
          .threads = threads};
}

class SteadyUpdatesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SteadyUpdatesTest, AllocateNothingOnOneThreadOrThreeInEitherPrecision) {
  const EnvSpec env = EnvOf(GetParam());
  for (const auto& [threads, precision] : {std::pair(1, Precision::kF32),
                                           {3, Precision::kF32},
                                           {1, Precision::kBf16},
                                           {3, Precision::kBf16}}) {
    const VtraceConfig config = ConfigOf(threads, precision);
    const auto trainer = MakeVtraceTrainer(config, env, RandomSource::RowsOf(env));
    RandomSource source(env);
    int updates = 0;
    for (int i = 0; i < 12; ++i) {
      if (i == 4) allocations = 0;
      updates += trainer->Step(source, 0).updates;
      counting = false;
    }
    EXPECT_EQ(updates, 12 * 2 * 2);
    EXPECT_EQ(allocations, 0) << threads << " threads";
  }
}

// The acting parameters after one batch.
std::vector<std::byte> Trained(const EnvSpec& env, Precision precision) {
  const auto trainer = MakeVtraceTrainer(ConfigOf(1, precision), env, RandomSource::RowsOf(env));
  RandomSource source(env);
  static_cast<void>(trainer->Step(source, 0));
  counting = false;
  std::vector<std::byte> blob;
  trainer->PolicyBlob(blob);
  return blob;
}

TEST_P(SteadyUpdatesTest, RoundTheirFactorsWhereThatIsAskedForAndTheProcessorGainsByIt) {
  const EnvSpec env = EnvOf(GetParam());
  EXPECT_EQ(Trained(env, Precision::kF32), Trained(env, Precision::kF32));
  const std::string network = ResolveNetworkName("auto", env);
  const bool gains = network != "mlp" &&  // which knows no other precision
                     &BestDenseKernels(Precision::kBf16) != &BestDenseKernels();
  EXPECT_EQ(Trained(env, Precision::kBf16) != Trained(env, Precision::kF32), gains);
}

INSTANTIATE_TEST_SUITE_P(Views, SteadyUpdatesTest,
                         ::testing::Values("features", "dt", "boards", "vector", "planes"),
                         [](const auto& view) { return std::string(view.param); });

}  // namespace
}  // namespace tetrion
