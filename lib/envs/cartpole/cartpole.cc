#include "lib/envs/cartpole/cartpole.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "lib/envs/cartpole/cartpole_batch.h"
#include "lib/envs/lane_env.h"

namespace tetrion {
namespace {

// M carts in double.
class CartPoleGames {
 public:
  using Record = CartPoleRecord;

  explicit CartPoleGames(const EnvConfig& config)
      : state_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, std::uint64_t seed, const Token& token) {
    state_[static_cast<std::size_t>(lane)] = CartPoleReset(seed, token.id);
  }

  static constexpr std::size_t kTogether = kCartPoleBatch;
  template <typename Done>
  void StepTogether(std::span<const int> lanes, const std::int32_t* actions, Done&& done) {
    std::array<bool, kTogether> over;
    CartPoleStepBatch(lanes, actions, state_.data(), over.data());
    for (std::size_t i = 0; i < lanes.size(); ++i) done(lanes[i], LaneOutcome{1.0F, 0, over[i]});
  }

  Record record(int lane) const { return RecordOf(state_[static_cast<std::size_t>(lane)]); }
  std::uint64_t Mask(int) const { return (1U << kCartPoleActions) - 1; }

  using Saved = CartPoleState;
  Saved Save(int lane) const { return state_[static_cast<std::size_t>(lane)]; }
  bool Load(int lane, std::uint64_t /*seed*/, const Token& /*token*/, const Saved& saved,
            bool running) {
    const Record record = RecordOf(saved);
    if (CheckCartPoleRecords(reinterpret_cast<const std::byte*>(&record), 1) != nullptr ||
        (running && CartPoleIsOver(saved))) {
      return false;
    }
    state_[static_cast<std::size_t>(lane)] = saved;
    return true;
  }

 private:
  std::vector<CartPoleState> state_;  // [M]
};

std::unique_ptr<VecEnv> MakeCartPole(EnvSpec spec, const EnvConfig& config) {
  return std::make_unique<LaneEnv<CartPoleGames>>(std::move(spec), config);
}

CartPoleRecord RecordAt(std::span<const std::byte> bytes) {
  CartPoleRecord record;
  TETRION_CHECK(bytes.size() == sizeof(record), "a CartPole record has 16 bytes");
  std::memcpy(&record, bytes.data(), sizeof(record));
  return record;
}

}  // namespace

EnvEntry CartPoleEntry() {
  const RecordKind kind = {"cartpole", sizeof(CartPoleRecord), CheckCartPoleRecords};
  // As gymnasium's space: twice the bounds at which an episode ends; speeds have none.
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr auto kMostTheta = static_cast<float>(24 * 2 * 3.141592653589793 / 360);
  EnvEntry entry;
  entry.name = "cartpole";
  entry.python_name = "CartPole";
  entry.views = {
      {.name = "vector",
       .shown_as = "flat",
       .record = kind,
       .elements = [](int) { return std::int64_t{4}; },
       .expand = ExpandVector,
       .networks = {"mlp"},
       .low = {-4.8F, -kInf, -kMostTheta, -kInf},
       .high = {4.8F, kInf, kMostTheta, kInf}},
      {.name = "compact",
       .record = kind,
       .elements = [](int) { return std::int64_t{sizeof(CartPoleRecord)}; }},
  };
  entry.default_view = "vector";
  entry.default_obs = "flat";
  entry.actions = {{"left", 'a'}, {"right", 'd'}};
  entry.max_steps = 500;
  entry.preset = {{"lanes", "16"},
                  {"vtrace.discount", "0.98"},
                  {"vtrace.lambda", "0.9"},
                  {"vtrace.reuse", "8"},
                  {"vtrace.learning_rate", "0.001"},
                  {"vtrace.entropy_coef", "0.001"},
                  {"vtrace.ppo_clip", "0.2"},
                  {"dreamer.lanes", "4"},
                  {"dreamer.ring_rows", "16"},  // rows in a ring are of older policies
                  {"dreamer.window", "32"},
                  {"dreamer.batch_windows", "8"},
                  {"dreamer.train_ratio", "128"},
                  {"dreamer.learning_rate", "0.001"},
                  {"dreamer.warmup_updates", "200"}};
  entry.picture = {
      .record = kind,
      .fps = 50,
      .scale = 4,
      .gif_scale = 2,
      .size = [](int, int scale) { return CartPoleRgbSize(scale); },
      .draw = [](std::span<const std::byte> record, int, int scale,
                 std::uint8_t* out) { RenderCartPoleRgb(RecordAt(record), scale, out); },
      .text =
          [](std::span<const std::byte> record) { return RenderCartPoleText(RecordAt(record)); },
  };
  entry.make = MakeCartPole;
  return entry;
}

}  // namespace tetrion
