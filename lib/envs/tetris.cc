#include <utility>
#include <vector>

#include "lib/envs/games.h"
#include "lib/envs/lane_env.h"
#include "lib/envs/tetris_pieces.h"
#include "lib/envs/tetris_rules.h"

namespace tetrion {
namespace {

// M games: records and piece sources, each its own array.
class TetrisGames {
 public:
  using Record = TetrisRecord;

  explicit TetrisGames(const EnvConfig& config)
      : seed_(config.seed),
        queue_size_(config.queue_size),
        iid_pieces_(config.iid_pieces),
        record_(static_cast<std::size_t>(config.lanes)),
        pieces_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, const Token& token) {
    pieces(lane) = PhiloxPieces::Of(seed_, token.id, iid_pieces_);
    TetrisReset(record_[static_cast<std::size_t>(lane)], queue_size_, pieces(lane));
  }

  LaneOutcome Step(int lane, int action) {
    return ForRow(TetrisStep(mutable_record(lane), action, pieces(lane)));
  }

  const Record& record(int lane) const { return record_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return (1U << kTetrisActions) - 1; }

 protected:
  static LaneOutcome ForRow(const TetrisOutcome& outcome) {
    return {outcome.illegal ? kIllegalReward : static_cast<float>(outcome.reward),
            static_cast<std::uint32_t>(outcome.lines), outcome.terminated};
  }
  Record& mutable_record(int lane) { return record_[static_cast<std::size_t>(lane)]; }
  PhiloxPieces& pieces(int lane) { return pieces_[static_cast<std::size_t>(lane)]; }

 private:
  const std::uint64_t seed_;
  const int queue_size_;
  const bool iid_pieces_;
  std::vector<Record> record_;        // [M]
  std::vector<PhiloxPieces> pieces_;  // [M]
};

// The same games played by placements.
class PlacementGames : public TetrisGames {
 public:
  explicit PlacementGames(const EnvConfig& config)
      : TetrisGames(config), illegal_is_noop_(config.illegal_is_noop) {}

  LaneOutcome Step(int lane, int action) {
    return ForRow(PlacementStep(mutable_record(lane), action, illegal_is_noop_, pieces(lane)));
  }
  std::uint64_t Mask(int lane) const { return PlacementMask(record(lane)); }

 private:
  const bool illegal_is_noop_;
};

}  // namespace

std::unique_ptr<VecEnv> MakeTetris(EnvSpec spec, const EnvConfig& config) {
  return std::make_unique<LaneEnv<TetrisGames>>(std::move(spec), config);
}

std::unique_ptr<VecEnv> MakeTetrisPlacement(EnvSpec spec, const EnvConfig& config) {
  return std::make_unique<LaneEnv<PlacementGames>>(std::move(spec), config);
}

}  // namespace tetrion
