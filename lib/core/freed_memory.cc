#include "lib/core/freed_memory.h"

#include <malloc.h>

namespace tetrion {

void KeepFreedMemory() {
  constexpr int kMostKept = 32 << 20;     // the largest threshold that glibc takes
  constexpr int kNoTrim = 0x7FFFFFFF;     // bytes at the end of the heap
  constexpr int kAskedAtOnce = 16 << 20;  // from the kernel, when the heap grows
  (void)mallopt(M_MMAP_THRESHOLD, kMostKept);
  (void)mallopt(M_TRIM_THRESHOLD, kNoTrim);
  (void)mallopt(M_TOP_PAD, kAskedAtOnce);
}

}  // namespace tetrion
