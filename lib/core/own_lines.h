#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "lib/core/align.h"

namespace tetrion {

// Gives memory that shares no pair of cache lines with any other: what two threads write stays
// apart, however little each has. Throws std::bad_alloc.
template <typename T>
struct OwnLinesAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): containers ask for it

  OwnLinesAllocator() = default;
  template <typename Other>
  // NOLINTNEXTLINE(google-explicit-constructor): containers convert it
  OwnLinesAllocator(const OwnLinesAllocator<Other>&) {}

  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(AlignUp(n * sizeof(T), kCacheLinePairBytes), kAlign));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kAlign); }
  bool operator==(const OwnLinesAllocator&) const = default;

 private:
  static constexpr std::align_val_t kAlign{kCacheLinePairBytes};
};

template <typename T>
using OwnLinesVector = std::vector<T, OwnLinesAllocator<T>>;

}  // namespace tetrion
