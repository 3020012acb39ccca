#include <cmath>
#include <utility>
#include <vector>

#include "lib/envs/cartpole_rules.h"
#include "lib/envs/games.h"
#include "lib/envs/lane_env.h"

namespace tetrion {
namespace {

// M carts: states in double, records in float.
class CartPoleGames {
 public:
  using Record = CartPoleRecord;

  explicit CartPoleGames(const EnvConfig& config)
      : seed_(config.seed),
        state_(static_cast<std::size_t>(config.lanes)),
        record_(static_cast<std::size_t>(config.lanes)) {}

  void Reset(int lane, const Token& token) { Set(lane, CartPoleReset(seed_, token.id)); }

  LaneOutcome Step(int lane, int action) {
    CartPoleState state = state_[static_cast<std::size_t>(lane)];
    const bool terminated = CartPoleStep(state, action);
    Set(lane, state);
    return {1.0F, 0, terminated};
  }

  const Record& record(int lane) const { return record_[static_cast<std::size_t>(lane)]; }
  std::uint64_t Mask(int) const { return (1U << kCartPoleActions) - 1; }

  using Saved = CartPoleState;
  Saved Save(int lane) const { return state_[static_cast<std::size_t>(lane)]; }
  bool Load(int lane, const Token& /*token*/, const Saved& saved, bool /*running*/) {
    const bool finite = std::isfinite(saved.x) && std::isfinite(saved.x_dot) &&
                        std::isfinite(saved.theta) && std::isfinite(saved.theta_dot);
    if (finite) Set(lane, saved);
    return finite;
  }

 private:
  void Set(int lane, const CartPoleState& state) {
    state_[static_cast<std::size_t>(lane)] = state;
    record_[static_cast<std::size_t>(lane)] = RecordOf(state);
  }

  const std::uint64_t seed_;
  std::vector<CartPoleState> state_;  // [M]
  std::vector<Record> record_;        // [M]
};

}  // namespace

std::unique_ptr<VecEnv> MakeCartPole(EnvSpec spec, const EnvConfig& config) {
  return std::make_unique<LaneEnv<CartPoleGames>>(std::move(spec), config);
}

}  // namespace tetrion
