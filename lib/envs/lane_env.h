#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/envs/lane_account.h"
#include "lib/envs/vec_env.h"

namespace tetrion {

// A VecEnv out of one game's rules: this class keeps the account of lanes (token, length, return,
// flags), `Game` keeps the games, structure-of-arrays. Game provides
//   Record                                  a POD, what the record column holds
//   Game(const EnvConfig&)                  allocates for config.lanes
//   void Reset(int lane, std::uint64_t seed, const Token&)
//                                           starts the token's game; randomness is of (seed, id)
//   LaneOutcome Step(int lane, int action)  the action is in range; or instead, where many together
//                                           are faster than one after the other:
//   kTogether                               how many at most
//   template <typename Done>
//   void StepTogether(std::span<const int> lanes, const std::int32_t* actions, Done&& done)
//                                           plays actions[lane] in each of `lanes`, then calls
//                                           done(lane, LaneOutcome) for each
//   Record or const Record& record(int lane)
//   std::uint64_t Mask(int lane)            only asked for if the environment has masks
//   Saved                                   a POD without padding, of a multiple of 8 bytes,
//                                           what Step goes on from
//   Saved Save(int lane)
//   bool Load(int lane, std::uint64_t seed, const Token&, const Saved&, bool running)
//                                           false where Step could not go on from it
// Different lanes share nothing that a game writes.
template <typename Game>
class LaneEnv final : public VecEnv {
 public:
  LaneEnv(EnvSpec spec, const EnvConfig& config)
      : spec_(std::move(spec)),
        game_(config),
        lane_(static_cast<std::size_t>(config.lanes)),
        seed_(lane_.size(), config.seed) {
    TETRION_CHECK(spec_.obs.record_bytes == sizeof(typename Game::Record), "record size");
  }

  const EnvSpec& spec() const override { return spec_; }
  int lanes() const override { return static_cast<int>(lane_.size()); }

  void Seed(int lane, std::uint64_t seed) override {
    At(lane) = {};
    seed_[static_cast<std::size_t>(lane)] = seed;
  }

  void Reset(int lane, const Token& token) override {
    LaneState& state = At(lane);
    TETRION_CHECK(token.max_steps > 0, "a token must allow at least one step");
    state.token = token;
    state.phase = Phase::kFresh;
    state.account = {};
    state.episode_id += 1;
    game_.Reset(lane, seed_[static_cast<std::size_t>(lane)], token);
  }

  void Step(std::span<const int> active, const std::int32_t* actions, const RowView& row) override {
    if constexpr (requires { Game::kTogether; }) {
      for (std::size_t at = 0; at < active.size(); at += Game::kTogether) {
        StepTogether(active.subspan(at, std::min(Game::kTogether, active.size() - at)), actions,
                     row);
      }
    } else {
      for (const int lane : active) {
        LaneState& state = At(lane);
        if (state.phase == Phase::kRunning) {
          CheckAction(actions[lane]);
          Count(lane, state, game_.Step(lane, actions[lane]), row);
        } else {
          Begin(lane, state, row);
        }
        Show(lane, state, row);
      }
    }
  }

  EpisodeResult Episode(int lane) const override {
    const LaneState& state = At(lane);
    return {.token_id = state.token.id,
            .attempt = state.token.attempt,
            .length_steps = state.account.steps,
            .lines = state.account.lines,
            .episode_return = state.account.episode_return};
  }

  // Without a virtual call for each.
  void Episodes(std::span<const int> lanes, const EpisodeColumns& columns) const override {
    for (const int lane : lanes) columns.Set(lane, LaneEnv::Episode(lane));
  }

  const Token& token(int lane) const override { return At(lane).token; }

  std::vector<std::byte> Save(int lane) const override {
    const LaneState& state = At(lane);
    if (state.phase == Phase::kIdle || state.phase == Phase::kFresh) return {};
    const SavedLane saved = {state.token,
                             state.account.steps,
                             state.account.lines,
                             state.account.episode_return,
                             state.phase == Phase::kRunning ? 1U : 0U,
                             game_.Save(lane)};
    std::vector<std::byte> bytes(sizeof(saved));
    std::memcpy(bytes.data(), &saved, sizeof(saved));
    return bytes;
  }

  bool Load(int lane, std::span<const std::byte> bytes, const RowView& row) override {
    SavedLane saved;
    if (bytes.size() != sizeof(saved)) return false;
    std::memcpy(&saved, bytes.data(), sizeof(saved));
    const bool running = saved.running == 1;
    constexpr std::uint32_t kMostLines = std::numeric_limits<std::int32_t>::max();  // of a column
    if (saved.running > 1 || saved.steps > saved.token.max_steps || saved.lines > kMostLines ||
        (running && saved.steps == saved.token.max_steps) ||
        !game_.Load(lane, seed_[static_cast<std::size_t>(lane)], saved.token, saved.game,
                    running)) {
      return false;
    }
    LaneState& state = At(lane);
    state.token = saved.token;
    state.account = {saved.steps, saved.lines, saved.episode_return};
    state.phase = running ? Phase::kRunning : Phase::kEnded;
    Show(lane, state, row);
    row.flags[lane] = running ? std::uint8_t{0} : static_cast<std::uint8_t>(kIsLast);
    return true;
  }

 private:
  enum class Phase : std::uint8_t { kIdle, kFresh, kRunning, kEnded };

  // What Save writes, in this machine's byte order.
  struct SavedLane {
    Token token;
    std::uint32_t steps, lines;
    float episode_return;
    std::uint32_t running;  // 1, or 0 after the episode's end
    typename Game::Saved game;
  };
  static_assert(sizeof(SavedLane) == sizeof(Token) + 16 + sizeof(typename Game::Saved));

  // The account of one lane: 48 bytes, touched once a step.
  struct LaneState {
    Token token;
    EpisodeAccount account;
    std::int32_t episode_id = -1;  // the first episode is 0
    Phase phase = Phase::kIdle;
  };

  // Writes the columns that say where the lane's game is.
  void Show(int lane, const LaneState& state, const RowView& row) {
    const typename Game::Record& record = game_.record(lane);
    std::memcpy(row.record + static_cast<std::size_t>(lane) * sizeof record, &record,
                sizeof record);
    if (row.mask != nullptr) row.mask[lane] = game_.Mask(lane);
    row.episode_id[lane] = state.episode_id;
  }

  // Writes the columns of a lane's reset observation.
  static void Begin(int lane, LaneState& state, const RowView& row) {
    TETRION_CHECK(state.phase == Phase::kFresh,
                  "a lane without a token, or past is_last, was stepped");
    state.phase = Phase::kRunning;
    row.reward[lane] = 0.0F;
    row.flags[lane] = kIsFirst;
    row.cont[lane] = 1.0F;
  }

  // Step of at most Game::kTogether lanes.
  void StepTogether(std::span<const int> active, const std::int32_t* actions, const RowView& row) {
    std::array<int, Game::kTogether> running;
    std::size_t count = 0;
    for (const int lane : active) {
      LaneState& state = At(lane);
      if (state.phase == Phase::kRunning) {
        CheckAction(actions[lane]);
        running[count++] = lane;
      } else {
        Begin(lane, state, row);
        Show(lane, state, row);
      }
    }
    LaneState* const states = lane_.data();  // those of `running` have been looked up
    game_.StepTogether(std::span(running).first(count), actions,
                       [&](int lane, const LaneOutcome& outcome) {
                         Count(lane, states[lane], outcome, row);
                         Show(lane, states[lane], row);
                       });
  }

  void CheckAction(std::int32_t action) const {
    TETRION_CHECK(
        static_cast<std::uint32_t>(action) < static_cast<std::uint32_t>(spec_.action.count),
        "action out of range");
  }

  // Counts an action and writes the columns of the observation it led to.
  static void Count(int lane, LaneState& state, const LaneOutcome& outcome, const RowView& row) {
    const std::uint8_t flags = CountStep(state.account, outcome, state.token.max_steps);
    if ((flags & kIsLast) != 0) state.phase = Phase::kEnded;
    row.reward[lane] = outcome.reward;
    row.flags[lane] = flags;
    row.cont[lane] = outcome.terminated ? 0.0F : 1.0F;
  }

  LaneState& At(int lane) {
    TETRION_CHECK(static_cast<std::size_t>(lane) < lane_.size(), "no such lane");
    return lane_[static_cast<std::size_t>(lane)];
  }
  const LaneState& At(int lane) const { return const_cast<LaneEnv*>(this)->At(lane); }

  const EnvSpec spec_;
  Game game_;
  std::vector<LaneState> lane_;      // [M]
  std::vector<std::uint64_t> seed_;  // [M]
};

}  // namespace tetrion
