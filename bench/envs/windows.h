#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/clock.h"

namespace tetrion::bench {

// Rates of one contestant, a window each.
using Rates = std::vector<double>;

struct Windows {
  int count = 5;
  std::int64_t length_ns = kNanosPerSecond / 2;
};

// Units of work a second over one window. `work` does a bounded piece and returns its units.
template <typename Work>
double Window(const Windows& windows, Work&& work) {
  const Clock& clock = MonotonicClock::Get();
  const std::int64_t start_ns = clock.NowNs();
  double units = 0;
  std::int64_t passed_ns = 0;
  while (passed_ns < windows.length_ns) {
    units += static_cast<double>(work());
    passed_ns = clock.NowNs() - start_ns;
  }
  return units * static_cast<double>(kNanosPerSecond) / static_cast<double>(passed_ns);
}

struct Spread {
  explicit Spread(Rates rates) {
    std::sort(rates.begin(), rates.end());
    median = rates[rates.size() / 2];
    min = rates.front();
    max = rates.back();
  }
  // "median": ..., "min": ..., "max": ... without braces.
  std::string Json() const {
    return "\"median\": " + std::to_string(median) + ", \"min\": " + std::to_string(min) +
           ", \"max\": " + std::to_string(max);
  }
  double median, min, max;
};

}  // namespace tetrion::bench
