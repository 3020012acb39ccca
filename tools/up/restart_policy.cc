#include "tools/up/restart_policy.h"

#include <algorithm>

#include "lib/core/error.h"

namespace tetrion {

ExitVerdict Judge(const ChildExit& exit) {
  if (exit.signalled) return ExitVerdict::kRestart;
  switch (static_cast<ExitCode>(exit.code)) {
    case ExitCode::kOk:
      return ExitVerdict::kDone;
    case ExitCode::kUsage:
    case ExitCode::kUnsaved:
    case ExitCode::kConfig:
      return ExitVerdict::kFatal;
    default:
      return ExitVerdict::kRestart;
  }
}

std::optional<std::int64_t> RestartPolicy::OnDeath() {
  if (!IsYoung()) {
    tries_ = 0;
    ever_healthy_ = true;
  }
  if (tries_ == kTries) return std::nullopt;
  std::int64_t delay_ms = kFirstDelayMs;
  for (int i = 0; i < tries_; ++i) delay_ms = std::min(delay_ms * kGrowth, kMaxDelayMs);
  ++tries_;
  return delay_ms * kNanosPerMilli;
}

}  // namespace tetrion
