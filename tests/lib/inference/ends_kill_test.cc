// kill -9 of either end of a stream at random moments: the other goes on, no row is torn.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/inference/env_end.h"
#include "lib/inference/policy_end.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kRun = 78;
constexpr std::size_t kLanes = 4;
constexpr std::int32_t kActions = 7;
constexpr int kRounds = 100;
constexpr std::int64_t kSlowNs = 20 * kNanosPerSecond;  // only a hang takes so long

const RowLayout& Row() {
  static const RowLayout layout({.record_bytes = 16, .lanes = kLanes});
  return layout;
}

// What lane `lane` of row `row` holds, and what must be answered to it.
std::uint64_t Tag(std::uint64_t row, std::size_t lane) {
  return (row * 31 + lane) * 0x9E3779B97F4A7C15;
}
std::int32_t RightAction(std::uint64_t tag) {
  return static_cast<std::int32_t>(tag >> 40) % kActions;
}

void WriteRow(RingProducer& obs) {
  RingProducer::Loan loan = obs.Claim();
  if (!loan.ok()) return;
  std::memset(loan.record(), 0, Row().row_bytes);
  const RowView row(Row(), loan.record());
  row.header->row = obs.completed();
  for (std::size_t l = 0; l < kLanes; ++l) {
    const std::uint64_t tag = Tag(obs.completed(), l);
    const std::uint64_t words[2] = {tag, ~tag};
    std::memcpy(row.record + 16 * l, words, sizeof words);
  }
  loan.Complete();
  obs.Publish();
}

// The row as a reader finds it; false when it is torn.
bool Whole(const RowView& row, std::uint64_t number) {
  if (row.header->row != number) return false;
  for (std::size_t l = 0; l < kLanes; ++l) {
    std::uint64_t words[2];
    std::memcpy(words, row.record + 16 * l, sizeof words);
    if (words[0] != Tag(number, l) || words[1] != ~words[0]) return false;
  }
  return true;
}

// Answers whatever there is and releases it, as inference and ingest do together.
void Serve(PolicyEnd& policy_end, RingConsumer& ingest) {
  (void)policy_end.Poll();
  std::byte* memory = policy_end.Next();
  if (memory != nullptr) {
    const RowView row(Row(), memory);
    if (!Whole(row, policy_end.next_row())) _exit(3);
    std::int32_t actions[kLanes];
    constexpr float kLogProbs[kLanes] = {};
    for (std::size_t l = 0; l < kLanes; ++l) {
      std::uint64_t tag;
      std::memcpy(&tag, row.record + 16 * l, sizeof tag);
      actions[l] = RightAction(tag);
    }
    (void)policy_end.Answer({.action = actions, .log_prob = kLogProbs});
  }
  while (ingest.tail() < policy_end.answered() && ingest.Peek().status == RingStatus::kOk) {
    ingest.Release(1);
  }
}

// A worker with an environment's end; the test calls its turns.
struct Worker {
  Worker(const std::string& dir, std::uint32_t number) : layout(Row(), 16) {
    EnvEnd::Ends ends =
        EnvEnd::Create(dir, StreamName(kRun, getpid(), number, 0), kRun, layout, kActions);
    obs.emplace(std::move(ends.obs));
    env_end = std::move(ends.env_end);
    env_end->Place({.published = [this] { return obs->published(); },
                    .set_obs_bell = [](Bell) {},
                    .learner = {.shm_dir = dir, .run_id = kRun, .spec_hash = 1}});
  }
  // One turn of a worker; true when an answer was taken. EXPECTs that it was right.
  bool Turn() {
    if (!asked) {
      if (env_end->Look(kNanosPerMilli) != AnswererState::kReady) return false;
      WriteRow(*obs);
      asked = true;
    }
    std::int32_t actions[kLanes];
    std::uint32_t version = 0;
    const std::uint64_t row = obs->published() - 1;
    switch (env_end->Take(row, actions, version, kNanosPerMilli)) {
      case AnswerResult::kTimeout:
        return false;
      case AnswerResult::kReset:
        asked = false;
        ++resets;
        return false;
      case AnswerResult::kAnswer:
        break;
      default:
        ADD_FAILURE() << env_end->problem();
        return false;
    }
    asked = false;
    for (std::size_t l = 0; l < kLanes; ++l) EXPECT_EQ(actions[l], RightAction(Tag(row, l)));
    return true;
  }

  StreamLayout layout;
  std::optional<RingProducer> obs;
  std::unique_ptr<EnvEnd> env_end;
  bool asked = false;
  int resets = 0;
};

[[noreturn]] void RunPolicyEnd(const std::string& path) {
  PolicyEnd policy_end = PolicyEnd::Attach(path, Row(), kRun);
  RingConsumer ingest = RingConsumer::Attach(path, Row().Hash(), {}, RegionKind::kStream);
  while (true) Serve(policy_end, ingest);
}

void KillAndReap(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it found a torn row: exit " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGKILL) << "it aborted";
}

std::int64_t RandomNs(int round, std::int64_t most_ns) {
  const PhiloxBlock draw =
      PhiloxDraw(11, static_cast<std::uint64_t>(round), 0, PhiloxPurpose::kSampler);
  return static_cast<std::int64_t>(draw.word[0]) * most_ns >> 32;
}

TEST(StreamEndsKillTest, EnvEndOutlivesPolicyEndsKilledAtRandom) {
  const ScratchDir scratch;
  Worker worker(scratch.path(), 1);
  const std::string path = worker.obs->region()->path();
  const Clock& clock = MonotonicClock::Get();
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) RunPolicyEnd(path);
    const Deadline kill_at(clock, RandomNs(round, 4 * kNanosPerMilli));
    while (!kill_at.Passed()) (void)worker.Turn();
    KillAndReap(child);
  }
  // Then a policy's end that is left alone.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) RunPolicyEnd(path);
  const Deadline deadline(clock, kSlowNs);
  for (int answers = 0; answers < 1000 && !deadline.Passed();) answers += worker.Turn() ? 1 : 0;
  EXPECT_FALSE(deadline.Passed());
  KillAndReap(child);
  EXPECT_GT(worker.resets, 0);
}

TEST(StreamEndsKillTest, PolicyEndSeesEveryEnvEndsDeathAndOnlyWholeRows) {
  const ScratchDir scratch;
  std::uint64_t rows = 0;
  for (int round = 0; round < kRounds; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Worker worker(scratch.path(), static_cast<std::uint32_t>(round));
      const std::string path = worker.obs->region()->path();
      if (write(ready[1], path.c_str(), path.size() + 1) < 0) _exit(4);
      while (true) (void)worker.Turn();
    }
    char path[256] = {};
    ASSERT_GT(read(ready[0], path, sizeof path - 1), 0);
    close(ready[0]);
    close(ready[1]);
    PolicyEnd policy_end = PolicyEnd::Attach(path, Row(), kRun);
    RingConsumer ingest = RingConsumer::Attach(path, Row().Hash(), {}, RegionKind::kStream);
    const Deadline kill_at(MonotonicClock::Get(), RandomNs(round, 4 * kNanosPerMilli));
    while (!kill_at.Passed()) Serve(policy_end, ingest);
    KillAndReap(child);
    EXPECT_FALSE(ingest.OwnerAlive());
    // What it had published is still there, whole.
    for (int i = 0; i < 64; ++i) Serve(policy_end, ingest);
    EXPECT_EQ(policy_end.Next(), nullptr);
    rows += policy_end.answered();
    ingest.Unlink();
  }
  EXPECT_GT(rows, 100U);
}

}  // namespace
}  // namespace tetrion
