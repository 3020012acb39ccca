#include "lib/setup/run_policy.h"

#include <gmock/gmock.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/policy/network_policy.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

// This program is without the tensor library.

TEST(RunPolicyTest, IsThePolicyOfTheRunsNetwork) {
  const RunConfig run = MakeRunConfig({{"env", "tetris-placement"}, {"network", "scorer"}});
  const EnvSpec env = EnvSpecOf(run);
  EXPECT_EQ(MakeRunPolicy(run, {}, env)->WeightsBytes(),
            MakeNetworkPolicy({.network = "scorer"}, env)->WeightsBytes());
}

struct Choice {
  std::int32_t action = 0;
  float log_prob = 0;
};

// What is chosen in one state, whose first eight actions are legal.
Choice ChoiceOf(Policy& policy, const EnvSpec& env, std::uint64_t token = 1) {
  const std::vector<std::byte> record(env.obs.record_bytes);
  const std::uint64_t mask = 0xFF;
  const std::uint8_t flags = 0;
  const std::uint32_t step = 0;
  Choice choice;
  float value = 0;
  const ActResult acted = policy.Act({.n = 1,
                                      .records = record.data(),
                                      .masks = &mask,
                                      .flags = &flags,
                                      .token_ids = &token,
                                      .steps = &step},
                                     {&choice.action, &choice.log_prob, &value});
  EXPECT_EQ(acted, ActResult::kOk);
  return choice;
}

TEST(RunPolicyTest, RoundsFactorsWhereTheRunSaysSoAndTheProcessorGainsByIt) {
  const auto log_prob = [](const char* precision) {
    const RunConfig run = MakeRunConfig({{"precision", precision}});
    const EnvSpec env = EnvSpecOf(run);
    const auto network = MakeNetwork({.name = run.network, .seed = 3}, env);
    const auto policy = MakeRunPolicy(run, {.seed = 3}, env);
    EXPECT_EQ(policy->LoadWeights(std::as_bytes(network->parameters()), 1), LoadResult::kLoaded);
    return ChoiceOf(*policy, env).log_prob;
  };
  const bool gains = &BestDenseKernels(Precision::kBf16) != &BestDenseKernels();
  EXPECT_EQ(log_prob("bf16") != log_prob("f32"), gains);
}

TEST(RunPolicyTest, OfACheckpointHasItsVersionAndDrawsUnlessItIsGreedy) {
  const RunConfig run = MakeRunConfig({{"env", "cartpole"}});
  const EnvSpec env = EnvSpecOf(run);
  const auto network = MakeNetwork({.name = run.network, .seed = 3}, env);
  const std::span<const float> weights = network->parameters();
  Checkpoint checkpoint;
  checkpoint.info.policy_version = 17;
  checkpoint.state.tensors.push_back({std::string(kPlayedPrefix) + "all",
                                      {static_cast<std::int64_t>(weights.size())},
                                      {weights.begin(), weights.end()}});
  for (const bool greedy : {false, true}) {
    const auto policy = LoadRunPolicy(run, {.seed = 3, .greedy = greedy}, env, checkpoint);
    EXPECT_EQ(policy->version(), 17U);
    std::set<std::int32_t> chosen;
    for (std::uint64_t token = 0; token < 64; ++token) {
      chosen.insert(ChoiceOf(*policy, env, token).action);
    }
    EXPECT_EQ(chosen.size(), greedy ? 1U : 2U);
  }
}

TEST(RunPolicyTest, WhatThisProgramLacksIsRefusedByName) {
  const RunConfig run = MakeRunConfig({{"view", "planes"}, {"network", "conv"}});
  try {
    (void)MakeRunPolicy(run, {}, EnvSpecOf(run));
    FAIL() << "network conv needs the tensor library";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("conv"));
  }
}

TEST(RunPolicyTest, PolicyThatNeedsTheTensorLibraryIsRefusedWithWhatToDo) {
  const struct {
    std::vector<Setting> given;
    std::vector<std::string> parts;
  } cases[] = {
      {{{"env", "cartpole"}, {"algo", "dreamer"}}, {"algo dreamer", "nano", "cartpole"}},
      {{{"env", "tetris"}, {"view", "planes"}, {"network", "conv"}}, {"network conv"}},
  };
  for (const auto& one : cases) {
    const RunConfig run = MakeRunConfig(one.given);
    try {
      (void)MakeRunPolicy(run, {}, EnvSpecOf(run));
      ADD_FAILURE() << one.parts[0] << " needs the tensor library";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      for (const std::string& part : one.parts)
        EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
      for (const char* part : {"install wheels", "TETRION_ACTOR_IMAGE=actor-torch", "streamed"}) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
      }
    }
  }
}

TEST(RunPolicyTest, BlobHoldsWhatTheAlgorithmActsWith) {
  const TrainerState vtrace = {.tensors = {{"policy.w", {1}, {1}}, {"adam_m.w", {1}, {2}}}};
  const TrainerState dreamer = {.tensors = {{"model.encoder.w", {1}, {1}},
                                            {"model.actor.w", {2}, {2, 3}},
                                            {"model.value.w", {1}, {4}},
                                            {"laprop_mean.actor.w", {2}, {5, 6}}}};
  RunConfig run;
  EXPECT_EQ(RunPolicyBlobOf(run, vtrace).size(), sizeof(float));
  EXPECT_TRUE(RunPolicyBlobOf(run, dreamer).empty()) << "another algorithm's";
  run.algo = "dreamer";
  const std::vector<float> acting = {1, 2, 3};
  const auto bytes = std::as_bytes(std::span(acting));
  EXPECT_EQ(RunPolicyBlobOf(run, dreamer), std::vector<std::byte>(bytes.begin(), bytes.end()));
  EXPECT_TRUE(RunPolicyBlobOf(run, vtrace).empty());
}

}  // namespace
}  // namespace tetrion
