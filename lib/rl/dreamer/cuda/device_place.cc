#include "lib/rl/dreamer/cuda/device_place.h"

#include "lib/core/error.h"
#include "lib/nn/cuda/device_update_kernels.h"
#ifdef TETRION_TORCH_CUDA
#include "lib/rl/torch/graph_place.h"
#endif

namespace tetrion {
namespace {

// The tensor library works on the calling thread, the kernels on a simulated stream.
class SimulatedPlace final : public UpdatePlace {
 public:
  explicit SimulatedPlace(const cuda::Device& device) : stream_(device, "trainer") {}

  int ordinal() const override { return kSimulated; }
  UpdateKernels& kernels() override { return kernels_; }
  void Once(const std::function<void()>& work) override { work(); }
  void Repeat(const std::function<void()>& work) override { work(); }

 private:
  cuda::Stream stream_;
  DeviceUpdateKernels kernels_{stream_};  // which waits for each
};

#ifdef TETRION_TORCH_CUDA
constexpr bool kUpdatesOnCuda = true;
#else
constexpr bool kUpdatesOnCuda = false;
#endif

std::unique_ptr<UpdatePlace> MakeRealPlace([[maybe_unused]] const cuda::Device& device) {
#ifdef TETRION_TORCH_CUDA
  return MakeGraphPlace(device);
#else
  throw Error(ExitCode::kConfig,
              "the tensor library of this build has no part for CUDA, so that updates can be "
              "computed on the CPU alone: give --trainer-device cpu, or build with "
              "TETRION_TORCH_ROOT naming a folder where torch is whole");
#endif
}

}  // namespace

std::unique_ptr<UpdatePlace> MakeUpdatePlace(const cuda::Device& device) {
  const bool simulated = cuda::Stream(device, "trainer").native() == nullptr;
  return simulated ? std::make_unique<SimulatedPlace>(device) : MakeRealPlace(device);
}

bool UpdatesOnCuda() {
  return kUpdatesOnCuda;
}

}  // namespace tetrion
