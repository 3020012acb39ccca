#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// The bytes from `index` on as a V (uint4 for 16 of them), in one load or store. They begin at a
// multiple of their size, which the simulator checks, too.
#if defined(__CUDACC__)
template <typename V, typename T>
__device__ V LoadWide(const DeviceSpan<T>& span, SpanIndex index) {
  return *reinterpret_cast<const V*>(span.data() + index);  // the load that this is for
}
template <typename V, typename T>
__device__ void StoreWide(const DeviceSpan<T>& span, SpanIndex index, const V& value) {
  *reinterpret_cast<V*>(span.data() + index) = value;  // as above
}
#else
template <typename V, typename T>
T* WidePlace(const DeviceSpan<T>& span, SpanIndex index) {
  constexpr std::size_t kValues = sizeof(V) / sizeof(T);
  static_assert(sizeof(V) % sizeof(T) == 0);
  if (index.value >= span.size() || kValues > span.size() - index.value) {
    sim::FailIndex(index.value + kValues - 1, span.size(), index.where);
  }
  T* const place = span.data() + index.value;
  const auto address = reinterpret_cast<std::uintptr_t>(place);  // a number, to be divided
  if (address % sizeof(V) != 0) sim::FailAlignment(sizeof(V), index.where);
  return place;
}
template <typename V, typename T>
V LoadWide(const DeviceSpan<T>& span, SpanIndex index) {
  V value;
  std::memcpy(&value, WidePlace<V>(span, index), sizeof(V));
  return value;
}
template <typename V, typename T>
void StoreWide(const DeviceSpan<T>& span, SpanIndex index, const V& value) {
  std::memcpy(WidePlace<V>(span, index), &value, sizeof(V));
}
#endif

}  // namespace tetrion::cuda
