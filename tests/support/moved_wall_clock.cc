// The time of day, moved. A library for LD_PRELOAD: what the program reads of the wall clock is
// moved by as many seconds as the file WALL_CLOCK_FILE holds at that moment (one signed integer of
// 8 bytes, mapped, so that a change is a jump). CLOCK_MONOTONIC and all other clocks are as before.
//
// Any thread. Waits until a point in wall time are the C library's own and are not moved.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

using Seconds = std::atomic<std::int64_t>;

const Seconds& MapFile() {
  const char* path = std::getenv("WALL_CLOCK_FILE");
  const int file = open(path == nullptr ? "" : path, O_RDONLY | O_CLOEXEC);
  void* page = mmap(nullptr, sizeof(Seconds), PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    std::perror("WALL_CLOCK_FILE cannot be mapped");
    std::abort();
  }
  close(file);
  return *static_cast<const Seconds*>(page);
}

std::int64_t MovedSeconds() {
  static const Seconds& seconds = MapFile();
  return seconds.load(std::memory_order_relaxed);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using Read = int (*)(clockid_t, timespec*);
  static const Read read = reinterpret_cast<Read>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = read(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += MovedSeconds();
  }
  return result;
}

int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise;
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  *now = {precise.tv_sec, precise.tv_nsec / 1000};
  return result;
}

std::time_t time(std::time_t* copy) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (copy != nullptr) *copy = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
