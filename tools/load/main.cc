#include <cstdio>

#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "tools/load/load.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::LoadOptions options;
  if (const std::optional<int> code = tetrion::ParseLoadOptions(argc, argv, options)) return *code;
  const tetrion::SignalWatcher signals;
  tetrion::SetUpLogging({.service = "load", .level = options.log_level});
  tetrion::Load load(options, tetrion::MonotonicClock::Get());
  return load.Run(signals.drain_flag(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
