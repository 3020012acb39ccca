#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tetrion {

// What Python sees of n environments after a step, column by column. Allocated once; the numpy
// arrays that Python holds are views of it.
struct StepColumns {
  StepColumns(int n, std::size_t obs_bytes, int actions, bool has_mask)
      : obs_bytes(obs_bytes),
        mask_bytes(has_mask ? static_cast<std::size_t>(actions) : 0),
        obs(static_cast<std::size_t>(n) * obs_bytes),
        reward(static_cast<std::size_t>(n)),
        terminated(static_cast<std::size_t>(n)),
        truncated(static_cast<std::size_t>(n)),
        action_mask(static_cast<std::size_t>(n) * mask_bytes),
        episode_return(static_cast<std::size_t>(n)),
        episode_length(static_cast<std::size_t>(n)),
        lines(static_cast<std::size_t>(n)),
        lines_cleared(static_cast<std::size_t>(n)),
        env_id(static_cast<std::size_t>(n)) {}

  // Row `to` becomes row `from` of `other`, a set of the same shapes.
  void CopyRow(const StepColumns& other, std::size_t from, std::size_t to) {
    std::memcpy(obs.data() + to * obs_bytes, other.obs.data() + from * obs_bytes, obs_bytes);
    std::copy_n(other.action_mask.data() + from * mask_bytes, mask_bytes,
                action_mask.data() + to * mask_bytes);
    reward[to] = other.reward[from];
    terminated[to] = other.terminated[from];
    truncated[to] = other.truncated[from];
    episode_return[to] = other.episode_return[from];
    episode_length[to] = other.episode_length[from];
    lines[to] = other.lines[from];
    lines_cleared[to] = other.lines_cleared[from];
    env_id[to] = other.env_id[from];
  }

  const std::size_t obs_bytes;   // of one environment
  const std::size_t mask_bytes;  // of one environment; 0 without masks

  std::vector<std::byte> obs;                // [n, obs_bytes]
  std::vector<float> reward;                 // [n] earned by the last action; 0 after a reset
  std::vector<std::uint8_t> terminated;      // [n] 0 or 1
  std::vector<std::uint8_t> truncated;       // [n] 0 or 1
  std::vector<std::uint8_t> action_mask;     // [n, A] 1 where legal; empty without masks
  std::vector<float> episode_return;         // [n] of the episode so far
  std::vector<std::int32_t> episode_length;  // [n] steps so far
  std::vector<std::int32_t> lines;           // [n] cleared so far
  std::vector<std::int32_t> lines_cleared;   // [n] by the last action
  std::vector<std::int32_t> env_id;          // [n]
};

}  // namespace tetrion
