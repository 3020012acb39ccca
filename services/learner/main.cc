#include <optional>

#include "lib/core/freed_memory.h"
#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "services/learner/learner.h"
#include "services/learner/options.h"

namespace tetrion::learner {
namespace {

int Main(int argc, const char* const* argv) {
  LearnerOptions options;
  if (const std::optional<int> code = ParseLearnerOptions(argc, argv, options)) return *code;
  if (options.health.Wanted()) return AskHealth(options.health, options.member.http_bind);
  options.member.log.service = "learner";
  SetUpLogging(options.member.log);
  KeepFreedMemory();
  SignalWatcher signals(HangupLimitMs(options.member.drain_timeout_s));
  log::info("tetrion-learner {} ({})", Version(), Revision());
  Learner learner(options, signals);
  learner.Run();
  return 0;
}

}  // namespace
}  // namespace tetrion::learner

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, tetrion::learner::Main);
}
