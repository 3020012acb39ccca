// DreamerV3's update alone, from rows in the replay to latents written back: milliseconds of wall
// time, of CPU time and of each stage, by the trainer's own timer. Rows have 4 floats, as
// CartPole's.
//
//   bench_dreamer [--quick]               sizes nano and 1m, 1 and 2 threads: JSON lines
//   bench_dreamer --smoke                 one update of each; exit status 1 when one is not taken
//   bench_dreamer --serve SIZE THREADS    one update a line of input, answered by its wall and CPU
//                                         milliseconds, for sheeprl_update.py
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "bench/envs/windows.h"
#include "bench/rl/dreamer_contestant.h"
#include "lib/core/freed_memory.h"

namespace tetrion::bench {
namespace {

constexpr DreamerCase kCases[] = {{"nano", 8, 32}, {"1m", 16, 64}};

void Print(const std::string& what, const Rates& ms) {
  std::printf(
      "{\"what\": \"%s\", \"unit\": \"ms\", \"ours\": {%s}, \"rival\": null, \"ratio\": null, "
      "\"target\": null}\n",
      what.c_str(), Spread(ms).Json().c_str());
  std::fflush(stdout);
}

void Measure(const DreamerCase& what, int threads, const Windows& windows) {
  Contestant ours(what, threads);
  Cost warm;
  for (int i = 0; i < 3; ++i) ours.Update(warm);
  struct Column {
    const char* name;
    double Cost::* member;
    Rates ms;
  };
  Column columns[] = {{"", &Cost::wall, {}},
                      {": CPU time", &Cost::cpu, {}},
                      {": batch and latents", &Cost::sample, {}},
                      {": world model forward", &Cost::observe, {}},
                      {": imagination", &Cost::imagine, {}},
                      {": heads and losses", &Cost::losses, {}},
                      {": backward", &Cost::backward, {}},
                      {": optimiser", &Cost::optimise, {}}};
  for (int i = 0; i < windows.count; ++i) {
    Cost cost;
    int updates = 0;
    for (; cost.wall * kNanosPerMilli < static_cast<double>(windows.length_ns); ++updates) {
      ours.Update(cost);
    }
    for (Column& column : columns) column.ms.push_back(cost.*column.member / updates);
  }
  const std::string title = std::string("DreamerV3 update, ") + what.size + " " +
                            std::to_string(what.lanes) + "x" + std::to_string(what.window) + ", " +
                            std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  for (const Column& column : columns) Print(title + column.name, column.ms);
}

// One update a line of input.
void Serve(const std::string& size, int threads) {
  for (const DreamerCase& what : kCases) {
    if (size != what.size) continue;
    Contestant ours(what, threads);
    for (std::string line; std::getline(std::cin, line);) {
      Cost cost;
      ours.Update(cost);
      std::printf("%.6f %.6f\n", cost.wall, cost.cpu);
      std::fflush(stdout);
    }
  }
}

void Smoke() {
  for (DreamerCase what : kCases) {
    what.lanes = 2;
    what.window = 4;
    Cost cost;
    Contestant(what, /*threads=*/1).Update(cost);
  }
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  using tetrion::bench::Windows;
  const std::string mode = argc > 1 ? argv[1] : "";
  tetrion::KeepFreedMemory();  // as the learner does
  if (mode == "--smoke") {
    tetrion::bench::Smoke();
  } else if (mode == "--serve" && argc == 4) {
    tetrion::bench::Serve(argv[2], std::atoi(argv[3]));
  } else {
    const Windows windows = {.count = 5,
                             .length_ns = tetrion::kNanosPerSecond / (mode == "--quick" ? 5 : 1)};
    for (const tetrion::bench::DreamerCase& what : tetrion::bench::kCases) {
      for (int threads : {1, 2}) tetrion::bench::Measure(what, threads, windows);
    }
  }
  return 0;
}
