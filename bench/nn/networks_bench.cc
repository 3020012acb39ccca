// States per second of each network, inference and training (forward + backward), at M*T = 2048
// states a call: one JSON line per network and thread count.
//
//   networks_bench [seconds per figure, default 1]

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/nn/network.h"

namespace tetrion {
namespace {

constexpr int kStates = 2048;  // M*T

EnvSpec SpecFor(const std::string& view) {
  EnvSpec env;
  env.name = "bench";
  env.obs.view = view;
  env.obs.view_floats = view == "afterstates" ? 40 * 16 + 48 : view == "planes" ? 448 : 4;
  env.action = {.count = view == "vector" ? 2 : 40, .has_mask = view != "vector"};
  return env;
}

// Calls per second of `work`, warmed up once.
double Rate(double seconds, const std::function<void()>& work) {
  work();
  const Clock& clock = MonotonicClock::Get();
  const std::int64_t begin = clock.NowNs();
  int calls = 0;
  std::int64_t spent = 0;
  while (spent < static_cast<std::int64_t>(seconds * 1e9)) {
    work();
    ++calls;
    spent = clock.NowNs() - begin;
  }
  return calls * 1e9 / static_cast<double>(spent);
}

// `distinct` afterstates of 40: 23 is the mean over the seven pieces, 34 a piece without symmetry.
void Measure(const std::string& network, const std::string& view, int distinct, int threads,
             double seconds) {
  const EnvSpec env = SpecFor(view);
  const auto instance = MakeNetwork(
      {.name = network, .max_states = kStates, .training = true, .threads = threads}, env);
  std::vector<float> input(static_cast<std::size_t>(kStates * env.obs.view_floats));
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] =
        static_cast<float>(UnitDraw(PhiloxDraw(1, i / 4, 0, PhiloxPurpose::kSampler).word[i % 4]));
  }
  const auto cells = static_cast<std::size_t>(kStates * env.action.count);
  std::vector<std::uint64_t> mask(kStates, (std::uint64_t{1} << distinct) - 1);
  std::vector<float> logits(cells), value(kStates), grad_logits(cells, 1e-3F),
      grad_value(kStates, 1e-3F);
  const std::uint64_t* masks = env.action.has_mask ? mask.data() : nullptr;
  const double infer = Rate(
      seconds, [&] { instance->Infer(input.data(), masks, kStates, logits.data(), value.data()); });
  const double train = Rate(seconds, [&] {
    instance->Forward(input.data(), masks, kStates, logits.data(), value.data());
    instance->Backward(grad_logits.data(), grad_value.data());
  });
  std::printf(
      "{\"bench\":\"networks\",\"network\":\"%s\",\"view\":\"%s\",\"threads\":%d,"
      "\"states\":%d,\"rows_per_state\":%d,\"inference_states_per_s\":%.0f,"
      "\"training_states_per_s\":%.0f}\n",
      network.c_str(), view.c_str(), threads, kStates, distinct, infer * kStates, train * kStates);
  std::fflush(stdout);
}

}  // namespace
}  // namespace tetrion

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  for (int threads : {1, 2}) {
    tetrion::Measure("scorer", "afterstates", 23, threads, seconds);
    tetrion::Measure("scorer", "afterstates", 34, threads, seconds);
    tetrion::Measure("mlp", "planes", 34, threads, seconds);
    tetrion::Measure("mlp", "vector", 2, threads, seconds);
    tetrion::Measure("conv", "planes", 34, threads, seconds);
  }
  return 0;
}
