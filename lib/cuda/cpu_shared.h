#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "lib/cuda/kernel_spans.h"

// Shared memory of a kernel that runs on the CPU: every read and write goes through the simulator.

namespace tetrion::cuda {

// The address of a value of shared memory: what &span[i] is, for atomics.
template <typename T>
struct SharedAddress {
  T* at;
  CodeLocation where;
};

// Stands for a value of shared memory, within the expression that takes it: `auto v = shared[i];`,
// which nvcc copies, does not compile once `v` is used. Say the type.
template <typename T>
class SharedReference {
 public:
  SharedReference(T* at, CodeLocation where) : at_(at), where_(where) {}
  SharedReference(const SharedReference&) = delete;

  operator T() && {  // NOLINT: stands for the value
    sim::CheckSharedRead(at_, sizeof(T), where_);
    return *at_;
  }
  // NOLINTBEGIN: as above
  T operator=(T value) && { return Set(value); }
  T operator=(SharedReference&& other) && { return Set(T(std::move(other))); }
  // NOLINTEND
  T operator+=(T value) && { return Set(Old() + value); }
  T operator-=(T value) && { return Set(Old() - value); }
  T operator*=(T value) && { return Set(Old() * value); }
  T operator|=(T value) && { return Set(Old() | value); }
  T operator&=(T value) && { return Set(Old() & value); }
  T operator^=(T value) && { return Set(Old() ^ value); }
  SharedAddress<T> operator&() && { return {at_, where_}; }  // NOLINT: stands for the value

 private:
  T Old() { return T(std::move(*this)); }
  template <typename V>
  T Set(V value) {
    *at_ = static_cast<T>(value);
    sim::NoteSharedWrite(at_, sizeof(T));
    return *at_;
  }

  T* at_;
  CodeLocation where_;
};

// [size] values of shared memory.
template <typename T>
class SharedSpan {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory has no constructors");

 public:
  SharedSpan(T* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t size() const { return size_; }
  SharedReference<T> operator[](SpanIndex index) const {
    if (index.value >= size_) sim::FailIndex(index.value, size_, index.where);
    return SharedReference<T>(data_ + index.value, index.where);
  }
  // [count] values from `first` on.
  SharedSpan Part(SpanIndex first, std::size_t count) const {
    if (first.value > size_ || count > size_ - first.value) {
      sim::FailIndex(first.value + count, size_, first.where);
    }
    return SharedSpan(data_ + first.value, count);
  }

 private:
  T* data_;
  std::size_t size_;
};

template <typename T>
SharedSpan<T> SharedBytes() {
  return SharedSpan<T>(static_cast<T*>(sim::DynamicShared()),
                       sim::DynamicSharedBytes() / sizeof(T));
}

namespace sim {

template <typename T>
SharedSpan<T> SharedArray(const void* tag, std::size_t count) {
  return SharedSpan<T>(static_cast<T*>(StaticShared(tag, count * sizeof(T))), count);
}

}  // namespace sim
}  // namespace tetrion::cuda

// NOLINTBEGIN: neither a type nor a name can stand in parentheses
#define TETRION_SHARED(type, name, count) \
  static const char name##_tag = 0;       \
  const auto name = ::tetrion::cuda::sim::SharedArray<type>(&name##_tag, (count))
// NOLINTEND
