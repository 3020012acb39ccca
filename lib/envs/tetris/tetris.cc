#include "lib/envs/tetris/tetris.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/own_lines.h"
#include "lib/envs/lane_env.h"
#include "lib/envs/tetris/colour_record.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/tetris/tetris_together.h"
#include "lib/envs/views/gym_views.h"
#include "lib/envs/views/packed2.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

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
bool IsPlayable(const TetrisRecord& record, const TetrisSetup& setup, bool running) {
  const TetrisRecord sane = Sanitized(record);
  return std::memcmp(&sane, &record, sizeof(record)) == 0 &&
         QueueSize(record) == setup.queue_size && TopRow(record) == kTetrisRows - setup.rows &&
         SpawnsAbove(record) == setup.spawn_above &&
         (setup.spawn_above || !(running && Collides(record, UnpackActive(record.active))));
}

// Whether the colours are of the cells that are locked, or of unknown pieces in all of them.
bool AreColoursOf(const ColourRecord& record, bool known) {
  if (!known) {
    const ColourRecord unknown = UncolouredRecord(record.compact);
    return std::memcmp(&unknown, &record, sizeof(record)) == 0;
  }
  std::uint64_t wrong = 0;
  for (int row = 0; row < kTetrisRows; ++row) {
    for (int column = 0; column < kTetrisColumns; ++column) {
      const int colour = ColourAt(record, row, column);
      const bool locked = (FieldRow(record.compact, row) >> column & 1) != 0;
      wrong += (locked ? colour >= 2 && colour < kUnknownColour : colour == 0) ? 0 : 1;
    }
  }
  for (const std::uint8_t byte : record.reserved) wrong |= byte;
  return wrong == 0;
}

// M games: records and piece sources, each its own array. `RecordType` is TetrisRecord or
// ColourRecord; the rules are the same.
template <typename RecordType>
class TetrisGames {
 public:
  using Record = RecordType;

  explicit TetrisGames(const EnvConfig& config)
      : setup_{config.queue_size, config.rows, config.spawn_above, config.reward},
        iid_pieces_(config.iid_pieces),
        record_(static_cast<std::size_t>(config.lanes)),
        pieces_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, std::uint64_t seed, const Token& token) {
    pieces(lane) = PhiloxPieces::Of(seed, token.id, iid_pieces_);
    TetrisReset(compact(lane), setup_, pieces(lane), colours(lane));
  }

  const Record& record(int lane) const { return record_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return (1U << kTetrisActions) - 1; }

  using Saved = SavedTetris;
  Saved Save(int lane) const {
    const PhiloxPieces& source = pieces_[static_cast<std::size_t>(lane)];
    return {Coloured(record(lane)), source.drawn, source.bag, kColoured ? 1U : 0U, 0};
  }
  bool Load(int lane, std::uint64_t seed, const Token& token, const Saved& saved, bool running) {
    const PhiloxPieces source = {seed, token.id, saved.drawn, saved.bag};
    if ((kColoured && saved.has_colours != 1) || !source.IsValid() ||
        (saved.bag == PhiloxPieces::kIid) != iid_pieces_ ||
        !IsPlayable(saved.record.compact, setup_, running) || saved.has_colours > 1 ||
        !AreColoursOf(saved.record, saved.has_colours == 1) || saved.reserved != 0) {
      return false;
    }
    std::memcpy(&record_[static_cast<std::size_t>(lane)], &saved.record, sizeof(Record));
    pieces(lane) = source;
    return true;
  }

 protected:
  TetrisReward reward() const { return setup_.reward; }
  // The lane's record; those of the next lanes lie behind it.
  Record* records(int lane) { return &record_[static_cast<std::size_t>(lane)]; }
  TetrisRecord& compact(int lane) { return CompactOf(record_[static_cast<std::size_t>(lane)]); }
  auto colours(int lane) { return ColoursOf(record_[static_cast<std::size_t>(lane)]); }
  PhiloxPieces& pieces(int lane) { return pieces_[static_cast<std::size_t>(lane)]; }

 private:
  static constexpr bool kColoured = sizeof(Record) == sizeof(ColourRecord);

  const TetrisSetup setup_;
  const bool iid_pieces_;
  OwnLinesVector<Record> record_;     // [M]; no compact one lies in two cache lines
  std::vector<PhiloxPieces> pieces_;  // [M]
};

// The same games played by key presses.
template <typename RecordType>
class KeyGames : public TetrisGames<RecordType> {
 public:
  using TetrisGames<RecordType>::TetrisGames;

  static constexpr std::size_t kTogether = 128;
  void StepTogether(int first, std::size_t n, const std::int32_t* actions,
                    LaneOutcomes<kTogether>& outcomes) {
    TetrisStepTogether(n, this->records(first), &this->pieces(first), actions, this->reward(),
                       outcomes);
  }
  void Records(int first, std::size_t n, RecordType* out) {
    std::copy_n(this->records(first), n, out);
  }

  struct Kept {
    RecordType record;
    std::uint32_t drawn, bag;  // of PhiloxPieces
  };
  Kept Keep(int lane) {
    return {this->record(lane), this->pieces(lane).drawn, this->pieces(lane).bag};
  }
  void Put(int lane, const Kept& kept) {
    *this->records(lane) = kept.record;
    this->pieces(lane).drawn = kept.drawn;
    this->pieces(lane).bag = kept.bag;
  }
};

// The same games played by placements.
template <typename RecordType>
class PlacementGames : public TetrisGames<RecordType> {
 public:
  explicit PlacementGames(const EnvConfig& config)
      : TetrisGames<RecordType>(config), illegal_is_noop_(config.illegal_is_noop) {}

  LaneOutcome Step(int lane, int action) {
    return ForRow(PlacementStep(this->compact(lane), action, illegal_is_noop_, this->pieces(lane),
                                this->colours(lane)),
                  this->reward());
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

// A record of either kind as the rules can read it; colours are unknown where it is a compact one.
ColourRecord Drawable(std::span<const std::byte> bytes) {
  ColourRecord record = {};
  if (bytes.size() == sizeof(TetrisRecord)) {
    std::memcpy(&record.compact, bytes.data(), sizeof(TetrisRecord));
    return UncolouredRecord(Sanitized(record.compact));
  }
  TETRION_CHECK(bytes.size() == sizeof(record), "a Tetris record has 64 or 168 bytes");
  std::memcpy(&record, bytes.data(), sizeof(record));
  return record;
}

// In the order of their names in the buffer; a dict shows the board first, as the package does.
std::vector<ViewPart> DictParts(int queue_size) {
  using L = DictLayout;
  constexpr float kMostCell = 8;  // 0 free, 1 bedrock, piece id + 2
  return {{"board", L::kBoard, {L::kRows, L::kColumns}, kMostCell},
          {"active_tetromino_mask", L::kActiveMask, {L::kRows, L::kColumns}, 1},
          {"holder", L::kHolder, {4, 4}, kMostCell},
          {"queue", L::kQueue, {4, 4 * queue_size}, kMostCell}};
}

RecordKind Compact() {
  return {"compact", sizeof(TetrisRecord)};
}
RecordKind Colour() {
  return {"colour", sizeof(ColourRecord)};
}

// What both games show.
std::vector<ViewEntry> SharedViews() {
  return {
      {.name = "flat",
       .record = Colour(),
       .elements = FlatLayout::Floats,
       .expand = ExpandFlat,
       .networks = {"mlp"},
       .high = {8}},
      {.name = "dict",
       .record = Colour(),
       .elements = DictLayout::Bytes,
       .expand_bytes = ExpandDict,
       .high = {8},
       .parts = DictParts},
      {.name = "planes",
       .record = Compact(),
       .elements = PlanesLayout::Floats,
       .expand = ExpandPlanes,
       .networks = {"mlp", "conv"},
       .high = {1}},
      {.name = "pixels",
       .record = Compact(),
       .elements = [](int) { return Packed2Layout::kPixels; },
       .expand = ExpandPixels,
       .networks = {"mlp"},
       .high = {1}},
      {.name = "compact",
       .record = Compact(),
       .elements = [](int) { return std::int64_t{sizeof(TetrisRecord)}; }},
      {.name = "packed2",
       .record = Compact(),
       .elements = [](int) { return std::int64_t{Packed2Layout::kBytes}; },
       .expand_bytes =
           [](const std::byte* records, std::int64_t n, int, std::uint8_t* out) {
             ExpandPacked2(records, sizeof(TetrisRecord), n, out);
           }},
  };
}

EnvEntry SharedEntry() {
  EnvEntry entry;
  entry.views = SharedViews();
  entry.default_obs = "dict";
  entry.options = {kQueueSizeOption, kIidPiecesOption, kBoardRowsOption, kRewardOption};
  entry.has_lines = true;
  entry.picture = {
      .record = Colour(),
      .fps = 10,
      .scale = 10,  // as the package draws by default
      .gif_scale = 10,
      .size = TetrisRgbSize,
      .draw = [](std::span<const std::byte> record, int queue_size, int scale,
                 std::uint8_t* out) { RenderRgb(Drawable(record), queue_size, scale, out); },
      .text =
          [](std::span<const std::byte> record) { return RenderAnsi(Drawable(record).compact); },
  };
  return entry;
}

std::uint64_t PlacementMaskOf(const std::byte* bytes) {
  TetrisRecord record;
  std::memcpy(&record, bytes, sizeof(record));
  return PlacementMask(Sanitized(record));
}

}  // namespace

EnvEntry TetrisEntry() {
  EnvEntry entry = SharedEntry();
  entry.name = "tetris";
  entry.python_name = "Tetris";
  entry.views.push_back({.name = "drops",
                         .record = Compact(),
                         .elements = DropsLayout::Floats,
                         .expand = ExpandDrops,
                         .action_floats = DropsLayout::kRowFloats,
                         .networks = {"scorer", "mlp"},
                         .high = {16},  // no column is larger
                         .preset = {{"vtrace.discount", "0.998"},
                                    {"vtrace.entropy_coef", "0.002"},
                                    {"vtrace.learning_rate", "0.002"},
                                    {"vtrace.decay", "harmonic"},
                                    {"vtrace.decay_updates", "16000"},
                                    {"vtrace.weight_decay", "0.02"},
                                    {"vtrace.ppo_clip", "0.2"},
                                    {"vtrace.normalise_advantage", "true"}}});
  entry.default_view = "planes";
  entry.actions = {{"left", 'a'},
                   {"right", 'd'},
                   {"down", 's'},
                   {"clockwise", 'e'},
                   {"counterclockwise", 'q'},
                   {"hard drop", ' '},
                   {"swap", 'w'},
                   {"none", 'x'}};
  entry.max_steps = 10000;
  entry.preset = {{"lanes", "64"},
                  {"vtrace.lambda", "0.95"},
                  {"ring_rows", "16"},
                  {"vtrace.reward_scale", "symlog"}};
  entry.make = MakeGames<KeyGames>;
  return entry;
}

EnvEntry TetrisPlacementEntry() {
  EnvEntry entry = SharedEntry();
  entry.name = "tetris-placement";
  entry.python_name = "TetrisPlacement";
  entry.views.push_back({.name = "afterstates",
                         .record = Compact(),
                         .elements = AfterstatesLayout::Floats,
                         .expand = ExpandAfterstates,
                         .action_floats = AfterstatesLayout::kRowFloats,
                         .networks = {"scorer", "mlp"},
                         .high = {16}});  // no column is larger
  entry.views.push_back({.name = "afterstates-dt",
                         .record = Compact(),
                         .elements = AfterstatesDtLayout::Floats,
                         .expand = ExpandAfterstatesDt,
                         .action_floats = AfterstatesDtLayout::kRowFloats,
                         .networks = {"scorer", "mlp"},
                         .high = {53}});  // five wells of 20 cells: 1050 / 20
  entry.views.push_back({.name = "afterstates-boards",
                         .record = Compact(),
                         .elements = AfterstatesBoardsLayout::Floats,
                         .expand = ExpandAfterstatesBoards,
                         .action_floats = AfterstatesBoardsLayout::kRowFloats,
                         .board_columns = kTetrisColumns,
                         .networks = {"columns"},
                         .high = {(1 << kTetrisRows) - 1},
                         .preset = {{"vtrace.learning_rate", "0.002"}, {"vtrace.reuse", "1"}}});
  entry.default_view = "afterstates";
  for (int action = 0; action < kPlacementActions; ++action) {
    entry.actions.push_back(
        {"column " + std::to_string(action / 4) + ", " + std::to_string(action % 4) + " turns"});
  }
  entry.max_steps = 5000;
  entry.options.push_back(kSpawnAboveOption);
  entry.options.push_back(kIllegalOption);
  // Why: docs/decisions/0020-weights-are-bounded-by-decay.md.
  entry.preset = {{"lanes", "64"},
                  {"ring_rows", "16"},
                  {"vtrace.reward", "lines"},
                  {"vtrace.discount", "0.999"},
                  {"vtrace.lambda", "0.95"},
                  {"vtrace.entropy_coef", "0.001"},
                  {"vtrace.learning_rate", "0.001"},
                  {"vtrace.decay", "harmonic"},
                  {"vtrace.decay_updates", "8000"},
                  {"vtrace.weight_decay", "0.02"},
                  {"vtrace.average_updates", "300"},
                  {"vtrace.ppo_clip", "0.2"},
                  {"vtrace.normalise_advantage", "true"}};
  entry.mask = PlacementMaskOf;
  entry.make = MakeGames<PlacementGames>;
  return entry;
}

}  // namespace tetrion
