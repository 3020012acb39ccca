#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/frame/row_layout.h"
#include "lib/replay/row_columns.h"

namespace tetrion::testing {

// Memory for every column of R rows of b lanes, as a gather fills it.
struct Gathered {
  Gathered(const RowSpec& row, int rows, int lanes) {
    const auto cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(lanes);
    record.resize(cells * row.record_bytes);
    action.resize(cells);
    log_prob.resize(cells);
    mask.resize(row.has_mask ? cells : 0);
    reward.resize(cells);
    flags.resize(cells);
    cont.resize(cells);
  }
  RowColumns Columns() {
    return {.record = record.data(),
            .action = action.data(),
            .log_prob = log_prob.data(),
            .mask = mask.empty() ? nullptr : mask.data(),
            .reward = reward.data(),
            .flags = flags.data(),
            .cont = cont.data()};
  }

  std::vector<std::byte> record;
  std::vector<std::int32_t> action;
  std::vector<float> log_prob;
  std::vector<std::uint64_t> mask;
  std::vector<float> reward;
  std::vector<std::uint8_t> flags;
  std::vector<float> cont;
};

}  // namespace tetrion::testing
