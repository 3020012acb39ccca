#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/envs/tetris/tetris_reward.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/frame/token.h"

namespace tetrion {

// M environment lanes stepped together, written straight into a row (lib/frame/row_layout.h).
//
// Thread role: a lane belongs to one thread at a time, and threads may play different lanes of one
// VecEnv at once; nothing here locks, blocks or allocates after construction.
//
// Autoreset is next-step: the row in which an episode ends carries its terminal observation with
// is_last; the lane must then be given a token with Reset before the next Step, whose row is the
// reset observation with is_first.
class VecEnv {
 public:
  virtual ~VecEnv() = default;

  virtual const EnvSpec& spec() const = 0;
  virtual int lanes() const = 0;

  // Lane `lane` is as new and plays the tokens of `seed`, instead of EnvConfig's, from now on.
  virtual void Seed(int lane, std::uint64_t seed) = 0;
  // Lane `lane` plays `token` from the next Step on. May cut a running episode (its rows simply go
  // on with is_first).
  virtual void Reset(int lane, const Token& token) = 0;

  // Writes record, mask, reward, flags, cont and episode_id of every lane in `active` into `row`.
  // A freshly reset lane writes its first observation and ignores actions[lane]; any other lane
  // takes actions[lane]. CHECKs that actions are in range and that no lane steps past is_last.
  // `actions` is [M], indexed by lane. `active` holds lane numbers, each once.
  virtual void Step(std::span<const int> active, const std::int32_t* actions,
                    const RowView& row) = 0;

  // Return, length and lines of the episode lane `lane` is in, or has just ended. `policy_version`
  // and `lane` are left to the caller.
  virtual EpisodeResult Episode(int lane) const = 0;
  // The same of each of `lanes`, each into its place of columns [M].
  struct EpisodeColumns {
    float* episode_return;
    std::int32_t* length;  // steps
    std::int32_t* lines;

    void Set(int lane, const EpisodeResult& episode) const {
      episode_return[lane] = episode.episode_return;
      length[lane] = static_cast<std::int32_t>(episode.length_steps);
      lines[lane] = static_cast<std::int32_t>(episode.lines);
    }
  };
  virtual void Episodes(std::span<const int> lanes, const EpisodeColumns& columns) const {
    for (const int lane : lanes) columns.Set(lane, Episode(lane));
  }
  // The token the lane plays or has just finished.
  virtual const Token& token(int lane) const = 0;

  // Everything but its seed and the configuration that lane `lane`'s next rows depend on, as bytes
  // that any VecEnv of the same configuration can Load into a lane of the same seed. Allocates.
  // Empty where the environment cannot be saved, or before the lane's first Step.
  virtual std::vector<std::byte> Save(int /*lane*/) const { return {}; }
  // Lane `lane` goes on as the saved one: its record, mask and episode id are written into `row`,
  // and as flags kIsLast where its episode is over. False, and nothing has changed, where `saved`
  // is no state that play could have led to here: bytes may come from a file.
  virtual bool Load(int /*lane*/, std::span<const std::byte> /*saved*/, const RowView& /*row*/) {
    return false;
  }
};

struct EnvConfig {
  std::string name;          // see envs/registry.h
  std::string view;          // of those that networks read; "" takes the default
  int lanes = 1;             // M
  std::uint64_t seed = 0;    // run seed, of every lane that is given no other
  int queue_size = 4;        // Tetris: pieces in the preview
  bool iid_pieces = false;   // Tetris: independent pieces instead of 7-bags
  int rows = 20;             // Tetris: rows of the field
  bool spawn_above = false;  // tetris-placement: pieces appear above the field
  TetrisReward reward = TetrisReward::kSquares;
  bool illegal_is_noop = false;  // tetris-placement: an illegal choice is a NOOP instead of the end
};

// Made from the environment's entry (lib/envs/registry.h).
// Both throw Error(kUsage) naming the known environments or views when the name is unknown.
EnvSpec MakeEnvSpec(const EnvConfig& config);
std::unique_ptr<VecEnv> MakeVecEnv(const EnvConfig& config);

}  // namespace tetrion
