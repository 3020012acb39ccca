// GFLOPS of one core in products of the scorer's shape, by each set of kernels that this processor
// runs; states per second of each network, inference and training (forward + backward), at M*T =
// 2048 states a call; the scorer's training on one thread as operations a second, beside the peak
// of the core: JSON lines per set, network and thread count, each over five windows.
//
//   networks_bench [--quick | --smoke]

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/nn/fma_peak.h"
#include "lib/core/clock.h"
#include "lib/core/freed_memory.h"
#include "lib/core/philox.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"

namespace tetrion {
namespace {

constexpr int kStates = 2048;  // M*T
constexpr int kWindows = 5;

constexpr const char* kBoards = "afterstates-boards";
constexpr int kColumns = 10;

EnvSpec SpecFor(const std::string& view) {
  EnvSpec env;
  env.name = "bench";
  env.obs.view = view;
  env.obs.view_floats = view == kBoards         ? 40 * 12 + 45
                        : view == "afterstates" ? 40 * 16 + 48
                        : view == "planes"      ? 448
                                                : 4;
  env.obs.action_floats = view == kBoards ? 12 : view == "afterstates" ? 16 : 0;
  env.obs.board_columns = view == kBoards ? kColumns : 0;
  env.action = {.count = view == "vector" ? 2 : 40, .has_mask = view != "vector"};
  return env;
}

// Columns of up to five cells; a placement's board differs from the present one in three.
void WriteBoards(const EnvSpec& env, std::vector<float>& input) {
  for (int s = 0; s < kStates; ++s) {
    float* state = input.data() + s * env.obs.view_floats;
    const float* present = state + std::int64_t{env.action.count} * env.obs.action_floats;
    for (int part = env.action.count; part >= 0; --part) {
      float* column = state + part * env.obs.action_floats;
      for (int c = 0; c < kColumns; ++c) {
        const bool other = part == env.action.count || (c >= part / 5 && c < part / 5 + 3);
        column[c] = other ? static_cast<float>(static_cast<int>(column[c] * 32)) : present[c];
      }
    }
  }
}

// Calls per second of `work` over one window.
double Rate(double seconds, const std::function<void()>& work) {
  const Clock& clock = MonotonicClock::Get();
  const std::int64_t begin = clock.NowNs();
  int calls = 0;
  std::int64_t spent = 0;
  do {
    work();
    ++calls;
    spent = clock.NowNs() - begin;
  } while (spent < static_cast<std::int64_t>(seconds * 1e9));
  return calls * 1e9 / static_cast<double>(spent);
}

void Print(const std::string& what, const char* unit, std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  std::printf(
      "{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": {\"median\": %.0f, \"min\": %.0f, "
      "\"max\": %.0f}, \"rival\": null, \"ratio\": null, \"target\": null}\n",
      what.c_str(), unit, rates[rates.size() / 2], rates.front(), rates.back());
  std::fflush(stdout);
}

// GFLOPS beside the core's peak; the ratio is taken window by window.
void PrintBesidePeak(const std::string& what, const std::vector<double>& ours,
                     const std::vector<double>& peak) {
  const auto spread = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    char text[120];
    std::snprintf(text, sizeof text, "\"median\": %.4g, \"min\": %.4g, \"max\": %.4g",
                  values[values.size() / 2], values.front(), values.back());
    return std::string(text);
  };
  std::vector<double> ratio;
  for (std::size_t i = 0; i < ours.size(); ++i) ratio.push_back(ours[i] / peak[i]);
  std::printf(
      "{\"what\": \"%s\", \"unit\": \"GFLOPS\", \"ours\": {%s}, \"rival\": {\"name\": "
      "\"FMA peak of the same core\", %s}, \"ratio\": {%s}, \"target\": \">= 0.8x\"}\n",
      what.c_str(), spread(ours).c_str(), spread(peak).c_str(), spread(ratio).c_str());
  std::fflush(stdout);
}

// Operations that a state's forward and backward pass of the scorer need: two for each weight and
// row forward, two for the weight's gradient, two for that of the layer's input unless it is the
// view. What is computed a second time counts once.
double ScorerFlops(const EnvSpec& env, int distinct) {
  constexpr double kUnits = 64;
  const double after = env.obs.action_floats;
  const double state = static_cast<double>(env.obs.view_floats) - env.action.count * after;
  const double row = 2 * after * kUnits + 3 * (kUnits * kUnits + kUnits);
  const double once = 2 * state * (kUnits + 2 * kUnits) + 3 * (4 * kUnits * kUnits + 2 * kUnits);
  return 2 * (distinct * row + once);
}

// `distinct` afterstates of 40: 23 is the mean over the seven pieces, 34 a piece without symmetry.
void Measure(const std::string& network, const std::string& view, int distinct, int threads,
             double seconds, Precision precision = Precision::kF32) {
  const EnvSpec env = SpecFor(view);
  const auto instance = MakeNetwork({.name = network,
                                     .max_states = kStates,
                                     .training = true,
                                     .threads = threads,
                                     .precision = precision},
                                    env);
  std::vector<float> input(static_cast<std::size_t>(kStates * env.obs.view_floats));
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] =
        static_cast<float>(UnitDraw(PhiloxDraw(1, i / 4, 0, PhiloxPurpose::kSampler).word[i % 4]));
  }
  if (view == kBoards) WriteBoards(env, input);
  const auto cells = static_cast<std::size_t>(kStates * env.action.count);
  std::vector<std::uint64_t> mask(kStates, (std::uint64_t{1} << distinct) - 1);
  std::vector<float> logits(cells), value(kStates), grad_logits(cells, 1e-3F),
      grad_value(kStates, 1e-3F);
  const std::uint64_t* masks = env.action.has_mask ? mask.data() : nullptr;
  const auto infer = [&] {
    instance->Infer(input.data(), masks, kStates, logits.data(), value.data());
  };
  const auto train = [&] {
    instance->Forward(input.data(), masks, kStates, logits.data(), value.data());
    instance->Backward(grad_logits.data(), grad_value.data());
  };
  infer(), train();  // warm
  const bool counted = network == "scorer" && threads == 1 && precision == Precision::kF32;
  std::vector<double> inference, training, reached, peak;
  for (int i = 0; i < kWindows; ++i) {
    inference.push_back(Rate(seconds, infer) * kStates);
    training.push_back(Rate(seconds, train) * kStates);
    if (!counted) continue;
    double flops = 0;
    const double pieces = Rate(seconds, [&flops] { flops = bench::FmaPiece(); });
    peak.push_back(pieces * flops * 1e-9);
    reached.push_back(training.back() * ScorerFlops(env, distinct) * 1e-9);
  }
  const std::string what = network + (precision == Precision::kBf16 ? ", bf16" : "") + " on " +
                           view + ", " + std::to_string(distinct) +
                           (distinct == 1 ? " row" : " rows") + " a state, " +
                           std::to_string(threads) + (threads == 1 ? " thread: " : " threads: ");
  Print(what + "inference", "states/s", inference);
  Print(what + "training", "states/s", training);
  if (counted) PrintBesidePeak(what + "training, operations", reached, peak);
}

// A bound for what whole updates can reach: the scorer's second layer, rows of a chunk at once.
void MeasureProduct(const DenseKernels& kernels, double seconds) {
  constexpr std::int64_t kRows = 368, kUnits = 64;
  const std::vector<float> x(kRows * kUnits, 0.3F), w(kUnits * kUnits, 0.01F), start(kUnits, 0.1F);
  std::vector<float> y(kRows * kUnits);
  PackedWeights packed(kernels, kUnits, kUnits);
  packed.Pack(w.data());
  const auto work = [&] {
    packed.Multiply(start.data(), nullptr, x.data(), kUnits, kRows, y.data());
  };
  work();  // warm
  std::vector<double> rates;
  for (int i = 0; i < kWindows; ++i) {
    rates.push_back(Rate(seconds, work) * 2e-9 * kRows * kUnits * kUnits);
  }
  Print(std::string("product 368 x 64 x 64, kernels ") + kernels.name + ", 1 thread", "GFLOPS",
        rates);
}

}  // namespace
}  // namespace tetrion

int main(int argc, char** argv) {
  tetrion::KeepFreedMemory();  // as the learner does; an actor's few lanes need no large blocks
  const std::string_view flag = argc > 1 ? argv[1] : "";
  const bool smoke = flag == "--smoke";  // measures nothing, shows that every network runs
  const double seconds = smoke ? 0.0 : flag == "--quick" ? 0.1 : 0.5;
  for (const tetrion::DenseKernels* kernels : tetrion::AllDenseKernels()) {
    tetrion::MeasureProduct(*kernels, seconds);
  }
  const bool rounds =
      &tetrion::BestDenseKernels(tetrion::Precision::kBf16) != &tetrion::BestDenseKernels();
  for (int threads : {1, 2}) {
    tetrion::Measure("scorer", "afterstates", 23, threads, seconds);
    tetrion::Measure("scorer", "afterstates", 34, threads, seconds);
    tetrion::Measure("columns", "afterstates-boards", 23, threads, seconds);
    if (rounds) {
      constexpr auto kBf16 = tetrion::Precision::kBf16;
      tetrion::Measure("scorer", "afterstates", 23, threads, seconds, kBf16);
      tetrion::Measure("columns", "afterstates-boards", 23, threads, seconds, kBf16);
    }
    tetrion::Measure("mlp", "planes", 34, threads, seconds);
    tetrion::Measure("mlp", "vector", 2, threads, seconds);
    tetrion::Measure("conv", "planes", 34, threads, seconds);
  }
  return 0;
}
