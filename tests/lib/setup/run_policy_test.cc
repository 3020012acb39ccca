#include "lib/setup/run_policy.h"

#include <gmock/gmock.h>

#include <span>
#include <vector>

#include "lib/core/error.h"
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

TEST(RunPolicyTest, WhatThisProgramLacksIsRefusedByName) {
  const RunConfig run = MakeRunConfig({{"env", "cartpole"}});
  try {
    (void)MakeRunPolicy(run, {}, EnvSpecOf(run));
    FAIL() << "network mlp needs the tensor library";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("mlp"));
  }
}

TEST(RunPolicyTest, DreamersPolicyIsRefusedWithWhatToDo) {
  const RunConfig run = MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}});
  try {
    (void)MakeRunPolicy(run, {}, EnvSpecOf(run));
    FAIL() << "it needs the tensor library";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    for (const char* part : {"algo dreamer", "nano", "cartpole", "tetrion-actor", "streamed"}) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
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
