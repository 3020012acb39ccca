#include <cstdio>

#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "tools/stream/commands.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::StreamOptions options;
  if (const std::optional<int> code = tetrion::ParseStreamOptions(argc, argv, options)) {
    return *code;
  }
  const tetrion::SignalWatcher signals;
  tetrion::SetUpLogging({.service = "stream", .id = options.command});
  if (options.command == "kernel") {
    return tetrion::RunKernel(options, signals.drain_flag(), stdout);
  }
  if (options.command == "host") return tetrion::RunHost(options, signals.drain_flag(), stdout);
  return options.command == "layout" ? tetrion::RunLayout(stdout)
                                     : tetrion::RunInspect(options, stdout);
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
