#include <optional>

#include "lib/core/log.h"
#include "lib/run/main_guard.h"
#include "lib/run/revision.h"
#include "lib/run/signals.h"
#include "services/learner/learner.h"
#include "services/learner/options.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::LearnerOptions options;
  if (const std::optional<int> code = tetrion::ParseLearnerOptions(argc, argv, options))
    return *code;
  options.member.log.service = "learner";
  tetrion::SetUpLogging(options.member.log);
  tetrion::SignalWatcher signals(tetrion::HangupLimitMs(options.member.drain_timeout_s));
  tetrion::log::info("tetrion-learner {} ({})", tetrion::Version(), tetrion::Revision());
  tetrion::Learner learner(options, signals);
  learner.Run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
