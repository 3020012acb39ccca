#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/vector/obs_encoder.h"
#include "lib/vector/step_columns.h"

namespace tetrion {

// The environments of a pool: each with a seed of its own, so that environment i seeded with s
// plays what a single environment seeded with s plays. Its k-th episode since it was seeded is
// token k of that seed.
//
// Thread role: different environments may be used by different threads at once; one environment by
// one thread at a time. Save and Opened allocate, nothing else does.
class Lanes {
 public:
  // Throws Error(kUsage) for an unknown environment or observation.
  Lanes(const PyEnvConfig& config, int count);

  const EnvSpec& spec() const { return spec_; }
  const ObsEncoder& encoder() const { return encoder_; }
  int count() const { return static_cast<int>(lane_.size()); }

  // The environment starts over as seeded with `seed`; its next Play begins episode 0.
  void Seed(int env, std::uint64_t seed);
  // The next Play begins the next episode, whatever the action.
  void Restart(int env) { begins_[static_cast<std::size_t>(env)] = 1; }
  // Sets the action that the next Play takes. The caller has checked its range.
  void SetAction(int env, std::int32_t action) { action_[static_cast<std::size_t>(env)] = action; }
  // One step of each of `envs`, written into columns(). An environment whose episode has ended
  // begins the next one instead (next-step autoreset).
  void Play(std::span<const int> envs);

  // Everything that the next Plays of an environment depend on, its row of columns() included, as
  // bytes; empty before its first Play.
  std::vector<std::byte> Save(int env) const;
  // What Save wrote, ready for Put; nothing where `saved` is no state of this configuration. Any
  // bytes may be tried.
  struct Saved;
  std::optional<Saved> Opened(std::span<const std::byte> saved) const;
  // The environment goes on as the saved one, and its row of columns() shows it.
  void Put(int env, const Saved& saved);

  StepColumns& columns() { return columns_; }
  // [record_bytes] of one environment, as of its last Play.
  const std::byte* record(int env) const {
    return record_.data() + static_cast<std::size_t>(env) * spec_.obs.record_bytes;
  }

 private:
  struct Lane {
    std::uint64_t seed = 0;
    std::uint64_t episode = 0;  // the next token
    bool is_seeded = false;
  };

  // The head of a saved environment; what VecEnv::Save wrote follows.
  struct SavedHead {
    std::uint32_t version;
    std::int32_t lines_cleared;
    std::uint64_t seed;
    std::uint64_t episode;
    float reward;
    std::uint8_t begins, terminated, truncated, reserved;  // 0 or 1 each
  };
  static_assert(sizeof(SavedHead) == 32);
  static constexpr std::uint32_t kSavedVersion = 2;  // of the bytes of Save

  // The columns of a row that a VecEnv writes.
  RowView Row();
  // The next episodes of those among environments first .. first + n - 1 that begin one.
  void BeginEpisodes(int first, std::size_t n);
  // The next episode.
  void BeginEpisode(int env);
  // Writes the columns that tell of the episodes so far.
  void Show(std::span<const int> envs);

  const PyEnvConfig config_;
  const EnvConfig env_config_;
  const EnvSpec spec_;
  const ObsEncoder encoder_;
  const std::uint32_t max_steps_;
  const std::unique_ptr<VecEnv> env_;  // environment i is its lane i
  std::vector<Lane> lane_;
  std::vector<std::uint8_t> begins_;  // [count] 1 where the next step is a reset, else 0
  // Columns of a row with every environment a lane, [count] each.
  std::vector<std::byte> record_;
  std::vector<std::int32_t> action_, episode_id_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::uint8_t> flags_;
  std::vector<float> cont_;
  StepColumns columns_;
};

struct Lanes::Saved {
  SavedHead head;
  std::span<const std::byte> game;  // of the caller's bytes; a VecEnv has taken it
};

}  // namespace tetrion
