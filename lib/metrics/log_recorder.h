#pragma once

#include "lib/core/log.h"
#include "lib/metrics/registry.h"

namespace tetrion {

// Serves tetrion_log_lines_lost_total from now on. Once per registry, by its owner.
inline void ServeLostLogLines(MetricsRegistry& registry) {
  HotCounter& lost = registry.Counter("tetrion_log_lines_lost_total");
  // Scrapes come one at a time, so that the counter has one writer.
  registry.OnScrape([&lost] { lost.RaiseTo(static_cast<double>(LostLogLines())); });
}

}  // namespace tetrion
