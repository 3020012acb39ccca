#pragma once

namespace tetrion {

// Freed memory stays with this process instead of going back to the kernel: who allocates the same
// sizes again and again, as a trainer's tensors do, would have the kernel clear their pages every
// time. All threads' blocks come from one heap, which never shrinks: it is as large as what was in
// use at once and the gaps between (docs/decisions/0027-freed-memory-stays-in-one-heap.md).
// For main, before threads begin. An allocator other than glibc's ignores it.
void KeepFreedMemory();

}  // namespace tetrion
