#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"

// A lane of random play folded into a number, by the same function on CPU and device: how the two
// builds of the rules are compared.

namespace tetrion {

struct TraceRun {
  std::uint64_t seed = 0;
  int lanes = 0;  // episode e of lane l is token l + e * lanes
  int steps = 0;  // actions a lane takes, over as many episodes as it needs
  int queue_size = 4;
  bool iid_pieces = false;
  bool placement = false;  // placements with illegal = noop, else the eight actions
};

struct LaneTrace {
  std::uint64_t digest = 0;    // of every record, reward and end
  std::uint32_t episodes = 0;  // ended
  std::uint32_t lines = 0;
  TetrisRecord last = {};
};

TETRION_HOST_DEVICE inline std::uint64_t MixedDigest(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9E3779B97F4A7C15ULL;
  return digest ^ digest >> 29;
}

TETRION_HOST_DEVICE inline std::uint64_t RecordDigest(std::uint64_t digest,
                                                      const TetrisRecord& record) {
  for (int r = 0; r < kTetrisRows; r += 4) digest = MixedDigest(digest, LoadRows(record.row + r));
  digest = MixedDigest(digest, record.active | static_cast<std::uint64_t>(record.holder) << 16 |
                                   static_cast<std::uint64_t>(record.flags) << 24 |
                                   static_cast<std::uint64_t>(record.queue) << 32);
  return MixedDigest(digest, record.lines | static_cast<std::uint64_t>(record.pieces) << 32);
}

// Plays lane `lane` of the run: action k of a token is word 0 of its k-th kActions block.
TETRION_HOST_DEVICE inline LaneTrace PlayLane(const TraceRun& run, int lane) {
  LaneTrace trace;
  std::uint64_t token = static_cast<std::uint64_t>(lane);
  std::uint32_t step = 0;
  PhiloxPieces pieces = PhiloxPieces::Of(run.seed, token, run.iid_pieces);
  TetrisReset(trace.last, run.queue_size, pieces);
  for (int i = 0; i < run.steps; ++i) {
    const PhiloxBlock draw = PhiloxDraw(run.seed, token, step++, PhiloxPurpose::kActions);
    const std::uint32_t count = run.placement ? kPlacementActions : kTetrisActions;
    const int action = static_cast<int>(BoundedDraw(draw.word[0], count));
    const TetrisOutcome outcome = run.placement ? PlacementStep(trace.last, action, true, pieces)
                                                : TetrisStep(trace.last, action, pieces);
    trace.lines += static_cast<std::uint32_t>(outcome.lines);
    trace.digest = RecordDigest(trace.digest, trace.last);
    trace.digest =
        MixedDigest(trace.digest, static_cast<std::uint64_t>(outcome.reward) << 2 |
                                      (outcome.illegal ? 2U : 0U) | (outcome.terminated ? 1U : 0U));
    trace.digest = MixedDigest(trace.digest, PlacementMask(trace.last));
    if (!outcome.terminated) continue;
    trace.episodes += 1;
    token += static_cast<std::uint64_t>(run.lanes);
    step = 0;
    pieces = PhiloxPieces::Of(run.seed, token, run.iid_pieces);
    TetrisReset(trace.last, run.queue_size, pieces);
  }
  return trace;
}

}  // namespace tetrion
