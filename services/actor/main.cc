#include <optional>

#include "lib/core/log.h"
#include "lib/run/main_guard.h"
#include "lib/run/revision.h"
#include "lib/run/signals.h"
#include "services/actor/actor.h"
#include "services/actor/options.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::ActorOptions options;
  if (const std::optional<int> code = tetrion::ParseActorOptions(argc, argv, options)) return *code;
  options.member.log.service = "actor";
  options.member.log.id = options.member.name;
  tetrion::SetUpLogging(options.member.log);
  tetrion::SignalWatcher signals(tetrion::HangupLimitMs(options.member.drain_timeout_s));
  tetrion::log::info("tetrion-actor {} ({})", tetrion::Version(), tetrion::Revision());
  tetrion::Actor actor(options, signals);
  actor.Run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
