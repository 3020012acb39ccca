#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/envs/lane_account.h"
#include "lib/envs/lane_accounts.h"
#include "lib/envs/lane_runs.h"
#include "lib/envs/vec_env.h"

namespace tetrion {

// The games of all lanes, structure-of-arrays, for LaneEnv. Different lanes share nothing that they
// write. Made from an EnvConfig, for config.lanes lanes.
//   Record  what the record column holds
//   Saved   what Step goes on from: without padding, of a multiple of 8 bytes
template <typename G>
concept KeepsGames =
    std::constructible_from<G, const EnvConfig&> &&
    std::is_trivially_copyable_v<typename G::Record> &&
    std::is_trivially_copyable_v<typename G::Saved> &&
    requires(G games, int lane, std::uint64_t seed, const Token& token,
             const typename G::Saved& saved, bool running) {
      games.Reset(lane, seed, token);  // starts the token's game; randomness is of (seed, id)
      { games.record(lane) } -> std::convertible_to<typename G::Record>;
      { games.Mask(lane) } -> std::same_as<std::uint64_t>;  // asked for where there are masks
      { games.Save(lane) } -> std::same_as<typename G::Saved>;
      // False where Step could not go on from it.
      { games.Load(lane, seed, token, saved, running) } -> std::same_as<bool>;
    };
// A lane takes its step alone; the action is in range.
template <typename G>
concept StepsAlone = requires(G games, int lane, int action) {
  { games.Step(lane, action) } -> std::same_as<LaneOutcome>;
};
// Up to kTogether neighbours are played faster together than one after the other.
template <typename G>
concept StepsTogether = requires(G games, int lane, std::size_t n, const std::int32_t* actions,
                                 LaneOutcomes<G::kTogether>& outcomes, const typename G::Kept& kept,
                                 typename G::Record* out) {
  games.StepTogether(lane, n, actions, outcomes);  // actions[i], any number, in lane + i
  { games.Keep(lane) } -> std::same_as<typename G::Kept>;
  games.Put(lane, kept);  // the action since Keep is taken back
  games.Records(lane, n, out);
};
template <typename G>
concept LaneGames = KeepsGames<G> && (StepsAlone<G> || StepsTogether<G>);

// A VecEnv out of one game's rules: LaneAccounts keeps the account of lanes (token, length, return,
// flags), `Game` keeps the games.
template <LaneGames Game>
class LaneEnv final : public VecEnv {
 public:
  LaneEnv(EnvSpec spec, const EnvConfig& config)
      : spec_(std::move(spec)),
        game_(config),
        accounts_(static_cast<std::size_t>(config.lanes)),
        seed_(accounts_.lanes(), config.seed) {
    TETRION_CHECK(spec_.obs.record_bytes == sizeof(Record), "record size");
  }

  const EnvSpec& spec() const override { return spec_; }
  int lanes() const override { return static_cast<int>(accounts_.lanes()); }

  void Seed(int lane, std::uint64_t seed) override {
    accounts_.Forget(lane);
    seed_[accounts_.At(lane)] = seed;
  }

  void Reset(int lane, const Token& token) override {
    accounts_.Give(lane, token);
    game_.Reset(lane, seed_[accounts_.At(lane)], token);
  }

  void Step(std::span<const int> active, const std::int32_t* actions, const RowView& row) override {
    if constexpr (StepsTogether<Game>) {
      ForEachRun(active, Game::kTogether, [&](int first, std::size_t n) {
        StepTogether(first, n, actions + accounts_.At(first), row);
      });
    } else {
      for (const int lane : active) {
        if (accounts_.phase(lane) == Phase::kRunning) {
          CheckAction(actions[lane]);
          accounts_.Count(lane, game_.Step(lane, actions[lane]), row);
        } else {
          accounts_.Begin(lane, row);
        }
        Show(lane, row);
      }
    }
  }

  EpisodeResult Episode(int lane) const override {
    const Token& token = accounts_.token(lane);
    const EpisodeAccount account = accounts_.account(lane);
    return {.token_id = token.id,
            .attempt = token.attempt,
            .length_steps = account.steps,
            .lines = account.lines,
            .episode_return = static_cast<float>(account.episode_return)};
  }

  void Episodes(std::span<const int> lanes, const EpisodeColumns& columns) const override {
    accounts_.Show(lanes, columns);
  }

  const Token& token(int lane) const override { return accounts_.token(lane); }

  std::vector<std::byte> Save(int lane) const override {
    const Phase phase = accounts_.phase(lane);
    if (phase == Phase::kIdle || phase == Phase::kFresh) return {};
    const EpisodeAccount account = accounts_.account(lane);
    const SavedLane saved = {accounts_.token(lane),
                             account.steps,
                             account.lines,
                             account.episode_return,
                             phase == Phase::kRunning ? std::uint64_t{1} : 0,
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
    // What columns hold.
    constexpr std::uint32_t kMostLines = std::numeric_limits<std::int32_t>::max();
    constexpr double kMostReturn = std::numeric_limits<float>::max();
    if (saved.running > 1 || saved.steps > saved.token.max_steps || saved.lines > kMostLines ||
        (running && saved.steps == saved.token.max_steps) ||
        !(std::abs(saved.episode_return) <= kMostReturn) ||  // NaN, too
        !game_.Load(lane, seed_[accounts_.At(lane)], saved.token, saved.game, running)) {
      return false;
    }
    accounts_.Put(lane, saved.token, {saved.steps, saved.lines, saved.episode_return},
                  running ? Phase::kRunning : Phase::kEnded);
    Show(lane, row);
    row.episode_id[lane] = accounts_.episode_id(lane);
    row.flags[lane] = running ? std::uint8_t{0} : static_cast<std::uint8_t>(kIsLast);
    return true;
  }

 private:
  using Phase = LaneAccounts::Phase;
  using Record = typename Game::Record;

  // What Save writes, in this machine's byte order.
  struct SavedLane {
    Token token;
    std::uint32_t steps, lines;
    double episode_return;
    std::uint64_t running;  // 1, or 0 after the episode's end
    typename Game::Saved game;
  };
  static_assert(sizeof(SavedLane) == sizeof(Token) + 24 + sizeof(typename Game::Saved),
                "Game::Saved must be a multiple of 8 bytes long: add a reserved field");

  // Writes the columns that say where the lane's game is.
  void Show(int lane, const RowView& row) {
    const Record& record = game_.record(lane);
    std::memcpy(row.record + static_cast<std::size_t>(lane) * sizeof record, &record,
                sizeof record);
    if (row.mask != nullptr) row.mask[lane] = game_.Mask(lane);
  }

  // Step of lanes first .. first + n - 1, at most Game::kTogether; `actions` is [n].
  void StepTogether(int first, std::size_t n, const std::int32_t* actions, const RowView& row) {
    // Lanes whose episode begins take no action: they are played with the others, so that all of
    // them are neighbours, and put back.
    std::array<int, Game::kTogether> listed;
    std::array<typename Game::Kept, Game::kTogether> before;
    const std::span<const int> beginning =
        std::span(listed).first(accounts_.ListBeginning(first, n, listed.data()));
    CheckActions(first, std::span(actions, n));
    for (std::size_t k = 0; k < beginning.size(); ++k) before[k] = game_.Keep(beginning[k]);
    LaneOutcomes<Game::kTogether> outcomes;
    game_.StepTogether(first, n, actions, outcomes);
    for (std::size_t k = 0; k < beginning.size(); ++k) game_.Put(beginning[k], before[k]);
    accounts_.CountRun(first, n, outcomes, beginning, row);
    game_.Records(first, n, reinterpret_cast<Record*>(row.record) + first);
    if (row.mask == nullptr) return;
    for (int lane = first; lane < first + static_cast<int>(n); ++lane) {
      row.mask[lane] = game_.Mask(lane);
    }
  }

  bool InRange(std::int32_t action) const {
    return static_cast<std::uint32_t>(action) < static_cast<std::uint32_t>(spec_.action.count);
  }
  void CheckAction(std::int32_t action) const {
    TETRION_CHECK(InRange(action), "action out of range");
  }
  // CHECKs the actions of those of lanes first, first + 1, ... that take one.
  void CheckActions(int first, std::span<const std::int32_t> actions) const {
    std::uint32_t greatest = 0;  // without a way out of the loop, which becomes vectors
    for (const std::int32_t action : actions) {
      greatest = std::max(greatest, static_cast<std::uint32_t>(action));
    }
    if (InRange(static_cast<std::int32_t>(greatest))) return;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (accounts_.phase(first + static_cast<int>(i)) == Phase::kRunning) CheckAction(actions[i]);
    }
  }

  const EnvSpec spec_;
  Game game_;
  LaneAccounts accounts_;
  std::vector<std::uint64_t> seed_;  // [M]
};

}  // namespace tetrion
