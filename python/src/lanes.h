#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "python/src/obs_encoder.h"
#include "python/src/step_columns.h"

namespace tetrion {

// The environments of a pool: each with a seed of its own, so that environment i seeded with s
// plays what a single environment seeded with s plays. Its k-th episode since it was seeded is
// token k of that seed.
//
// Thread role: different environments may be used by different threads at once; one environment by
// one thread at a time. Seed allocates, nothing else does.
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
  void Restart(int env) { lane_[static_cast<std::size_t>(env)].begins = true; }
  // Sets the action that the next Play takes. The caller has checked its range.
  void SetAction(int env, std::int32_t action) { action_[static_cast<std::size_t>(env)] = action; }
  // One step of each of `envs`, written into columns(). An environment whose episode has ended
  // begins the next one instead (next-step autoreset).
  void Play(std::span<const int> envs);

  StepColumns& columns() { return columns_; }
  // [record_bytes] of one environment, as of its last Play.
  const std::byte* record(int env) const {
    return record_.data() + static_cast<std::size_t>(env) * spec_.obs.record_bytes;
  }

 private:
  struct Lane {
    std::unique_ptr<VecEnv> env;  // of one lane
    std::uint64_t episode = 0;    // the next token
    bool begins = true;           // the next step is a reset
  };

  RowView RowOf(std::size_t env);
  void PlayOne(std::size_t env);

  const PyEnvConfig config_;
  const EnvConfig env_config_;
  const EnvSpec spec_;
  const ObsEncoder encoder_;
  const std::uint32_t max_steps_;
  std::vector<Lane> lane_;
  // Columns of a row with every environment a lane, [count] each.
  std::vector<std::byte> record_;
  std::vector<std::int32_t> action_, episode_id_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::uint8_t> flags_;
  std::vector<float> cont_;
  StepColumns columns_;
};

}  // namespace tetrion
