#include "tests/support/snake.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/envs/lane_env.h"

namespace tetrion::testing {
namespace {

class SnakeGames {
 public:
  using Record = SnakeRecord;
  struct Saved {
    SnakeRecord snake;
    std::uint32_t reserved;  // fills the last eight bytes
  };

  explicit SnakeGames(const EnvConfig& config)
      : seed_(static_cast<std::size_t>(config.lanes)),
        snake_(static_cast<std::size_t>(config.lanes)),
        token_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, std::uint64_t seed, const Token& token) {
    seed_[static_cast<std::size_t>(lane)] = seed;
    token_[static_cast<std::size_t>(lane)] = token.id;
    snake(lane) = SnakeReset(seed, token.id);
  }
  LaneOutcome Step(int lane, int action) {
    const auto at = static_cast<std::size_t>(lane);
    const int reward = SnakeStep(snake(lane), action, seed_[at], token_[at]);
    return {static_cast<float>(reward), 0, reward < 0};
  }
  const Record& record(int lane) const { return snake_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return 0; }
  Saved Save(int lane) const { return {record(lane), 0}; }
  bool Load(int lane, std::uint64_t seed, const Token& token, const Saved& saved, bool) {
    if (saved.snake.head >= kSnakeCells) return false;
    seed_[static_cast<std::size_t>(lane)] = seed;
    token_[static_cast<std::size_t>(lane)] = token.id;
    snake(lane) = saved.snake;
    return true;
  }

 private:
  SnakeRecord& snake(int lane) { return snake_[static_cast<std::size_t>(lane)]; }

  std::vector<std::uint64_t> seed_;   // [M]
  std::vector<SnakeRecord> snake_;    // [M]
  std::vector<std::uint64_t> token_;  // [M]
};

SnakeRecord RecordAt(const std::byte* bytes) {
  SnakeRecord record;
  std::memcpy(&record, bytes, sizeof(record));
  return record;
}

enum Kind { kFree, kBody, kHead, kFood };

Kind KindOf(const SnakeRecord& snake, int cell) {
  if (cell == snake.head) return kHead;
  return snake.cell[cell] == 0 ? kFree : snake.cell[cell] == kSnakeFood ? kFood : kBody;
}

// `cells`: f32[3][100], 1 where body, head, food.
void ExpandCells(const std::byte* records, std::int64_t n, int, float* out) {
  for (std::int64_t i = 0; i < n; ++i, out += std::ptrdiff_t{3} * kSnakeCells) {
    const SnakeRecord snake = RecordAt(records + i * std::int64_t{sizeof(SnakeRecord)});
    std::memset(out, 0, sizeof(float) * 3 * kSnakeCells);
    for (int cell = 0; cell < kSnakeCells; ++cell) {
      const Kind kind = KindOf(snake, cell);
      if (kind != kFree) out[(kind - 1) * kSnakeCells + cell] = 1;
    }
  }
}

// `board`: u8[100] of Kind.
void ExpandBoard(const std::byte* records, std::int64_t n, int, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const SnakeRecord snake = RecordAt(records + i * std::int64_t{sizeof(SnakeRecord)});
    for (int cell = 0; cell < kSnakeCells; ++cell) *out++ = KindOf(snake, cell);
  }
}

void Draw(std::span<const std::byte> record, int, int scale, std::uint8_t* out) {
  constexpr int kColour[] = {0, 5, 3, 6};  // black, green body, yellow head, red food
  const SnakeRecord snake = RecordAt(record.data());
  for (int y = 0; y < kSnakeSide * scale; ++y) {
    for (int x = 0; x < kSnakeSide * scale; ++x) {
      const int cell = y / scale * kSnakeSide + x / scale;
      out = PutPixel(PictureColourOf(kColour[KindOf(snake, cell)]), out);
    }
  }
}

std::string Text(std::span<const std::byte> record) {
  const SnakeRecord snake = RecordAt(record.data());
  std::string text;
  for (int cell = 0; cell < kSnakeCells; ++cell) {
    text += ".o@*"[KindOf(snake, cell)];
    if (cell % kSnakeSide == kSnakeSide - 1) text += '\n';
  }
  return text;
}

}  // namespace

EnvEntry SnakeEntry() {
  const RecordKind kind = {"snake", sizeof(SnakeRecord)};
  EnvEntry entry;
  entry.name = "snake";
  entry.python_name = "Snake";
  entry.views = {{.name = "cells",
                  .record = kind,
                  .elements = [](int) { return std::int64_t{3} * kSnakeCells; },
                  .expand = ExpandCells,
                  .networks = {"mlp"},
                  .high = {1}},
                 {.name = "board",
                  .record = kind,
                  .elements = [](int) { return std::int64_t{kSnakeCells}; },
                  .expand_bytes = ExpandBoard,
                  .high = {3}}};
  entry.default_view = "cells";
  entry.default_obs = "board";
  entry.actions = {{"up", 'w'}, {"right", 'd'}, {"down", 's'}, {"left", 'a'}};
  entry.max_steps = 300;
  entry.preset = {{"lanes", "8"}, {"vtrace.discount", "0.9"}};
  entry.picture = {
      .record = kind,
      .scale = 8,
      .gif_scale = 6,
      .size = [](int, int scale) { return RgbSize{kSnakeSide * scale, kSnakeSide * scale}; },
      .draw = Draw,
      .text = Text};
  entry.make = [](EnvSpec spec, const EnvConfig& config) -> std::unique_ptr<VecEnv> {
    return std::make_unique<LaneEnv<SnakeGames>>(std::move(spec), config);
  };
  return entry;
}

}  // namespace tetrion::testing
