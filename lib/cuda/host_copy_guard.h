#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/cuda/activity.h"

namespace tetrion::cuda {

// Copies between host and device that a region of code may make.
struct AllowedCopies {
  CopyDirection direction;
  MemoryKind kind;
  CopyPurpose purpose;
  std::uint64_t bytes;  // in all, exactly
};

// Counts what the whole process asks of its devices while the guard lives, by direction, memory
// kind and purpose: how a path is shown to copy nothing by way of the host, or just what its
// specification allows. Warm up first: what is made once is not the path's.
//
// It sees what goes through device.h. It does not see what kernels read of mapped host memory, nor
// copies that other libraries make.
class HostCopyGuard {
 public:
  HostCopyGuard() : before_(ProcessActivity().Read()) {}

  Activity Seen() const { return ProcessActivity().Read().Since(before_); }

  // What the region did and may not, a sentence each; empty when all is well. A host copy that
  // `allowed` does not name, or of another size; a wait of the host; and no kernel at all, since
  // then nothing was watched.
  std::vector<std::string> Violations(std::span<const AllowedCopies> allowed = {}) const;

 private:
  const Activity before_;
};

}  // namespace tetrion::cuda
