#include <cstdio>

#include "lib/core/freed_memory.h"
#include "lib/core/log.h"
#include "lib/run/program.h"
#include "lib/run/signals.h"
#include "tools/eval/dream.h"
#include "tools/eval/eval.h"

namespace {

int Main(int argc, const char* const* argv) {
  tetrion::EvalOptions options;
  if (const std::optional<int> code = tetrion::ParseEvalOptions(argc, argv, options)) return *code;
  tetrion::KeepFreedMemory();  // many lanes' tensors are large
  const tetrion::SignalWatcher signals;
  tetrion::SetUpLogging({.service = "eval", .level = "warn"});
  auto* const run = options.command == "eval"   ? tetrion::RunEval
                    : options.command == "play" ? tetrion::RunPlay
                                                : tetrion::RunDream;
  return run(options, signals.drain_flag(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  return tetrion::GuardedMain(argc, argv, Main);
}
