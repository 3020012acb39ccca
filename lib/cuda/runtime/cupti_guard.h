#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/cuda/device.h"
#include "lib/cuda/host_copy_guard.h"

namespace tetrion::cuda {

// As HostCopyGuard, from CUPTI's record of what the driver did: copies and waits of any library in
// the process, copies within graphs too. Of purposes the driver knows nothing: copies are allowed
// by direction and kind, to the byte. It does not see what kernels read of mapped host memory.
//
// One at a time, and CUPTI has one client in a process: not together with torch's profiler.
class CuptiGuard {
 public:
  // Waits for the device, then watches. Throws Error(kTryAgain) where CUPTI cannot.
  explicit CuptiGuard(const Device& device);
  ~CuptiGuard();
  CuptiGuard(const CuptiGuard&) = delete;
  CuptiGuard& operator=(const CuptiGuard&) = delete;

  // Ends the region, once, and waits for the device; what was done in it and may not, a sentence
  // each. As HostCopyGuard's, and: copies from host to host, and records that CUPTI lost.
  std::vector<std::string> Violations(std::span<const AllowedCopies> allowed = {});

 private:
  void Stop();

  const int ordinal_;
  bool watching_ = false;
};

}  // namespace tetrion::cuda
