// The game rules as kernels: integer rules are exact, CartPole is in double without fused
// multiply-adds (the file is compiled with --fmad=false).
#include "lib/envs/cuda/rules_cuda.h"

#include <cuda_runtime.h>

#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr int kBlockThreads = 128;

void CheckCuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ExitCode::kTryAgain, std::string(what) + ": " + cudaGetErrorString(status) +
                                       "; is the device free and its driver new enough?");
}

// Device memory for n values, freed with the scope.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n) : bytes_(n * sizeof(T)) {
    CheckCuda(cudaMalloc(reinterpret_cast<void**>(&data_), bytes_), "cudaMalloc");
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  void CopyFrom(const T* host) {
    CheckCuda(cudaMemcpy(data_, host, bytes_, cudaMemcpyHostToDevice), "copy to the device");
  }
  // Waits for the kernels before it.
  void CopyTo(T* host) {
    CheckCuda(cudaMemcpy(host, data_, bytes_, cudaMemcpyDeviceToHost), "copy from the device");
  }

 private:
  T* data_ = nullptr;
  const std::size_t bytes_;
};

__global__ void PlayLanesKernel(TraceRun run, LaneTrace* out) {
  const int lane = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (lane < run.lanes) out[lane] = PlayLane(run, lane);
}

__global__ void StepCartPolesKernel(int n, CartPoleState* states, const std::int32_t* actions,
                                    std::uint8_t* terminated) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) terminated[i] = CartPoleStep(states[i], actions[i]) ? 1 : 0;
}

unsigned Blocks(int threads) {
  return static_cast<unsigned>((threads + kBlockThreads - 1) / kBlockThreads);
}

}  // namespace

int CudaDeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void PlayLanesOnDevice(const TraceRun& run, std::span<LaneTrace> out) {
  TETRION_CHECK(run.lanes > 0 && out.size() == static_cast<std::size_t>(run.lanes),
                "one trace a lane");
  DeviceArray<LaneTrace> traces(out.size());
  PlayLanesKernel<<<Blocks(run.lanes), kBlockThreads>>>(run, traces.data());
  CheckCuda(cudaGetLastError(), "launch of PlayLanesKernel");
  traces.CopyTo(out.data());
}

void StepCartPolesOnDevice(std::span<CartPoleState> states, std::span<const std::int32_t> actions,
                           std::span<std::uint8_t> terminated) {
  TETRION_CHECK(
      !states.empty() && states.size() == actions.size() && states.size() == terminated.size(),
      "one action and one end a state");
  DeviceArray<CartPoleState> device_states(states.size());
  DeviceArray<std::int32_t> device_actions(states.size());
  DeviceArray<std::uint8_t> device_terminated(states.size());
  device_states.CopyFrom(states.data());
  device_actions.CopyFrom(actions.data());
  const int n = static_cast<int>(states.size());
  StepCartPolesKernel<<<Blocks(n), kBlockThreads>>>(n, device_states.data(), device_actions.data(),
                                                    device_terminated.data());
  CheckCuda(cudaGetLastError(), "launch of StepCartPolesKernel");
  device_states.CopyTo(states.data());
  device_terminated.CopyTo(terminated.data());
}

}  // namespace tetrion
