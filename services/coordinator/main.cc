#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "services/coordinator/coordinator.h"
#include "services/coordinator/options.h"

namespace tetrion::coordinator {
namespace {

int Main(int argc, const char* const* argv) {
  CoordinatorOptions options;
  if (const auto code = ParseOptions(argc, argv, options)) return *code;
  if (options.health.Wanted()) return AskHealth(options.health, options.http_bind);
  const SignalWatcher signals(HangupLimitMs(options.drain_timeout_s));
  SetUpLogging(options.log);
  log::info("tetrion-coordinator {} ({})", Version(), Revision());
  OpenedRun run = OpenRun(options);
  options.log.run = run.folder.name();
  SetUpLogging(options.log);
  MakeCoordinator(options, std::move(run))->Run(signals);
  return 0;
}

}  // namespace
}  // namespace tetrion::coordinator

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, tetrion::coordinator::Main);
}
