#include "lib/core/freed_memory.h"

#include <malloc.h>

namespace tetrion {

void KeepFreedMemory() {
  constexpr int kOneHeap = 1;    // the heaps of other threads go back to the kernel when empty
  constexpr int kNoneApart = 0;  // else every block above 32 MiB is a mapping, made for it alone
  constexpr int kNever = -1;
  constexpr int kAskedAtOnce = 16 << 20;  // bytes from the kernel, when the heap grows
  (void)mallopt(M_ARENA_MAX, kOneHeap);
  (void)mallopt(M_MMAP_MAX, kNoneApart);
  (void)mallopt(M_TRIM_THRESHOLD, kNever);
  (void)mallopt(M_TOP_PAD, kAskedAtOnce);
}

}  // namespace tetrion
