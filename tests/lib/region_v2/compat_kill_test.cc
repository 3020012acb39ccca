#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmath>

#include "lib/core/philox.h"
#include "lib/shm/bell.h"
#include "tests/lib/region_v2/compat_world.h"
#include "tests/lib/shm/scratch_dir.h"

// kill -9 of either end at random points: whoever is left notices, whoever comes anew takes over,
// and every episode that runs afterwards is whole.
namespace tetrion {
namespace {

constexpr int kRounds = 200;
constexpr int kEpisodeSteps = 50;

// In memory shared with the children.
struct Shared {
  std::atomic<std::uint32_t> steps;    // good ones, by whatever kernel
  std::atomic<std::uint32_t> wrong;    // observations that no episode has
  std::atomic<std::uint32_t> corrupt;  // kCorrupt results and Errors
  std::atomic<std::uint32_t> seq_errors;
};

CompatEndConfig QuickConfig(bool stream) {
  CompatEndConfig config;
  config.stream = stream;
  config.wait = {.spins = 200,
                 .yields = 8,
                 .peer_timeout_ns = 2 * kNanosPerSecond,
                 .answer_timeout_ns = 4 * kNanosPerSecond};
  return config;
}

bool Fits(const CompatObs& obs, float episode) {
  return obs.obs[0] == static_cast<float>(10 * obs.seq) + episode && obs.obs[3] == obs.obs[0] + 3;
}

void PlayForever(const std::string& path, bool stream, Shared& shared) {
  const CompatRegion region = CompatRegion::Open(path, CompatRole::kKernel);
  CompatKernel kernel(region.memory(), QuickConfig(stream));
  while (true) {
    CompatObs obs;
    CompatResult result = kernel.Reset(obs);
    const float episode = obs.obs[0];
    while (result == CompatResult::kOk && obs.done < 0.5F) {
      if (!Fits(obs, episode)) ++shared.wrong;
      result = kernel.Step(static_cast<std::uint16_t>(obs.seq % 2), obs);
      if (result == CompatResult::kOk) ++shared.steps;
    }
    if (result == CompatResult::kOk && obs.seq != kEpisodeSteps) ++shared.wrong;
    if (result == CompatResult::kSeqError) ++shared.seq_errors;
    if (result == CompatResult::kCorrupt) ++shared.corrupt;
  }
}

void ServeForever(const std::string& path, bool stream, Shared& shared) {
  const CompatRegion region =
      CompatRegion::Open(path, CompatRole::kHost, kCompatRegionBytes, 30 * kNanosPerSecond);
  CountingEnv env(kEpisodeSteps);
  CompatHost host(region.memory(), env, QuickConfig(stream), 30 * kNanosPerSecond);
  host.SetWeights({1, 2, 3, 4});
  while (true) {
    const CompatResult result = host.Serve(kNanosPerSecond);
    if (result == CompatResult::kSeqError) ++shared.seq_errors;
    if (result == CompatResult::kCorrupt) ++shared.corrupt;
  }
}

template <typename Body>
pid_t Spawn(Shared& shared, Body&& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body();
  } catch (const Error&) {
    ++shared.corrupt;
  }
  _exit(1);
}

void Kill(pid_t pid) {
  kill(pid, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "it had ended or aborted: status " << status;
}

class CompatKillTest : public ::testing::TestWithParam<bool> {};

TEST_P(CompatKillTest, SurvivorAndSuccessorGoOnAfterKillsAtRandomPoints) {
  const bool stream = GetParam();
  const ScratchDir scratch;
  const std::string path = scratch.path() + "/region";
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Shared& shared = *new (memory) Shared{};
  const auto start_kernel = [&] {
    return Spawn(shared, [&] { PlayForever(path, stream, shared); });
  };
  const auto start_host = [&] {
    return Spawn(shared, [&] { ServeForever(path, stream, shared); });
  };
  pid_t kernel = start_kernel();
  pid_t host = start_host();
  bool alive = true;
  for (std::uint32_t round = 0; round < kRounds / 2 && alive; ++round) {
    const PhiloxBlock draw = PhiloxDraw(5, stream, round, PhiloxPurpose::kSampler);
    const std::uint32_t target = shared.steps + 1 + draw.word[0] % 120;
    const Deadline deadline = Deadline::AfterMs(60'000);
    while (static_cast<std::int32_t>(shared.steps - target) < 0 && !deadline.Passed()) {
      static_cast<void>(FutexWait(shared.wrong, shared.wrong, 50'000));
    }
    alive = static_cast<std::int32_t>(shared.steps - target) >= 0;
    EXPECT_TRUE(alive) << "stuck in round " << round;
    for (volatile std::uint32_t spin = draw.word[1] % 20'000; spin > 0;) spin = spin - 1;
    if (draw.word[2] % 3 != 0) Kill(kernel), kernel = start_kernel();
    if (draw.word[2] % 3 != 1) Kill(host), host = start_host();
  }
  Kill(kernel);
  Kill(host);
  EXPECT_EQ(shared.wrong, 0U);
  EXPECT_EQ(shared.corrupt, 0U);
  EXPECT_EQ(shared.seq_errors, 0U);
  const CompatRegion region = CompatRegion::Open(path, CompatRole::kKernel);
  EXPECT_TRUE(CompatProblems(region.memory()).empty());
  munmap(memory, sizeof(Shared));
}

INSTANTIATE_TEST_SUITE_P(Modes, CompatKillTest, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Streamed" : "Fallback"; });

}  // namespace
}  // namespace tetrion
