#pragma once

namespace tetrion {

// Freed blocks of up to 32 MiB stay with this process instead of going back to the kernel: who
// allocates the same sizes again and again, as a trainer's tensors do, would have the kernel clear
// their pages every time. What is kept is at most what was in use at once, for each thread's arena.
// For main, before threads begin. An allocator other than glibc's ignores it.
void KeepFreedMemory();

}  // namespace tetrion
