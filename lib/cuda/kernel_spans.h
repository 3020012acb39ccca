#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "lib/core/host_device.h"

#if !defined(__CUDACC__)
#include "lib/cuda/sim/kernel_calls.h"
#endif

namespace tetrion::cuda {

#if defined(__CUDACC__)
using SpanIndex = std::size_t;
#else
// An index that knows where it is used; a negative one is past every end.
struct SpanIndex {
  template <std::integral T>
  SpanIndex(T index, CodeLocation place = CodeLocation::Here())  // NOLINT: to be converted to
      : value(static_cast<std::size_t>(index)), where(place) {}
  std::size_t value;
  CodeLocation where;
};
#endif

// [size] values of device memory, as kernels take them. The simulator checks every index and names
// file and line of one that is past the end; a device checks none.
template <typename T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  TETRION_HOST_DEVICE DeviceSpan(T* data, std::size_t size) : data_(data), size_(size) {}

  TETRION_HOST_DEVICE std::size_t size() const { return size_; }
  // Unchecked.
  TETRION_HOST_DEVICE T* data() const { return data_; }

#if defined(__CUDACC__)
  __device__ T& operator[](SpanIndex index) const { return data_[index]; }
#else
  T& operator[](SpanIndex index) const {
    if (index.value >= size_) sim::FailIndex(index.value, size_, index.where);
    return data_[index.value];
  }
#endif

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tetrion::cuda
