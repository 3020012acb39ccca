#pragma once

#include <cstdint>
#include <map>

#include "lib/core/clock.h"
#include "lib/core/mutex.h"

namespace tetrion {

// Cuts the TCP connections of one local port that have lasted too long: a peer that sends a byte
// now and then would hold a server thread otherwise, and the HTTP library has no limit for a whole
// request. Thread-safe; nothing blocks.
class ConnectionReaper {
 public:
  ConnectionReaper(std::uint16_t port, const Clock& clock) : port_(port), clock_(clock) {}

  // Looks through the process's sockets and shuts down those connected to the port that were seen
  // first at least `max_age_ns` ago; 0 cuts all. Returns how many. The owner still closes them.
  int CutOlderThan(std::int64_t max_age_ns) TETRION_EXCLUDES(mu_);

 private:
  const std::uint16_t port_;
  const Clock& clock_;
  Mutex mu_;
  // First sight of each connection by socket inode (descriptors are reused, inodes are not).
  std::map<std::uint64_t, std::int64_t> first_seen_ns_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion
