#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>

namespace tetrion {

// A new numpy array [n, width], all zero, that owns its memory.
template <typename T>
nanobind::ndarray<nanobind::numpy, T> NewArray(std::size_t n, std::size_t width) {
  auto* data = new T[n * width]();
  const nanobind::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<nanobind::numpy, T>(data, {n, width}, owner);
}

}  // namespace tetrion
