#include "lib/run/replay_need.h"

namespace tetrion {

ReplayNeed ReplayNeedOf(const VtraceSettings&, const RunConfig& c) {
  const std::int64_t least = FifoReplayRows(c.window, c.batch_windows, c.commit_stride);
  return {.least = least,
          .usual = least,
          .made_of =
              "2 * batch_windows * window and the larger of 2 * window and commit_stride "
              "beside it"};
}

ReplayNeed ReplayNeedOf(const DreamerSettings&, const RunConfig& c) {
  constexpr std::int64_t kUsualLaneRows = std::int64_t{1} << 18;  // of all shards
  const std::int64_t stride = c.commit_stride;
  const std::int64_t least = UniformReplayRows(c.window, c.batch_windows, c.lanes, c.commit_stride);
  const std::int64_t share = kUsualLaneRows / (std::int64_t{c.lanes} * c.max_workers);
  return {.least = least,
          .usual = std::max(least, (share + stride - 1) / stride * stride),
          .made_of = "batch_windows * window / lanes and window and commit_stride beside it"};
}

}  // namespace tetrion
