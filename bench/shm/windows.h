#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/child.h"
#include "bench/shm/links.h"
#include "lib/core/clock.h"
#include "lib/core/cpu_count.h"

namespace tetrion::bench {

// One window each of rate and of round trips, between two threads or two processes on two cores.

enum class Peer { kThread, kProcess };

struct Shared {
  std::atomic<std::uint32_t> ready;
  alignas(128) std::atomic<std::uint32_t> stop;
  alignas(128) std::atomic<std::uint64_t> received;
};

// Core 0 or 1; -1 for any.
inline void PinTo(int core) {
  // Asked once, before the first pin: a pinned thread's children may use one core only.
  static const bool may = UsableCpus() >= 2;
  if (!may) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (core < 0 || c == core) CPU_SET(static_cast<std::size_t>(c), &set);
  }
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

// Spins, then yields: on a crowded machine the peer may need this core.
class Backoff {
 public:
  void Idle() {
    if (++idle_ < 2000) {
      _mm_pause();
    } else {
      sched_yield();
    }
  }
  void Busy() { idle_ = 0; }

 private:
  int idle_ = 0;
};

// Runs `peer` in a thread or process of its own on core 1 while `main` runs here on core 0;
// unpinned for links whose library threads would inherit the pinning.
template <typename PeerFn, typename MainFn>
void RunPair(Peer kind, bool pin, PeerFn&& peer, MainFn&& main) {
  PinTo(pin ? 0 : -1);
  if (kind == Peer::kThread) {
    std::thread thread([&] {
      PinTo(pin ? 1 : -1);
      peer();
    });
    main();
    thread.join();
    return;
  }
  const pid_t child = ForkChild();
  if (child == 0) {
    PinTo(pin ? 1 : -1);
    peer();
    std::exit(0);  // not _exit: libraries say goodbye to their brokers
  }
  main();
  int status = 0;
  TETRION_CHECK(waitpid(child, &status, 0) == child && status == 0, "the peer process failed");
}

inline void AwaitReady(Shared& shared) {
  while (shared.ready.load(std::memory_order_acquire) == 0) sched_yield();
}

// Records a second through `link` over `length_ns`.
template <typename Link>
double RateWindow(Link& link, Peer kind, std::int64_t length_ns) {
  auto* shared = MapShared<Shared>();
  double rate = 0;
  const auto receive = [&] {
    link.OpenReceiver();
    shared->ready.store(1, std::memory_order_release);
    Backoff backoff;
    std::uint64_t received = 0;
    while (shared->stop.load(std::memory_order_relaxed) == 0) {
      const std::uint32_t count = link.Receive();
      received += count;
      shared->received.store(received, std::memory_order_relaxed);
      count > 0 ? backoff.Busy() : backoff.Idle();
    }
  };
  RunPair(kind, Link::kPin, receive, [&] {
    link.OpenSender();
    AwaitReady(*shared);
    const Clock& clock = MonotonicClock::Get();
    Backoff backoff;
    const auto send_for = [&](std::int64_t time_ns) {
      const std::int64_t until_ns = clock.NowNs() + time_ns;
      while (clock.NowNs() < until_ns) {
        for (int i = 0; i < 64; ++i) link.Send() > 0 ? backoff.Busy() : backoff.Idle();
      }
    };
    send_for(length_ns / 10);  // warm up
    const std::uint64_t before = shared->received.load(std::memory_order_relaxed);
    const std::int64_t start_ns = clock.NowNs();
    send_for(length_ns);
    const std::uint64_t after = shared->received.load(std::memory_order_relaxed);
    rate =
        static_cast<double>(after - before) * 1e9 / static_cast<double>(clock.NowNs() - start_ns);
    shared->stop.store(1, std::memory_order_relaxed);
  });
  munmap(shared, sizeof *shared);
  return rate;
}

struct RoundTrip {
  double p50_ns = 0;
  double p99_ns = 0;
};

// Nearest-rank percentiles of round trips of one record, `there` and `back`, over `length_ns`.
template <typename Link>
RoundTrip RoundTripWindow(Link& there, Link& back, Peer kind, std::int64_t length_ns) {
  auto* shared = MapShared<Shared>();
  std::vector<std::uint64_t> ticks;
  ticks.reserve(16'000'000);
  double ns_per_tick = 1;
  const auto echo = [&] {
    there.OpenReceiver();
    back.OpenSender();
    shared->ready.store(1, std::memory_order_release);
    Backoff backoff;
    while (shared->stop.load(std::memory_order_relaxed) == 0) {
      if (there.Receive() == 0) {
        backoff.Idle();
        continue;
      }
      backoff.Busy();
      while (back.Send() == 0) backoff.Idle();
    }
  };
  RunPair(kind, Link::kPin, echo, [&] {
    back.OpenReceiver();
    there.OpenSender();
    AwaitReady(*shared);
    const Clock& clock = MonotonicClock::Get();
    const std::int64_t start_ns = clock.NowNs();
    const std::uint64_t start_ticks = __rdtsc();
    Backoff backoff;
    while (clock.NowNs() < start_ns + length_ns && ticks.size() < ticks.capacity() - 64) {
      for (int i = 0; i < 64; ++i) {
        const std::uint64_t sent = __rdtsc();
        while (there.Send() == 0) backoff.Idle();
        while (back.Receive() == 0) backoff.Idle();
        ticks.push_back(__rdtsc() - sent);
        backoff.Busy();
      }
    }
    ns_per_tick = static_cast<double>(clock.NowNs() - start_ns) /
                  static_cast<double>(__rdtsc() - start_ticks);
    shared->stop.store(1, std::memory_order_relaxed);
  });
  munmap(shared, sizeof *shared);
  ticks.erase(ticks.begin(), ticks.begin() + static_cast<std::ptrdiff_t>(ticks.size() / 10));
  std::sort(ticks.begin(), ticks.end());
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(ticks.size()));
    return static_cast<double>(ticks[std::min(index, ticks.size() - 1)]) * ns_per_tick;
  };
  return {.p50_ns = at(0.50), .p99_ns = at(0.99)};
}

// "{"median": m, "min": a, "max": b}" of the windows' values, with `extra` in front.
inline std::string Spread(std::vector<double> values, const std::string& extra = "") {
  std::sort(values.begin(), values.end());
  char text[160];
  std::snprintf(text, sizeof text, "\"median\": %.6g, \"min\": %.6g, \"max\": %.6g}",
                values[values.size() / 2], values.front(), values.back());
  return "{" + extra + text;
}

// Prints a figure's JSON line; the ratio is taken window by window.
inline void PrintFigure(const std::string& what, const std::string& unit,
                        const std::vector<double>& ours, const std::string& rival_name,
                        const std::vector<double>& rival, const std::string& target) {
  std::vector<double> ratio;
  for (std::size_t i = 0; i < ours.size(); ++i) ratio.push_back(ours[i] / rival[i]);
  std::printf(
      "{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": %s, \"rival\": %s, \"ratio\": %s, "
      "\"target\": %s}\n",
      what.c_str(), unit.c_str(), Spread(ours).c_str(),
      Spread(rival, "\"name\": \"" + rival_name + "\", ").c_str(), Spread(ratio).c_str(),
      target.empty() ? "null" : ("\"" + target + "\"").c_str());
  std::fflush(stdout);
}

}  // namespace tetrion::bench
