#include "tools/up/restart_policy.h"

#include <gmock/gmock.h>

#include <csignal>
#include <map>
#include <vector>

namespace tetrion {
namespace {

using ::testing::ElementsAre;

TEST(JudgeTest, ExitCodesDecideAboutRestarts) {
  const std::map<int, ExitVerdict> table = {
      {0, ExitVerdict::kDone},      {1, ExitVerdict::kRestart},  {2, ExitVerdict::kFatal},
      {75, ExitVerdict::kRestart},  {78, ExitVerdict::kFatal},   {127, ExitVerdict::kRestart},
      {143, ExitVerdict::kRestart}, {255, ExitVerdict::kRestart}};
  for (const auto& [code, verdict] : table) EXPECT_EQ(Judge({false, code}), verdict) << code;
  for (const int signal : {SIGHUP, SIGINT, SIGKILL, SIGSEGV, SIGTERM}) {
    EXPECT_EQ(Judge({true, signal}), ExitVerdict::kRestart) << signal;
  }
}

TEST(RestartPolicyTest, DelaysDoubleUpToTheBoundAndEnd) {
  FakeClock clock;
  RestartPolicy policy(clock);
  std::vector<std::int64_t> delays_ms;
  while (const auto delay_ns = policy.OnDeath()) delays_ms.push_back(*delay_ns / kNanosPerMilli);
  EXPECT_THAT(delays_ms, ElementsAre(250, 500, 1000, 2000, 4000));
  EXPECT_EQ(policy.OnDeath(), std::nullopt);
}

TEST(RestartPolicyTest, HealthyLifeForgivesEarlierDeaths) {
  FakeClock clock;
  RestartPolicy policy(clock);
  for (int life = 0; life < 20; ++life) {
    policy.OnStarted();
    clock.AdvanceMs(RestartPolicy::kHealthyMs);
    EXPECT_EQ(policy.OnDeath(), RestartPolicy::kFirstDelayMs * kNanosPerMilli);
  }
  policy.OnStarted();
  clock.AdvanceMs(RestartPolicy::kHealthyMs - 1);
  EXPECT_EQ(policy.OnDeath(), 2 * RestartPolicy::kFirstDelayMs * kNanosPerMilli);
}

}  // namespace
}  // namespace tetrion
