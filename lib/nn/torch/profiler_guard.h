#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tetrion {

// Whether an activity of a device, as torch's profiler (Kineto) names it, is a copy with the host
// at one end or both: "Memcpy HtoD (Pageable -> Device)".
bool NamesHostCopy(std::string_view activity);

// As lib/cuda's guards of host copies, from the record of torch's profiler: what tensor operations
// and all else in the process do on devices. It knows names, no bytes, so nothing is allowed.
//
// One at a time. The profiler is a client of CUPTI, which has one in a process: not together with
// CuptiGuard, and in a program of its own. On a machine without a device it records none.
class ProfilerGuard {
 public:
  ProfilerGuard();
  ~ProfilerGuard();
  ProfilerGuard(const ProfilerGuard&) = delete;
  ProfilerGuard& operator=(const ProfilerGuard&) = delete;

  // Ends the region, once: each copy with the host, a sentence each, and that no kernel was
  // recorded, since then nothing was watched. The caller waits for the device before.
  std::vector<std::string> Violations();

 private:
  bool watching_ = true;
};

}  // namespace tetrion
