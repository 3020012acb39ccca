#include "services/learner/resident_agent.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "lib/envs/vec_env.h"
#include "lib/replay/selectors/fifo.h"
#include "tests/lib/replay/device_memory.h"

namespace tetrion::learner {
namespace {

constexpr int kGroupLanes = 4, kGroups = 2, kStride = 4, kSteps = 8, kCapacity = 64;
constexpr std::uint32_t kMaxSteps = 30;

struct NoWeights final : WeightsSource {
  bool Refresh(WeightsUser&) override { return there; }
  bool there = true;
};

// Eight CartPole lanes that a random policy plays, as two workers of the account; a trainer that
// the test plays draws windows.
class ResidentAgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* missing = tetrion::testing::DeviceMemory::Missing()) GTEST_SKIP() << missing;
    const cuda::Device device(0);
    const EnvConfig env = {.name = "cartpole", .lanes = kGroupLanes * kGroups, .seed = 7};
    ResidentAgent::Parts parts;
    parts.lanes = std::make_unique<DeviceLanes>(
        device, DeviceLanesConfig{
                    .env = env, .token_capacity = 64, .episode_capacity = 64, .drain_episodes = 3});
    parts.policy = MakeDevicePolicy(device, {.network = "random", .seed = 7, .lanes = env.lanes},
                                    parts.lanes->spec());
    auto weights = std::make_unique<NoWeights>();
    weights_ = weights.get();
    parts.weights = std::move(weights);
    memory_ = std::make_unique<tetrion::testing::DeviceMemory>(
        parts.lanes->row_spec(), 1, kCapacity, LatentSpec{.deter = 2, .stoch = 1});
    agent_ = std::make_unique<ResidentAgent>(
        ResidentAgent::Config{
            .group_lanes = kGroupLanes, .commit_stride = kStride, .wait_ns = kNanosPerMilli},
        std::move(parts), gate_, memory_->rows(), memory_->writer(), credits_, outbox_);
  }
  void TearDown() override { agent_.reset(); }

  // Tokens first, first + 1, ... to every queue in turn.
  void Give(int count) {
    for (int i = 0; i < count; ++i) {
      const Token token = {.id = next_token_++, .attempt = 1, .max_steps = kMaxSteps};
      credits_[static_cast<std::size_t>(i % kGroups)].Push(std::span(&token, 1));
    }
  }
  // Gives 20 more; what is reported from now on is of these alone.
  void ExpectNewTokensPlayed() {
    reported_.clear();
    const std::uint64_t first = next_token_;
    Give(20);
    for (int i = 0; i < 400 && reported_.size() < 20; ++i) Cycle(1);
    ASSERT_EQ(reported_.size(), 20U);
    for (const auto& episode : reported_) EXPECT_GE(episode.token_id, first);
  }
  // As many cycles, the trainer's draws between them; what was reported meanwhile.
  void Cycle(int count) {
    for (int i = 0; i < count; ++i) {
      (void)agent_->DoWork();
      while (const ReadLease lease = gate_.OpenLease(1, kSteps + 1, 0)) CheckWindow(lease);
      Collect();
    }
  }
  void Collect() { outbox_.Take(reported_, abandoned_); }

  // Every row of a lane follows from the one before; none has latents before the trainer's.
  void CheckWindow(const ReadLease& lease) {
    const int lanes = kGroupLanes * kGroups, cells = (kSteps + 1) * lanes;
    const BatchPart behind_first = {
        .first_lane = 0, .lanes = lanes, .first_row = 1, .rows = kSteps};
    std::vector<std::uint16_t> deter(static_cast<std::size_t>(kSteps * lanes) * 2);
    std::vector<std::uint8_t> stoch(static_cast<std::size_t>(kSteps * lanes)), valid(stoch.size());
    memory_->rows().GatherLatents(
        lease, behind_first, {.deter = deter.data(), .stoch = stoch.data(), .valid = valid.data()});
    ASSERT_EQ(valid, std::vector<std::uint8_t>(valid.size(), 0));
    memory_->rows().ScatterLatents(lease, behind_first,
                                   {.deter = deter.data(), .stoch = stoch.data()});
    std::vector<std::uint8_t> flags(static_cast<std::size_t>(cells));
    std::vector<std::int32_t> action(flags.size());
    std::vector<float> reward(flags.size()), log_prob(flags.size());
    memory_->rows().Gather(lease, 0, lanes,
                           {.action = action.data(),
                            .log_prob = log_prob.data(),
                            .reward = reward.data(),
                            .flags = flags.data()});
    for (std::size_t cell = 0; cell < flags.size(); ++cell) {
      const bool last = (flags[cell] & kIsLast) != 0, first = (flags[cell] & kIsFirst) != 0;
      ASSERT_LT(action[cell], 2);
      ASSERT_TRUE(!last || action[cell] == 0) << "no action is taken after the last row";
      const bool idle = last && !first && (flags[cell] & kTruncated) != 0 && reward[cell] == 0.0F;
      ASSERT_EQ(reward[cell], first || idle ? 0.0F : 1.0F);
      rows_seen_ += 1;
    }
  }

  ReplayGate gate_{{.shards = 1, .capacity_rows = kCapacity, .commit_stride = kStride},
                   std::make_unique<FifoSelector>(1, kSteps),
                   FifoLimiter(1)};
  std::unique_ptr<tetrion::testing::DeviceMemory> memory_;
  std::deque<CreditQueue> credits_{kGroups};
  Outbox outbox_;
  NoWeights* weights_ = nullptr;
  std::unique_ptr<ResidentAgent> agent_;
  std::uint64_t next_token_ = 100;
  std::vector<wire::EpisodeReport> reported_;
  std::map<std::string, std::vector<Token>> abandoned_;
  std::int64_t rows_seen_ = 0;
};

TEST_F(ResidentAgentTest, EpisodesAreReportedAsWorkersOfTheAccountPlayThem) {
  Give(40);
  for (int i = 0; i < 400 && reported_.size() < 40; ++i) Cycle(1);
  ASSERT_EQ(reported_.size(), 40U);
  std::set<std::uint64_t> tokens;
  std::set<int> workers;
  for (const wire::EpisodeReport& episode : reported_) {
    EXPECT_TRUE(tokens.insert(episode.token_id).second) << "once each";
    EXPECT_EQ(episode.attempt, 1U);
    EXPECT_GT(episode.length_steps, 0U);
    EXPECT_LE(episode.length_steps, kMaxSteps);
    EXPECT_EQ(episode.episode_return, static_cast<float>(episode.length_steps));
    EXPECT_LT(episode.lane, kGroupLanes);
    workers.insert(episode.worker);
  }
  EXPECT_EQ(workers, (std::set<int>{0, 1}));
  EXPECT_GT(rows_seen_, 0);
  std::uint64_t steps = 0;
  for (const auto& episode : reported_) steps += episode.length_steps;
  EXPECT_EQ(agent_->counters().env_steps.load(), steps);
}

TEST_F(ResidentAgentTest, WithoutTokensNoRowIsMade) {
  Cycle(20);
  EXPECT_EQ(agent_->counters().rows.load(), 0U);
  EXPECT_GT(agent_->counters().wait_token_ns.load(), 0);
  Give(1);
  Cycle(3);
  EXPECT_GT(agent_->counters().rows.load(), 0U);
}

TEST_F(ResidentAgentTest, WithoutWeightsNoRowIsMade) {
  weights_->there = false;
  Give(8);
  Cycle(5);
  EXPECT_EQ(agent_->counters().rows.load(), 0U);
  EXPECT_GT(agent_->counters().wait_weights_ns.load(), 0);
}

TEST_F(ResidentAgentTest, LimiterHoldsTheLanesUntilTheTrainerDraws) {
  Give(60);
  for (int i = 0; i < 20; ++i) (void)agent_->DoWork();
  const std::uint64_t rows = agent_->counters().rows.load();
  EXPECT_LE(rows, 3U * kSteps);
  EXPECT_GT(agent_->counters().wait_replay_ns.load(), 0);
  Cycle(10);
  EXPECT_GT(agent_->counters().rows.load(), rows);
}

TEST_F(ResidentAgentTest, DrainReportsWhatEndedAndGivesTheRestBack) {
  Give(30);
  Cycle(8);
  for (CreditQueue& credits : credits_) {
    for (const Token& token : credits.Drain()) abandoned_["queue"].push_back(token);
  }
  for (int i = 0; i < 50 && !agent_->Drained(); ++i) Cycle(1);
  ASSERT_TRUE(agent_->Drained());
  Collect();
  EXPECT_FALSE(abandoned_["drain"].empty());
  std::set<std::uint64_t> seen;
  for (const auto& episode : reported_) EXPECT_TRUE(seen.insert(episode.token_id).second);
  for (const auto& [reason, tokens] : abandoned_) {
    for (const Token& token : tokens) EXPECT_TRUE(seen.insert(token.id).second) << reason;
  }
  EXPECT_EQ(seen.size(), 30U) << "every token once";
  const std::uint64_t rows = agent_->counters().rows.load();
  Cycle(5);
  EXPECT_EQ(agent_->counters().rows.load(), rows) << "nothing after the drain";
}

TEST_F(ResidentAgentTest, FenceCutsTheLanesAndNewTokensBeginAfterIt) {
  Give(20);
  Cycle(8);
  for (CreditQueue& credits : credits_) credits.Fence();
  Cycle(10);
  EXPECT_EQ(credits_[0].State(), TakeResult::kToken) << "accepted";
  EXPECT_TRUE(abandoned_.empty()) << "tokens of the old session are not given back";
  ExpectNewTokensPlayed();
}

TEST_F(ResidentAgentTest, FenceIsAcceptedOnceTheLinkHasFencedEveryGroup) {
  Give(20);
  Cycle(8);
  credits_[0].Fence();
  Cycle(10);
  EXPECT_EQ(credits_[0].State(), TakeResult::kFenced) << "the link is in the middle of it";
  credits_[1].Fence();
  Cycle(2);
  EXPECT_EQ(credits_[0].State(), TakeResult::kToken);
}

// The second end of a session overtakes the agent between its words to two groups about the first.
TEST_F(ResidentAgentTest, FenceThatComesWhileTheOneBeforeIsAcceptedIsAcceptedToo) {
  Give(20);
  Cycle(8);
  for (CreditQueue& credits : credits_) credits.Fence();
  credits_[0].AcceptFence();
  for (CreditQueue& credits : credits_) credits.Fence();
  credits_[1].AcceptFence();
  Cycle(10);
  EXPECT_EQ(credits_[0].State(), TakeResult::kToken);
  ExpectNewTokensPlayed();
}

// The point of it: rows are made where they are read.
TEST_F(ResidentAgentTest, NoRowPassesThroughTheHost) {
  Give(60);
  Cycle(3);  // what is made once
  const cuda::HostCopyGuard guard;
  for (int i = 0; i < 10; ++i) (void)agent_->DoWork();
  memory_->writer().Synchronize();
  const cuda::Activity seen = guard.Seen();
  EXPECT_GT(seen.launches, 0U);
  for (const auto purpose : {cuda::CopyPurpose::kIngest, cuda::CopyPurpose::kBatch}) {
    for (const auto kind : {cuda::MemoryKind::kPinned, cuda::MemoryKind::kPageable}) {
      EXPECT_EQ(seen.Of(cuda::CopyDirection::kHostToDevice, kind, purpose).copies, 0U);
      EXPECT_EQ(seen.Of(cuda::CopyDirection::kDeviceToHost, kind, purpose).copies, 0U);
    }
  }
  EXPECT_EQ(seen.Of(cuda::CopyDirection::kHostToDevice, cuda::MemoryKind::kPageable,
                    cuda::CopyPurpose::kAccount)
                .copies,
            0U);
}

}  // namespace
}  // namespace tetrion::learner
