#include "lib/frame/row_batch.h"

#include <algorithm>
#include <cstring>

#include "lib/core/check.h"

namespace tetrion {

RowBatch::RowBatch(const RowSpec& row_spec, int step_count, int window_count)
    : spec(row_spec),
      steps(step_count),
      windows(window_count),
      lanes(window_count * static_cast<int>(row_spec.lanes)) {
  TETRION_CHECK(steps > 0 && windows > 0, "a batch has at least one transition and one window");
  const std::size_t cells = static_cast<std::size_t>(steps + 1) * static_cast<std::size_t>(lanes);
  record.resize(cells * spec.record_bytes);
  action.resize(cells);
  log_prob.resize(cells);
  mask.resize(spec.has_mask ? cells : 0);
  reward.resize(cells);
  flags.resize(cells);
  cont.resize(cells);
  policy_version.resize(static_cast<std::size_t>(steps + 1) * static_cast<std::size_t>(windows));
}

void RowBatch::CopyRow(const RowLayout& layout, const std::byte* row, int t, int window) {
  TETRION_CHECK(layout.spec == spec, "rows and batch must have the same spec");
  const std::size_t m = spec.lanes;
  const std::size_t at = static_cast<std::size_t>(t) * static_cast<std::size_t>(lanes) +
                         static_cast<std::size_t>(window) * m;
  RowHeader header;
  std::memcpy(&header, row + layout.header, sizeof header);
  policy_version[static_cast<std::size_t>(t * windows + window)] = header.policy_version;
  std::memcpy(record.data() + at * spec.record_bytes, row + layout.record, m * spec.record_bytes);
  std::memcpy(action.data() + at, row + layout.action, m * sizeof(std::int32_t));
  std::memcpy(log_prob.data() + at, row + layout.log_prob, m * sizeof(float));
  if (spec.has_mask) {
    std::memcpy(mask.data() + at, row + layout.mask, m * sizeof(std::uint64_t));
  }
  std::memcpy(reward.data() + at, row + layout.reward, m * sizeof(float));
  std::memcpy(flags.data() + at, row + layout.flags, m);
  std::memcpy(cont.data() + at, row + layout.cont, m * sizeof(float));
}

void RowBatch::MarkCutEpisodes() {
  const std::size_t b = static_cast<std::size_t>(lanes);
  for (std::size_t cell = 0; cell < b * static_cast<std::size_t>(steps); ++cell) {
    if ((flags[cell + b] & kIsFirst) != 0) flags[cell] |= kIsLast;
  }
}

}  // namespace tetrion
