#include "lib/cuda/sim/kernel_calls.h"

#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/sim/block_runner.h"

namespace tetrion::cuda::sim {
namespace {

BlockRunner& Runner() {
  BlockRunner* runner = BlockRunner::Current();
  TETRION_CHECK(runner != nullptr, "only a kernel calls this");
  return *runner;
}

[[noreturn]] void Fail(const KernelFault& fault) {
  if (BlockRunner::Current() != nullptr) throw fault;
  throw Error(ExitCode::kInternal, ToText(fault.where) + ": " + fault.text);
}

}  // namespace

std::size_t BlockBarrier(bool vote, CodeLocation where) {
  return Runner().WaitAtBarrier(vote, where);
}

std::uint64_t WarpExchange(WarpOperation what, std::uint32_t mask, std::uint64_t value,
                           unsigned source, CodeLocation where) {
  return Runner().WaitInWarp({what, mask, value, source, nullptr}, where);
}

std::uint64_t WarpReduce(Combine combine, std::uint32_t mask, std::uint64_t value,
                         CodeLocation where) {
  return Runner().WaitInWarp({WarpOperation::kReduce, mask, value, 0, combine}, where);
}

unsigned CurrentLane() {
  return Runner().lane();
}

void* DynamicShared() {
  return Runner().shared().dynamic();
}

std::size_t DynamicSharedBytes() {
  return Runner().shared().dynamic_bytes();
}

void* StaticShared(const void* tag, std::size_t bytes) {
  void* array = Runner().shared().Static(tag, bytes);
  if (array != nullptr) return array;
  throw KernelFault{Diagnosis::kIndexPastEnd,
                    {},
                    "an array is more than the block has of shared memory (48 KB of arrays)"};
}

void CheckSharedRead(const void* at, std::size_t bytes, CodeLocation where) {
  if (Runner().shared().Written(at, bytes)) return;
  throw KernelFault{Diagnosis::kSharedNeverWritten, where,
                    "shared memory is read here that no thread of the block has written"};
}

void NoteSharedWrite(const void* at, std::size_t bytes) {
  Runner().shared().NoteWrite(at, bytes);
}

void FailIndex(std::size_t index, std::size_t size, CodeLocation where) {
  Fail({Diagnosis::kIndexPastEnd, where,
        "index " + std::to_string(index) + " of a span of " + std::to_string(size)});
}

}  // namespace tetrion::cuda::sim
