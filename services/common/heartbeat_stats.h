#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/core/figure.h"
#include "lib/wire/messages.h"

namespace tetrion {

// Appends what a heartbeat tells of a table's figures. `values`: in the table's order.
inline void AddStats(std::span<const FigureInfo> figures, std::span<const double> values,
                     std::vector<wire::Stat>& stats) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (!figures[i].in_status) continue;
    stats.push_back({.name = std::string(figures[i].name), .value = values[i]});
  }
}

}  // namespace tetrion
