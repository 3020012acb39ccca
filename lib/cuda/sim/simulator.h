#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/cuda/backend.h"
#include "lib/cuda/sim/block_runner.h"
#include "lib/cuda/sim/finding.h"
#include "lib/cuda/sim/kernel_log.h"
#include "lib/cuda/sim/memory.h"
#include "lib/cuda/sim/scheduler.h"
#include "lib/cuda/sim/stream_queue.h"

namespace tetrion::cuda::sim {

struct SimulatorOptions {
  Schedule schedule;
  std::size_t memory_bytes = std::size_t{1} << 30;
};

// A device in host memory. Streams are queues; nothing runs when it is enqueued, but when a host
// thread has to wait, queries, or frees memory: then the scheduler picks among the streams whose
// first operation may run. What a fault in a kernel or a call was stays: from then on every call
// throws it, as a device's do, until it is taken.
//
// Thread roles: any thread calls anything; one mutex, held while operations run, makes the calls
// one after the other. One simulator per process, which lives as long as it.
class Simulator {
 public:
  static Simulator& Get();

  // A fresh device with the buffers of the old one, whose work is done first. No stream may be
  // open. Throws Error(kInternal) when the old one had a finding that no caller took, and when the
  // new memory is too small for the buffers.
  void Restart(const SimulatorOptions& options);
  // Does all work; what was found, if anything was. It is gone then, with the work behind it.
  std::optional<Finding> TakeFinding();

  DeviceMemory MemoryState() const;
  void* Allocate(std::size_t bytes, MemoryKind kind);
  void Free(void* data);
  // Pinned memory of the caller's. Throws Error(kInternal) when some of it is pinned already. A
  // copy that is under way when its memory is unpinned is found when it goes on.
  void Pin(const void* data, std::size_t bytes);
  void Unpin(const void* data);
  MemoryKind KindOf(const void* data) const;
  // Throws Error(kInternal) unless the extent lies within one buffer of device or pinned memory, or
  // one pinned range.
  void CheckWithin(const Extent& extent, const char* what) const;

  std::shared_ptr<StreamQueue> Open(const std::string& name);
  void Close(StreamQueue& stream);
  void Enqueue(StreamQueue& stream, Operation operation);
  // Behind what is enqueued so far.
  StreamPoint Mark(const std::shared_ptr<StreamQueue>& stream);
  // An event's point is read and written in here alone: one thread records what others wait for.
  void Record(StreamPoint& point, const std::shared_ptr<StreamQueue>& stream);
  void EnqueueWait(StreamQueue& stream, const StreamPoint& point);
  bool Passed(const StreamPoint& point);
  // Until what the point says at the call has run.
  void WaitFor(const StreamPoint& point);
  void BeginCapture(StreamQueue& stream);
  std::vector<Operation> EndCapture(StreamQueue& stream);

 private:
  Simulator();
  void ThrowFinding() const TETRION_REQUIRES(mu_);
  void Append(StreamQueue& stream, Operation operation) TETRION_REQUIRES(mu_);
  bool Step() TETRION_REQUIRES(mu_);
  void RunPart(StreamQueue& stream) TETRION_REQUIRES(mu_);
  void RunOpened(const Operation& operation, StreamQueue& stream) TETRION_REQUIRES(mu_);
  // Whether all that a copy or a fill touches is there; notes what is not.
  bool MemoryIsThere(const Operation& operation, const StreamQueue& stream) TETRION_REQUIRES(mu_);
  void RunBlocks(const KernelCall& call, const StreamQueue& stream) TETRION_REQUIRES(mu_);
  void Note(Finding finding) TETRION_REQUIRES(mu_);
  // Notes memory that is given back while the calling thread captures.
  void NoteInCapture(const char* what) TETRION_REQUIRES(mu_);
  // Notes what was written around a buffer. `where` is a launch's.
  void NoteOverrun(const char* who, CodeLocation where, const StreamQueue& stream)
      TETRION_REQUIRES(mu_);
  void Drain() TETRION_REQUIRES(mu_);

  mutable Mutex mu_;
  Memory memory_ TETRION_GUARDED_BY(mu_);
  BlockRunner blocks_ TETRION_GUARDED_BY(mu_);
  KernelLog kernels_ TETRION_GUARDED_BY(mu_);
  std::optional<Scheduler> scheduler_ TETRION_GUARDED_BY(mu_);
  // Open ones, and closed ones with work left; by their number.
  std::map<std::uint64_t, std::shared_ptr<StreamQueue>> streams_ TETRION_GUARDED_BY(mu_);
  std::uint64_t next_number_ TETRION_GUARDED_BY(mu_) = 0;
  std::optional<Finding> finding_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::cuda::sim
