#include "lib/envs/catch/catch.h"

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/envs/lane_env.h"

namespace tetrion {
namespace {

class CatchGames {
 public:
  using Record = CatchRecord;

  explicit CatchGames(const EnvConfig& config) : state_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, std::uint64_t seed, const Token& token) {
    state(lane) = CatchReset(seed, token.id);
  }
  LaneOutcome Step(int lane, int action) {
    const int reward = CatchStep(state(lane), action);
    return {static_cast<float>(reward), 0, CatchOver(state(lane))};
  }
  const Record& record(int lane) const { return state_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return (1U << kCatchActions) - 1; }

  using Saved = CatchRecord;
  Saved Save(int lane) const { return record(lane); }
  bool Load(int lane, std::uint64_t /*seed*/, const Token& /*token*/, const Saved& saved,
            bool running) {
    constexpr std::uint8_t kZeros[sizeof saved.reserved] = {};
    const bool possible = saved.ball_row < kCatchRows && saved.ball_column < kCatchColumns &&
                          saved.paddle < kCatchColumns &&
                          std::memcmp(saved.reserved, kZeros, sizeof kZeros) == 0 &&
                          !(running && CatchOver(saved));
    if (possible) state(lane) = saved;
    return possible;
  }

 private:
  CatchRecord& state(int lane) { return state_[static_cast<std::size_t>(lane)]; }

  std::vector<CatchRecord> state_;  // [M]
};

CatchRecord RecordAt(const std::byte* bytes) {
  CatchRecord record;
  std::memcpy(&record, bytes, sizeof record);
  return record;
}

CatchRecord OnlyRecord(std::span<const std::byte> bytes) {
  TETRION_CHECK(bytes.size() == sizeof(CatchRecord), "a Catch record has 8 bytes");
  return RecordAt(bytes.data());
}

bool IsBall(const CatchRecord& state, int row, int column) {
  return state.ball_row == row && state.ball_column == column;
}

bool IsPaddle(const CatchRecord& state, int row, int column) {
  return row == kCatchRows - 1 && state.paddle == column;
}

}  // namespace

void ExpandCatch(const std::byte* records, std::int64_t n, int /*queue_size*/, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const CatchRecord state = RecordAt(records + i * std::int64_t{sizeof(CatchRecord)});
    for (int row = 0; row < kCatchRows; ++row) {
      for (int column = 0; column < kCatchColumns; ++column) {
        *out++ = IsBall(state, row, column) || IsPaddle(state, row, column) ? 1.0F : -1.0F;
      }
    }
  }
}

void RenderCatchRgb(const CatchRecord& record, int scale, std::uint8_t* out) {
  constexpr int kBlack = 0, kRed = 6, kWhite = 10;  // of kPictureColours
  for (int y = 0; y < kCatchRows * scale; ++y) {
    for (int x = 0; x < kCatchColumns * scale; ++x) {
      const int row = y / scale, column = x / scale;
      const int colour = IsBall(record, row, column)     ? kRed
                         : IsPaddle(record, row, column) ? kWhite
                                                         : kBlack;
      out = PutPixel(PictureColourOf(colour), out);
    }
  }
}

std::string RenderCatchText(const CatchRecord& record) {
  std::string text;
  for (int row = 0; row < kCatchRows; ++row) {
    for (int column = 0; column < kCatchColumns; ++column) {
      text +=
          ".o=@"[(IsBall(record, row, column) ? 1 : 0) + (IsPaddle(record, row, column) ? 2 : 0)];
    }
    text += '\n';
  }
  return text;
}

EnvEntry CatchEntry() {
  const RecordKind kind = {"catch", sizeof(CatchRecord)};
  EnvEntry entry;
  entry.name = "catch";
  entry.python_name = "Catch";
  entry.views = {
      {.name = "vector",
       .shown_as = "flat",
       .record = kind,
       .elements = [](int) { return std::int64_t{kCatchCells}; },
       .expand = ExpandCatch,
       .networks = {"mlp"},
       .low = {-1},
       .high = {1}},
      {.name = "compact",
       .record = kind,
       .elements = [](int) { return std::int64_t{sizeof(CatchRecord)}; }},
  };
  entry.default_view = "vector";
  entry.default_obs = "flat";
  entry.actions = {{"left", 'a'}, {"stay", 's'}, {"right", 'd'}};
  entry.max_steps = kCatchRows;  // an episode has one less
  entry.preset = {{"lanes", "16"},
                  // With the default, the policy is sure before it has often met the ball.
                  {"vtrace.entropy_coef", "0.1"},
                  {"dreamer.lanes", "8"},
                  {"dreamer.ring_rows", "16"},  // rows in a ring are of older policies
                  {"dreamer.window", "16"},
                  {"dreamer.batch_windows", "16"},
                  {"dreamer.train_ratio", "64"},
                  {"dreamer.horizon", "10"},
                  {"dreamer.learning_rate", "0.0004"},
                  {"dreamer.warmup_updates", "200"},
                  // Two cells of ninety differ from row to row: the reconstruction would lie within
                  // the free nats, and the policy be sure before the model sees the ball.
                  {"dreamer.reconstruction_scale", "5"},
                  {"dreamer.entropy_coef", "0.003"}};
  entry.picture = {
      .record = kind,
      .fps = 5,
      .scale = 16,
      .gif_scale = 8,
      .size = [](int, int scale) { return RgbSize{kCatchRows * scale, kCatchColumns * scale}; },
      .draw = [](std::span<const std::byte> record, int, int scale,
                 std::uint8_t* out) { RenderCatchRgb(OnlyRecord(record), scale, out); },
      .text = [](std::span<const std::byte> record) { return RenderCatchText(OnlyRecord(record)); },
  };
  entry.make = [](EnvSpec spec, const EnvConfig& config) -> std::unique_ptr<VecEnv> {
    return std::make_unique<LaneEnv<CatchGames>>(std::move(spec), config);
  };
  return entry;
}

}  // namespace tetrion
