#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tetrion {

// While one exists, a program that touches bytes of a mapped region whose file has been cut off, or
// for which the file system has no room, ends with one sentence on stderr and ExitCode::kConfig
// instead of by SIGBUS. Every other SIGBUS ends the program as ever.
//
// Changes what SIGBUS does, for all threads. One at a time (CHECK).
class TruncationGuard {
 public:
  // `path` names the region in the sentence.
  TruncationGuard(std::span<const std::byte> region, const std::string& path);
  TruncationGuard(const TruncationGuard&) = delete;
  TruncationGuard& operator=(const TruncationGuard&) = delete;
  ~TruncationGuard();
};

}  // namespace tetrion
