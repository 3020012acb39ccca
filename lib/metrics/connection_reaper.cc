#include "lib/metrics/connection_reaper.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>

namespace tetrion {
namespace {

// Whether `fd` is a TCP connection accepted on `port`.
bool IsConnectionOf(int fd, std::uint16_t port) {
  sockaddr_storage local{}, peer{};
  socklen_t local_bytes = sizeof local, peer_bytes = sizeof peer;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_bytes) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0) {
    return false;
  }
  // The port has the same place in both address families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const bool tcp = local.ss_family == AF_INET || local.ss_family == AF_INET6;
  return tcp && ntohs(reinterpret_cast<const sockaddr_in*>(&local)->sin_port) == port;
}

}  // namespace

int ConnectionReaper::CutOlderThan(std::int64_t max_age_ns) {
  MutexLock lock(mu_);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (folder == nullptr) return 0;
  const std::int64_t now_ns = clock_.NowNs();
  std::map<std::uint64_t, std::int64_t> seen_ns;
  int cut = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    struct stat info;
    if (fd <= 2 || !IsConnectionOf(fd, port_) || fstat(fd, &info) != 0) continue;
    const auto known = first_seen_ns_.find(info.st_ino);
    const std::int64_t first_ns = known == first_seen_ns_.end() ? now_ns : known->second;
    seen_ns[info.st_ino] = first_ns;
    if (now_ns - first_ns < max_age_ns) continue;
    shutdown(fd, SHUT_RDWR);
    ++cut;
  }
  first_seen_ns_ = std::move(seen_ns);
  return cut;
}

}  // namespace tetrion
