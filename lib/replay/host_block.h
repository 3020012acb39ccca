#pragma once

#include <cstddef>
#include <string>

namespace tetrion {

// Zeroed memory of the replay, at the same address for life: 256-byte aligned, from 2 MiB on with
// huge pages asked for. Its pages are there when it is made.
class HostBlock {
 public:
  // Throws Error(kTryAgain) naming `what` and the bytes when memory is not there.
  HostBlock(std::size_t bytes, const std::string& what);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* const data_;
};

}  // namespace tetrion
