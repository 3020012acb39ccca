// An update after the first ones allocates nothing: the learner's time does not depend on the heap.
// Apart from other tests, since it counts this program's allocations.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/rl/vtrace/random_source.h"

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

// Counts what is allocated but for writing the rows, which an actor does.
class CountedSource final : public testing::RandomSource {
 public:
  explicit CountedSource(const EnvSpec& env) : RandomSource(env, kSteps, kLanes) {}
  static RowSpec RowsOf(const EnvSpec& env) { return RandomSource::RowsOf(env, kLanes); }
  TrainBatch Next() override {
    counting = false;
    TrainBatch batch = RandomSource::Next();
    counting = true;
    return batch;
  }
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
    const auto trainer = MakeVtraceTrainer(config, env, CountedSource::RowsOf(env));
    CountedSource source(env);
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
  const auto trainer = MakeVtraceTrainer(ConfigOf(1, precision), env, CountedSource::RowsOf(env));
  CountedSource source(env);
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
