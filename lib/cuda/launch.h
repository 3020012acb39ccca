#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/cuda/device.h"
#include "lib/cuda/kernel.h"

// Launching kernels. Used by files that nvcc compiles for a device and g++ for the simulator
// (tetrion_cuda_test in cmake/TetrionTargets.cmake), and by tests of the simulator alone.

namespace tetrion::cuda {

// A stream and the place that launches on it, which the simulator's findings name.
struct LaunchSite {
  LaunchSite(Stream& on, CodeLocation place = CodeLocation::Here())  // NOLINT: converts a stream
      : stream(on), where(place) {}
  Stream& stream;
  CodeLocation where;
};

// Blocks of `block_threads` that hold `threads`, one a piece of work.
inline unsigned BlocksFor(std::uint64_t threads, unsigned block_threads) {
  return static_cast<unsigned>((threads + block_threads - 1) / block_threads);
}

// Enqueues kernel(arguments...) with `shared_bytes` of dynamic shared memory. Arguments are copied
// now; what they point to is used when the stream comes to it. Throws Error for a shape that no
// device can run.
template <typename... Params, typename... Args>
void Launch(LaunchSite site, void (*kernel)(Params...), Dim3 grid, Dim3 block,
            std::size_t shared_bytes, Args&&... args) {
  static_assert((std::is_trivially_copyable_v<std::decay_t<Params>> && ...),
                "a kernel's arguments are copied as bytes");
  std::tuple<std::decay_t<Params>...> values(static_cast<Params>(std::forward<Args>(args))...);
  KernelCall call;
  call.grid = grid;
  call.block = block;
  call.shared_bytes = shared_bytes;
  call.where = site.where;
  call.function = reinterpret_cast<const void*>(kernel);  // how the runtime names a kernel
#if defined(__CUDACC__)
  std::array<void*, sizeof...(Params)> pointers = std::apply(
      [](auto&... value) { return std::array<void*, sizeof...(Params)>{&value...}; }, values);
  call.arguments = pointers.data();
#else
  call.body = [kernel, values] { std::apply(kernel, values); };
#endif
  backend::LaunchKernel(call, site.stream.state());
  Activity activity;
  activity.launches = 1;
  site.stream.Count(activity);
}

}  // namespace tetrion::cuda
