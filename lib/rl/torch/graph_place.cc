#include "lib/rl/torch/graph_place.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <utility>

#include "lib/nn/cuda/device_update_kernels.h"
#include "lib/rl/torch/update_failures.h"

namespace tetrion {
namespace {

constexpr int kWarmUps = 3;  // updates before the one that is recorded

class GraphPlace final : public UpdatePlace {
 public:
  explicit GraphPlace(const cuda::Device& device)
      : ordinal_(device.ordinal()),
        stream_(device, "trainer"),
        // Ours, so that kernels and tensor library share it: it is not the default one, which no
        // graph can be recorded on.
        torch_stream_(
            c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream_.native()),
                                             static_cast<c10::DeviceIndex>(device.ordinal()))) {
    // Convolutions are f32, too: by itself cuDNN multiplies them with 10 bits of mantissa, by what
    // is fastest at the moment.
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
  }

  int ordinal() const override { return ordinal_; }
  UpdateKernels& kernels() override { return kernels_; }
  void Once(const std::function<void()>& work) override {
    OnStream([&] { work(); });
  }
  void Repeat(const std::function<void()>& work) override {
    OnStream([&] {
      if (done_ < kWarmUps) {
        work();
        ++done_;
        return;
      }
      if (graph_ == nullptr) Record(work);
      graph_->replay();
    });
  }

 private:
  // With the stream as the tensor library's current one; waits for it.
  template <typename Work>
  void OnStream(const Work& work) {
    WithDeviceErrors(graph_ != nullptr, [&] {
      const c10::cuda::CUDAStreamGuard guard(torch_stream_);
      work();
      torch_stream_.synchronize();
    });
  }

  void Record(const std::function<void()>& work) {
    // A record has memory of its own, beside what the warm-up left to the allocator.
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    // Other threads use the device meanwhile: lanes are played, rows are copied.
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      EndFailed(*graph);
      throw;
    }
    graph->capture_end();
    graph_ = std::move(graph);
  }
  // So that the stream can be used again. The error that is told is the one in the work.
  static void EndFailed(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // the capture was void already
    }
  }

  const int ordinal_;
  cuda::Stream stream_;
  const c10::cuda::CUDAStream torch_stream_;
  DeviceUpdateKernels kernels_{stream_};
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  int done_ = 0;  // of the warm-up
};

}  // namespace

std::unique_ptr<UpdatePlace> MakeGraphPlace(const cuda::Device& device) {
  return std::make_unique<GraphPlace>(device);
}

}  // namespace tetrion
