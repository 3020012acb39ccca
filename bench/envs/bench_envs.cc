// Environments on one core: steps a second of lanes with a random policy and their rows, of the
// bare rules, and of a plain cell-array Tetris, in turns within one run; the same with colours and
// with flat observations; time of one afterstates, drops, flat, dict and packed2 view, and of one
// picture; packed2 beside plain copies of as many bytes. Prints one JSON line a figure. --quick:
// shorter windows.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/envs/windows.h"
#include "lib/core/check.h"
#include "lib/core/philox.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/gym_views.h"
#include "lib/envs/views/packed2.h"
#include "lib/envs/views/views.h"
#include "tests/support/envs_driver.h"
#include "tests/support/reference_tetris.h"

namespace tetrion::bench {
namespace {

constexpr int kLanes = 1024;  // M
constexpr std::uint32_t kMaxSteps = 10000;

// Random actions of three bits or one for a row of lanes, drawn beforehand: what is measured plays.
class CheapPolicy {
 public:
  explicit CheapPolicy(int bits) : drawn_(kRows * kLanes) {
    std::size_t i = 0;
    for (std::uint32_t number = 0; i < drawn_.size(); ++number) {
      const PhiloxBlock block = PhiloxDraw(1, 2, number, PhiloxPurpose::kActions);
      for (const std::uint32_t word : block.word) {
        for (int at = 0; at + bits <= 32 && i < drawn_.size(); at += bits) {
          drawn_[i++] = static_cast<std::int32_t>(word >> at & ((1U << bits) - 1));
        }
      }
    }
  }
  void Fill(std::vector<std::int32_t>& actions) {
    std::copy_n(drawn_.data() + next_ * kLanes, kLanes, actions.data());
    next_ = (next_ + 1) % kRows;
  }

 private:
  // 244 KiB of actions, which stay in the second-level cache; each lane repeats its 61.
  static constexpr std::size_t kRows = 61;
  std::vector<std::int32_t> drawn_;  // [kRows][kLanes]
  std::size_t next_ = 0;
};

// M lanes behind the VecEnv interface, rows written.
class Lanes {
 public:
  Lanes(const std::string& name, int action_bits, const std::string& view = "")
      : rows_({.name = name, .view = view, .lanes = kLanes, .seed = 1}), policy_(action_bits) {
    for (int lane = 0; lane < kLanes; ++lane) rows_.env->Reset(lane, {next_token_++, 0, kMaxSteps});
  }
  int Step() {
    policy_.Fill(rows_.actions);
    rows_.StepAll();
    constexpr int kEight = 8;
    static_assert(kLanes % kEight == 0);
    constexpr std::uint64_t kAnyLast = 0x0101010101010101ULL * kIsLast;
    // Few games end: eight flags are looked at together.
    for (int lane = 0; lane < kLanes; lane += kEight) {
      std::uint64_t last = 0;
      std::memcpy(&last, rows_.row.flags + lane, kEight);
      for (last &= kAnyLast; last != 0; last &= last - 1) {
        rows_.env->Reset(lane + std::countr_zero(last) / 8, {next_token_++, 0, kMaxSteps});
      }
    }
    return kLanes;
  }
  // The records of the last row, M back to back.
  const std::byte* records() const { return rows_.row.record; }
  // The last row's records hold as many cells as pieces and lines say.
  void CheckTetrisRow() const {
    for (int lane = 0; lane < kLanes; ++lane) {
      const TetrisRecord& record = rows_.RecordAt<TetrisRecord>(lane);
      int cells = 0;
      for (int r = 0; r < kTetrisRows; ++r) cells += std::popcount(FieldRow(record, r));
      TETRION_CHECK(cells == static_cast<int>(4 * record.pieces - 10 * record.lines), "cells lost");
    }
  }

 private:
  testing::RowedEnv rows_;
  CheapPolicy policy_;
  std::uint64_t next_token_ = 0;
};

// The rules alone: no rows, no account.
class BareRules {
 public:
  BareRules() : actions_(kLanes), record_(kLanes), pieces_(kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) Reset(lane);
  }
  int Step() {
    policy_.Fill(actions_);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (TetrisStep(record_[lane], actions_[lane], pieces_[lane]).terminated) Reset(lane);
    }
    return kLanes;
  }

 private:
  void Reset(std::size_t lane) {
    pieces_[lane] = PhiloxPieces::Of(1, next_token_++, false);
    TetrisReset(record_[lane], {4}, pieces_[lane]);
  }

  CheapPolicy policy_{3};
  std::vector<std::int32_t> actions_;
  std::vector<TetrisRecord> record_;
  std::vector<PhiloxPieces> pieces_;
  std::uint64_t next_token_ = 0;
};

// The plain reference, one game after the other.
class PlainGames {
 public:
  PlainGames() : actions_(kLanes) { Reset(); }
  int Step() {
    policy_.Fill(actions_);
    for (const int action : actions_) {
      if (game_->Step(action).terminated) Reset();
    }
    return kLanes;
  }

 private:
  void Reset() {
    pieces_ = PhiloxPieces::Of(1, next_token_++, false);
    game_.emplace(4, [this] { return pieces_.Next(); });
  }

  CheapPolicy policy_{3};
  std::vector<std::int32_t> actions_;
  PhiloxPieces pieces_;
  std::optional<testing::ReferenceTetris> game_;
  std::uint64_t next_token_ = 0;
};

// Fields of half-played placement games, as training meets them.
std::vector<TetrisRecord> PlacementStates() {
  std::vector<TetrisRecord> states;
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(4)));
  testing::Draws draws(5);
  for (std::uint64_t token = 0; states.size() < 1024; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(1, token, false);
    TetrisRecord record;
    TetrisReset(record, {4}, pieces);
    for (bool over = false; !over && states.size() < 1024;) {
      states.push_back(record);
      ExpandAfterstates(reinterpret_cast<const std::byte*>(&record), 1, 4, view.data());
      int best = std::countr_zero(PlacementMask(record));
      float best_score = 1e9F;
      for (int action = 0; action < kPlacementActions; ++action) {
        const float* row = &view[static_cast<std::size_t>(16 * action)];
        const float score = 8 * row[11] + row[10] + row[12] + 100 * row[15];
        if ((PlacementMask(record) >> action & 1) == 0 || score >= best_score) continue;
        best = action;
        best_score = score;
      }
      if (draws.Below(8) == 0) best = draws.Below(kPlacementActions);
      over = PlacementStep(record, best, false, pieces).terminated;
    }
  }
  return states;
}

// The same fields with colours.
std::vector<ColourRecord> ColouredStates() {
  std::vector<ColourRecord> states;
  testing::Draws draws(6);
  for (std::uint64_t token = 0; states.size() < 1024; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(1, token, false);
    ColourRecord record;
    TetrisReset(record.compact, {4}, pieces, LockedColours(record));
    for (bool over = false; !over && states.size() < 1024;) {
      states.push_back(record);
      over = TetrisStep(record.compact, draws.Below(kTetrisActions), pieces, LockedColours(record))
                 .terminated;
    }
  }
  return states;
}

void Print(const std::string& what, const std::string& unit, const Spread& ours,
           const std::string& rival, const std::string& target) {
  std::printf("{\"what\": \"%s\", \"unit\": \"%s\", \"ours\": {%s}, %s, \"target\": %s}\n",
              what.c_str(), unit.c_str(), ours.Json().c_str(), rival.c_str(), target.c_str());
  (void)std::fflush(stdout);
}

constexpr const char* kNoRival = "\"rival\": null, \"ratio\": null";

std::string Rival(const std::string& name, const Rates& theirs, const Rates& ratio) {
  return "\"rival\": {\"name\": \"" + name + "\", " + Spread(theirs).Json() + "}, \"ratio\": {" +
         Spread(ratio).Json() + "}";
}

// Lanes, bare rules and plain games take turns.
void TetrisFigures(const Windows& windows) {
  Lanes lanes("tetris", 3);
  BareRules bare;
  PlainGames plain;
  Rates lane_rate, bare_rate, plain_rate, ratio;
  for (int i = -1; i < windows.count; ++i) {  // the first turn warms up
    const double a = Window(windows, [&lanes] { return lanes.Step(); });
    const double b = Window(windows, [&plain] { return plain.Step(); });
    const double c = Window(windows, [&bare] { return bare.Step(); });
    if (i < 0) continue;
    lane_rate.push_back(a);
    plain_rate.push_back(b);
    bare_rate.push_back(c);
    ratio.push_back(a / b);
  }
  lanes.CheckTetrisRow();
  Print("tetris lanes, compact rows, M=1024", "steps/s", Spread(lane_rate),
        Rival("plain cell arrays", plain_rate, ratio), "\">= 10x\"");
  Print("tetris rules, one lane after the other, no output, M=1024", "steps/s", Spread(bare_rate),
        kNoRival, "null");
}

void CartPoleFigure(const Windows& windows) {
  Lanes lanes("cartpole", 1);
  Rates rate;
  for (int i = -1; i < windows.count; ++i) {
    const double steps = Window(windows, [&lanes] { return lanes.Step(); });
    if (i >= 0) rate.push_back(steps);
  }
  Print("cartpole lanes, double, M=1024", "steps/s", Spread(rate), kNoRival, "null");
}

// `floats` a state: of the view's layout.
void ActionsFigure(const Windows& windows, const std::string& name, ExpandFn expand,
                   std::int64_t floats, const std::string& target) {
  const std::vector<TetrisRecord> states = PlacementStates();
  constexpr int kBatch = 64;
  std::vector<float> view(static_cast<std::size_t>(kBatch * floats));
  std::size_t at = 0;
  float sum = 0;
  Rates micros;
  for (int i = -1; i < windows.count; ++i) {
    const double rate = Window(windows, [&] {
      expand(reinterpret_cast<const std::byte*>(&states[at]), kBatch, 4, view.data());
      at = (at + kBatch) % states.size();
      sum += view[at];
      return kBatch;
    });
    if (i >= 0) micros.push_back(1e6 / rate);
  }
  TETRION_CHECK(sum >= 0, "heights are not negative");
  Print(name, "us/state", Spread(micros), kNoRival, target);
}

// Median nanoseconds a record of `expand`, which is given the records of one batch.
Spread NanosEach(const Windows& windows, int batch,
                 const std::function<void(const ColourRecord*)>& expand) {
  const std::vector<ColourRecord> states = ColouredStates();
  std::size_t at = 0;
  Rates nanos;
  for (int i = -1; i < windows.count; ++i) {
    const double rate = Window(windows, [&] {
      expand(&states[at]);
      at = (at + static_cast<std::size_t>(batch)) % states.size();
      return batch;
    });
    if (i >= 0) nanos.push_back(1e9 / rate);
  }
  return Spread(nanos);
}

// Observations written one after the other into 64 MiB, as a collector does, and into the cache.
void GymViewFigures(const Windows& windows) {
  constexpr int kBatch = 64;
  constexpr std::size_t kFarBytes = std::size_t{64} << 20;
  const auto floats = static_cast<std::size_t>(FlatLayout::Floats(4));
  const auto bytes_of = [](const ColourRecord* records) {
    return reinterpret_cast<const std::byte*>(records);
  };
  std::vector<float> far(kFarBytes / sizeof(float));
  std::size_t next = 0;
  const Spread flat_far = NanosEach(windows, kBatch, [&](const ColourRecord* records) {
    if ((next + kBatch) * floats > far.size()) next = 0;
    ExpandFlat(bytes_of(records), kBatch, 4, &far[next * floats]);
    next += kBatch;
  });
  Print("flat view into 64 MiB", "ns/state", flat_far, kNoRival, "null");
  const Spread flat_near = NanosEach(windows, kBatch, [&](const ColourRecord* records) {
    ExpandFlat(bytes_of(records), kBatch, 4, far.data());
  });
  Print("flat view, in cache", "ns/state", flat_near, kNoRival, "null");
  std::vector<std::uint8_t> cells(kBatch * floats);
  const Spread dict = NanosEach(windows, kBatch, [&](const ColourRecord* records) {
    ExpandDict(bytes_of(records), kBatch, 4, cells.data());
  });
  Print("dict view, in cache", "ns/state", dict, kNoRival, "null");
  std::vector<std::uint8_t> picture(static_cast<std::size_t>(TetrisRgbSize(4, 10).Bytes()));
  const Spread rgb = NanosEach(
      windows, 1, [&](const ColourRecord* records) { RenderRgb(*records, 4, 10, picture.data()); });
  Print("rgb picture, scale 10", "ns/state", rgb, kNoRival, "null");
}

// Frames drawn into the cache, and as many bytes of a frame that is drawn already, in turns.
void Packed2Figures(const Windows& windows) {
  constexpr int kBatch = 64;
  constexpr auto kFrame = static_cast<std::size_t>(Packed2Layout::kBytes);
  const std::vector<ColourRecord> states = ColouredStates();
  std::vector<std::uint8_t> frames(kBatch * kFrame), plain(kBatch * kFrame), one(kFrame);
  const auto draw = [](const ColourRecord* from, int count, std::uint8_t* to) {
    ExpandPacked2(reinterpret_cast<const std::byte*>(from), sizeof(ColourRecord), count, to);
  };
  draw(&states.back(), 1, one.data());
  std::size_t at = 0;
  Rates nanos, drawn, written, ratio;
  for (int i = -1; i < windows.count; ++i) {
    const double a = Window(windows, [&] {
      draw(&states[at], kBatch, frames.data());
      at = (at + kBatch) % states.size();
      return kBatch;
    });
    const double b = Window(windows, [&] {
      for (std::size_t frame = 0; frame < kBatch; ++frame) {
        std::memcpy(&plain[frame * kFrame], one.data(), kFrame);
      }
      return kBatch;
    });
    if (i < 0) continue;
    nanos.push_back(1e9 / a);
    drawn.push_back(a);
    written.push_back(b);
    ratio.push_back(a / b);
  }
  const std::size_t last = (kBatch - 1) * kFrame;
  draw(&states[(at + states.size() - 1) % states.size()], 1, plain.data());
  TETRION_CHECK(std::memcmp(&plain[last], one.data(), kFrame) == 0 &&
                    std::memcmp(&frames[last], plain.data(), kFrame) == 0,
                "the last frame of either is whole");
  Print("packed2 view, in cache", "ns/state", Spread(nanos), kNoRival, "null");
  Print("packed2 view beside writing its bytes", "states/s", Spread(drawn),
        Rival("plain copies of a frame", written, ratio), "\">= 0.5x\"");
}

// What a collector's worker does a step: rules, row, flat observation of every lane.
void FlatLanesFigure(const Windows& windows) {
  Lanes lanes("tetris", 3, "flat");
  constexpr std::size_t kRowsKept = 16;
  const auto row_floats = static_cast<std::size_t>(kLanes * FlatLayout::Floats(4));
  std::vector<float> observations(kRowsKept * row_floats);
  std::size_t row = 0;
  Rates rows_only, with_flat;
  for (int i = -1; i < windows.count; ++i) {
    const double a = Window(windows, [&lanes] { return lanes.Step(); });
    const double b = Window(windows, [&] {
      const int steps = lanes.Step();
      ExpandFlat(lanes.records(), kLanes, 4, &observations[row * row_floats]);
      row = (row + 1) % kRowsKept;
      return steps;
    });
    if (i < 0) continue;
    rows_only.push_back(a);
    with_flat.push_back(b);
  }
  Print("tetris lanes, colour rows, M=1024", "steps/s", Spread(rows_only), kNoRival, "null");
  Print("tetris lanes, flat observations", "steps/s", Spread(with_flat), kNoRival, "null");
}

}  // namespace
}  // namespace tetrion::bench

int main(int argc, char** argv) {
  tetrion::bench::Windows windows;
  if (argc > 1 && std::strcmp(argv[1], "--quick") == 0) windows = {3, tetrion::kNanosPerSecond / 5};
  tetrion::bench::TetrisFigures(windows);
  tetrion::bench::CartPoleFigure(windows);
  tetrion::bench::ActionsFigure(windows, "afterstates view, 40 placements",
                                tetrion::ExpandAfterstates, tetrion::AfterstatesLayout::Floats(4),
                                "\"<= 2\"");
  tetrion::bench::ActionsFigure(windows, "afterstates-dt view, 40 placements",
                                tetrion::ExpandAfterstatesDt,
                                tetrion::AfterstatesDtLayout::Floats(4), "null");
  tetrion::bench::ActionsFigure(windows, "afterstates-boards view, 40 placements",
                                tetrion::ExpandAfterstatesBoards,
                                tetrion::AfterstatesBoardsLayout::Floats(4), "null");
  tetrion::bench::ActionsFigure(windows, "drops view, 8 moves", tetrion::ExpandDrops,
                                tetrion::DropsLayout::Floats(4), "null");
  tetrion::bench::GymViewFigures(windows);
  tetrion::bench::Packed2Figures(windows);
  tetrion::bench::FlatLanesFigure(windows);
  return 0;
}
