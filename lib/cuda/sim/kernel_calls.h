#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/cuda/code_location.h"

// What kernel code that g++ compiled asks of the simulator, through cpu_kernels.h. Every function
// belongs to the thread of the block that runs now; outside of a kernel all but the last two abort.

namespace tetrion::cuda::sim {

enum class WarpOperation : std::uint8_t { kSync, kShuffle, kBallot, kMatch, kReduce };
using Combine = std::uint64_t (*)(std::uint64_t, std::uint64_t);

// Waits for all threads of the block; how many of them voted.
std::size_t BlockBarrier(bool vote, CodeLocation where);

// Waits for the lanes of `mask`. Gives kShuffle the value of lane `source`, kBallot a bit for every
// lane of the mask whose value is not 0, kMatch one for every lane with the caller's value, kSync
// nothing.
std::uint64_t WarpExchange(WarpOperation what, std::uint32_t mask, std::uint64_t value,
                           unsigned source, CodeLocation where);
// The values of all lanes of the mask, combined from the first lane on.
std::uint64_t WarpReduce(Combine combine, std::uint32_t mask, std::uint64_t value,
                         CodeLocation where);
unsigned CurrentLane();

// Shared memory of the running block: the dynamic part, and arrays that are told apart by `tag`.
void* DynamicShared();
std::size_t DynamicSharedBytes();
void* StaticShared(const void* tag, std::size_t bytes);
// Of a value of shared memory: refuses one that was never written; notes that it was.
void CheckSharedRead(const void* at, std::size_t bytes, CodeLocation where);
void NoteSharedWrite(const void* at, std::size_t bytes);

[[noreturn]] void FailIndex(std::size_t index, std::size_t size, CodeLocation where);

}  // namespace tetrion::cuda::sim
