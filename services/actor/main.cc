#include <optional>

#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "services/actor/actor.h"
#include "services/actor/options.h"

namespace tetrion::actor {
namespace {

int Main(int argc, const char* const* argv) {
  ActorOptions options;
  if (const std::optional<int> code = ParseActorOptions(argc, argv, options)) return *code;
  if (options.health.Wanted()) return AskHealth(options.health, options.member.http_bind);
  options.member.log.service = "actor";
  options.member.log.id = options.member.name;
  SetUpLogging(options.member.log);
  SignalWatcher signals(HangupLimitMs(options.member.drain_timeout_s));
  log::info("tetrion-actor {} ({})", Version(), Revision());
  Actor actor(options, signals);
  actor.Run();
  return 0;
}

}  // namespace
}  // namespace tetrion::actor

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, tetrion::actor::Main);
}
