#include <utility>
#include <vector>

#include "lib/envs/colour_record.h"
#include "lib/envs/games.h"
#include "lib/envs/lane_env.h"
#include "lib/envs/tetris_pieces.h"
#include "lib/envs/tetris_rules.h"

namespace tetrion {
namespace {

// The state that the rules play on, and who keeps its colours, of either kind of record.
TetrisRecord& CompactOf(TetrisRecord& record) {
  return record;
}
TetrisRecord& CompactOf(ColourRecord& record) {
  return record.compact;
}
NoColours ColoursOf(TetrisRecord&) {
  return {};
}
LockedColours ColoursOf(ColourRecord& record) {
  return LockedColours(record);
}

// M games: records and piece sources, each its own array. `RecordType` is TetrisRecord or
// ColourRecord; the rules are the same.
template <typename RecordType>
class TetrisGames {
 public:
  using Record = RecordType;

  explicit TetrisGames(const EnvConfig& config)
      : seed_(config.seed),
        queue_size_(config.queue_size),
        iid_pieces_(config.iid_pieces),
        record_(static_cast<std::size_t>(config.lanes)),
        pieces_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, const Token& token) {
    pieces(lane) = PhiloxPieces::Of(seed_, token.id, iid_pieces_);
    TetrisReset(compact(lane), queue_size_, pieces(lane), colours(lane));
  }

  LaneOutcome Step(int lane, int action) {
    return ForRow(TetrisStep(compact(lane), action, pieces(lane), colours(lane)));
  }

  const Record& record(int lane) const { return record_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return (1U << kTetrisActions) - 1; }

 protected:
  static LaneOutcome ForRow(const TetrisOutcome& outcome) {
    return {outcome.illegal ? kIllegalReward : static_cast<float>(outcome.reward),
            static_cast<std::uint32_t>(outcome.lines), outcome.terminated};
  }
  TetrisRecord& compact(int lane) { return CompactOf(record_[static_cast<std::size_t>(lane)]); }
  auto colours(int lane) { return ColoursOf(record_[static_cast<std::size_t>(lane)]); }
  PhiloxPieces& pieces(int lane) { return pieces_[static_cast<std::size_t>(lane)]; }

 private:
  const std::uint64_t seed_;
  const int queue_size_;
  const bool iid_pieces_;
  std::vector<Record> record_;        // [M]
  std::vector<PhiloxPieces> pieces_;  // [M]
};

// The same games played by placements.
template <typename RecordType>
class PlacementGames : public TetrisGames<RecordType> {
 public:
  explicit PlacementGames(const EnvConfig& config)
      : TetrisGames<RecordType>(config), illegal_is_noop_(config.illegal_is_noop) {}

  LaneOutcome Step(int lane, int action) {
    return this->ForRow(PlacementStep(this->compact(lane), action, illegal_is_noop_,
                                      this->pieces(lane), this->colours(lane)));
  }
  std::uint64_t Mask(int lane) { return PlacementMask(this->compact(lane)); }

 private:
  const bool illegal_is_noop_;
};

// `Games` with the kind of record that the view is made from.
template <template <typename> typename Games>
std::unique_ptr<VecEnv> MakeGames(EnvSpec spec, const EnvConfig& config) {
  if (spec.obs.record_bytes == sizeof(ColourRecord)) {
    return std::make_unique<LaneEnv<Games<ColourRecord>>>(std::move(spec), config);
  }
  return std::make_unique<LaneEnv<Games<TetrisRecord>>>(std::move(spec), config);
}

}  // namespace

std::unique_ptr<VecEnv> MakeTetris(EnvSpec spec, const EnvConfig& config) {
  return MakeGames<TetrisGames>(std::move(spec), config);
}

std::unique_ptr<VecEnv> MakeTetrisPlacement(EnvSpec spec, const EnvConfig& config) {
  return MakeGames<PlacementGames>(std::move(spec), config);
}

}  // namespace tetrion
