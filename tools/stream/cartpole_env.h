#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/envs/vec_env.h"
#include "lib/region_v2/compat_host.h"

namespace tetrion {

// CartPole of lib/envs as the host's environment: one lane; episode n is token n under `seed`.
// One thread, allocates nothing after construction.
class CartPoleCompatEnv final : public CompatEnv {
 public:
  CartPoleCompatEnv(std::uint64_t seed, std::uint32_t max_steps);

  CompatMetadata metadata() const override;
  std::array<float, 4> Reset() override;
  CompatStep Step(std::uint16_t action) override;

  // Of the episodes that ended, truncated ones too.
  double return_sum() const { return return_sum_; }
  // Steps per second within the episodes that ended; the time between episodes is not theirs.
  double steps_per_s() const;
  // Whether an episode has begun and not ended.
  bool running() const { return running_; }

 private:
  std::array<float, 4> Observation() const;

  const std::uint32_t max_steps_;
  std::unique_ptr<VecEnv> env_;
  const RowLayout layout_;
  std::vector<std::byte> row_bytes_;
  RowView row_;
  std::uint64_t next_token_ = 0;
  double return_sum_ = 0;
  std::uint64_t episode_steps_ = 0, ended_steps_ = 0;
  std::int64_t began_ns_ = 0, played_ns_ = 0;
  bool running_ = false;
};

}  // namespace tetrion
