#include <cstring>
#include <utility>
#include <vector>

#include "lib/envs/colour_record.h"
#include "lib/envs/games.h"
#include "lib/envs/gym_views.h"
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

// `record` with colours, unknown ones where it has none.
ColourRecord Coloured(const TetrisRecord& record) {
  return UncolouredRecord(record);
}
ColourRecord Coloured(const ColourRecord& record) {
  return record;
}

// A game and what its next pieces depend on, in one form for either kind of record.
struct SavedTetris {
  ColourRecord record;
  std::uint32_t drawn, bag;  // of PhiloxPieces
  std::uint32_t has_colours, reserved;
};
static_assert(sizeof(SavedTetris) == sizeof(ColourRecord) + 16);

// Whether the rules could have left `record` behind, as far as they need it to go on.
bool IsPlayable(const TetrisRecord& record, int queue_size, bool running) {
  const TetrisRecord sane = Sanitized(record);
  return std::memcmp(&sane, &record, sizeof(record)) == 0 && QueueSize(record) == queue_size &&
         !(running && Collides(record, UnpackActive(record.active)));
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

  using Saved = SavedTetris;
  Saved Save(int lane) const {
    const PhiloxPieces& source = pieces_[static_cast<std::size_t>(lane)];
    return {Coloured(record(lane)), source.drawn, source.bag, kColoured ? 1U : 0U, 0};
  }
  bool Load(int lane, const Token& token, const Saved& saved, bool running) {
    const PhiloxPieces source = {seed_, token.id, saved.drawn, saved.bag};
    if ((kColoured && saved.has_colours != 1) || !source.IsValid() ||
        (saved.bag == PhiloxPieces::kIid) != iid_pieces_ ||
        !IsPlayable(saved.record.compact, queue_size_, running)) {
      return false;
    }
    std::memcpy(&record_[static_cast<std::size_t>(lane)], &saved.record, sizeof(Record));
    pieces(lane) = source;
    return true;
  }

 protected:
  static LaneOutcome ForRow(const TetrisOutcome& outcome) {
    return {outcome.illegal ? kIllegalReward : static_cast<float>(outcome.reward),
            static_cast<std::uint32_t>(outcome.lines), outcome.terminated};
  }
  TetrisRecord& compact(int lane) { return CompactOf(record_[static_cast<std::size_t>(lane)]); }
  auto colours(int lane) { return ColoursOf(record_[static_cast<std::size_t>(lane)]); }
  PhiloxPieces& pieces(int lane) { return pieces_[static_cast<std::size_t>(lane)]; }

 private:
  static constexpr bool kColoured = sizeof(Record) == sizeof(ColourRecord);

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
