#include "lib/envs/cartpole/cartpole.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "lib/core/own_lines.h"
#include "lib/envs/cartpole/cartpole_batch.h"
#include "lib/envs/lane_env.h"

namespace tetrion {
namespace {

// M carts in double.
class CartPoleGames {
 public:
  using Record = CartPoleRecord;

  explicit CartPoleGames(const EnvConfig& config)
      : x_(static_cast<std::size_t>(config.lanes)),
        x_dot_(x_.size()),
        theta_(x_.size()),
        theta_dot_(x_.size()) {}

  void Reset(int lane, std::uint64_t seed, const Token& token) {
    Put(lane, CartPoleReset(seed, token.id));
  }

  static constexpr std::size_t kTogether = kCartPoleBatch;
  void StepTogether(int first, std::size_t n, const std::int32_t* actions,
                    LaneOutcomes<kTogether>& outcomes) {
    kernels_.step(From(first), actions, n, outcomes.terminated);
    std::fill_n(outcomes.reward, n, 1.0F);
    std::fill_n(outcomes.lines, n, 0);
  }
  void Records(int first, std::size_t n, Record* out) { kernels_.records(From(first), n, out); }

  Record record(int lane) const { return RecordOf(Save(lane)); }
  std::uint64_t Mask(int) const { return (1U << kCartPoleActions) - 1; }

  using Saved = CartPoleState;
  Saved Save(int lane) const {
    const auto at = static_cast<std::size_t>(lane);
    return {x_[at], x_dot_[at], theta_[at], theta_dot_[at]};
  }
  using Kept = Saved;
  Kept Keep(int lane) const { return Save(lane); }
  void Put(int lane, const Saved& saved) {
    const auto at = static_cast<std::size_t>(lane);
    x_[at] = saved.x;
    x_dot_[at] = saved.x_dot;
    theta_[at] = saved.theta;
    theta_dot_[at] = saved.theta_dot;
  }
  bool Load(int lane, std::uint64_t /*seed*/, const Token& /*token*/, const Saved& saved,
            bool running) {
    const Record record = RecordOf(saved);
    if (CheckCartPoleRecords(reinterpret_cast<const std::byte*>(&record), 1) != nullptr ||
        (running && CartPoleIsOver(saved))) {
      return false;
    }
    Put(lane, saved);
    return true;
  }

 private:
  // The carts of lanes `first` and after.
  CartPoleColumns From(int first) {
    return {x_.data() + first, x_dot_.data() + first, theta_.data() + first,
            theta_dot_.data() + first};
  }

  const CartPoleKernels& kernels_ = BestCartPoleKernels();
  OwnLinesVector<double> x_, x_dot_, theta_, theta_dot_;  // [M] each, as of CartPoleState
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
