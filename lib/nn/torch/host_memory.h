#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string_view>

namespace tetrion {

// Does `work` on tensors in the host's memory. Where no memory is left, the tensor library throws
// an error of its own, with a stack trace; this throws std::bad_alloc, as everything else does.
template <typename Work>
void InHostMemory(const Work& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    // c10/core/impl/alloc_cpu.cpp has no class of error for it.
    constexpr std::string_view kLack = "can't allocate memory";
    const std::string_view what = error.what_without_backtrace();
    if (what.find(kLack) == std::string_view::npos) throw;
    throw std::bad_alloc();
  }
}

}  // namespace tetrion
