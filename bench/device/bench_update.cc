// DreamerV3's update on a device, from rows in the replay to latents written back: milliseconds of
// wall time, repeated from its record. The rival is the same update without a record, operation by
// operation, in turns with it. Prints one JSON line a figure.
//   bench_update [--quick]   shorter windows
//   bench_update --smoke     small sizes: shows that it runs, gives no figure
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "bench/envs/windows.h"
#include "bench/rl/dreamer_contestant.h"
#include "lib/core/freed_memory.h"
#include "lib/cuda/device.h"
#include "lib/rl/dreamer/cuda/device_place.h"

namespace tetrion::bench {
namespace {

struct Target {
  DreamerCase what;
  const char* ratio;
};
constexpr Target kTargets[] = {
    {{"nano", 8, 32}, ""}, {{"1m", 16, 64}, "<= 0.5x"}, {{"12m", 16, 64}, ""}};

// Every update of a place as its first, without a record.
class WithoutRecord final : public UpdatePlace {
 public:
  explicit WithoutRecord(std::unique_ptr<UpdatePlace> place) : place_(std::move(place)) {}
  int ordinal() const override { return place_->ordinal(); }
  UpdateKernels& kernels() override { return place_->kernels(); }
  void Once(const std::function<void()>& work) override { place_->Once(work); }
  void Repeat(const std::function<void()>& work) override { place_->Once(work); }

 private:
  std::unique_ptr<UpdatePlace> place_;
};

// Milliseconds of an update, the mean of a window.
double WindowMillis(Contestant& contestant, const Windows& windows) {
  Cost cost;
  int updates = 0;
  for (; cost.wall * kNanosPerMilli < static_cast<double>(windows.length_ns); ++updates) {
    contestant.Update(cost);
  }
  return cost.wall / updates;
}

void Measure(const cuda::Device& device, const Target& target, const Windows& windows) {
  Contestant recorded(target.what, /*threads=*/1, MakeUpdatePlace(device));
  Contestant eager(target.what, /*threads=*/1,
                   std::make_unique<WithoutRecord>(MakeUpdatePlace(device)));
  constexpr int kWarmUps = 5;  // the fourth is recorded
  Cost warm;
  for (int i = 0; i < kWarmUps; ++i) {
    recorded.Update(warm);
    eager.Update(warm);
  }
  Rates ours, rivals, ratios;
  for (int i = 0; i < windows.count; ++i) {
    ours.push_back(WindowMillis(recorded, windows));
    rivals.push_back(WindowMillis(eager, windows));
    ratios.push_back(ours.back() / rivals.back());
  }
  std::cout << R"({"what": "DreamerV3 update on the device, )" << target.what.size << " "
            << target.what.lanes << "x" << target.what.window << R"(", "unit": "ms", "ours": {)"
            << Spread(ours).Json() << R"(}, "rival": {"name": "without a record", )"
            << Spread(rivals).Json() << R"(}, "ratio": {)" << Spread(ratios).Json()
            << R"(}, "target": ")" << target.ratio << R"("})" << std::endl;
}

int Main(const std::string& mode) {
  if (cuda::Device::Count() == 0) {
    std::cout << "no CUDA device: not measured\n";
    return 0;
  }
  KeepFreedMemory();  // as the learner does
  const cuda::Device device(0);
  if (mode == "--smoke") {
    Cost cost;
    Contestant({"nano", 2, 2}, /*threads=*/1, MakeUpdatePlace(device)).Update(cost);
    std::cout << "an update was taken, not measured\n";
    return 0;
  }
  if (!UpdatesOnCuda()) {
    std::cerr << "the tensor library of this build has no part for CUDA: not measured\n";
    return 0;
  }
  Windows windows;
  if (mode == "--quick") windows.length_ns = kNanosPerSecond / 5;
  for (const Target& target : kTargets) Measure(device, target, windows);
  return 0;
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  return tetrion::bench::Main(argc > 1 ? argv[1] : "");
}
