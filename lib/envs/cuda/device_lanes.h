#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/cuda/device.h"
#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/row_slots.h"
#include "lib/frame/token.h"

namespace tetrion {

// Kinds of records that a device draws each row, beside those that environments keep as states:
// PlanesLayout as u8, 0 or 1 (lib/envs/views/views.h), and lib/envs/views/packed2.h.
inline constexpr const char* kPlanesRecord = "planes";
inline constexpr const char* kPacked2Record = "packed2";

struct DeviceLanesConfig {
  EnvConfig env;
  std::string record;                // "": what the view is made from
  std::uint32_t token_capacity = 0;  // tokens that may wait on the device
  // Episodes that may be running or ended and not drained: at least a lane's each.
  std::uint32_t episode_capacity = 0;
  // Most episodes of a drain, which copies as many bytes however few there are. 0: all.
  std::uint32_t drain_episodes = 0;
  unsigned block_threads = 128;  // a multiple of 32; no result depends on it
};

struct EndedEpisode {
  EpisodeResult result;    // policy_version is that of the row before the last
  std::uint64_t last_row;  // number of the row with is_last
};

// What has ended and was not drained, in the order of rows and lanes, and the account.
struct DeviceDrain {
  std::vector<EndedEpisode> episodes;
  std::uint64_t episodes_left = 0;  // for later drains: more than drain_episodes had ended
  std::uint64_t tokens_left = 0;    // added and not begun
  std::uint64_t rows = 0;           // made since the start
  std::uint64_t env_steps = 0;      // actions executed since the start
  std::uint32_t playing_lanes = 0;
};

enum class StepKind : std::uint8_t;  // lane_spans.h

// Tokens that were given back. The first `begun` of them had begun.
struct CutTokens {
  std::vector<Token> tokens;
  std::size_t begun = 0;
  bool has_row = false;  // a row was made, which says so
};

// M lanes of an environment in a device's memory, stepped by kernels straight into a replay's rows:
// what LaneLoop and VecEnv are on the CPU, with the same rows for the same tokens and actions.
// (CartPole's sine and cosine are the device's.)
//
// Thread role: one thread, and one stream at a time. The constructor allocates and waits; of the
// rest CutLanes alone waits for the device.
//
// Invariants
//  1. The number of the next row lives on the device, so StepRow and Advance can be captured in a
//     graph: k rows in one graph equal k rows enqueued.
//  2. Lanes without an episode take tokens in lane order, in the order in which they were added,
//     whatever grid and block.
//  3. No ended episode is lost: token number k begins only while fewer than episode_capacity of the
//     k before it have no result drained. Lanes that find none stay idle, with rows as LaneLoop
//     writes them, until a drain makes room.
class DeviceLanes {
 public:
  // Throws Error(kUsage) for an environment, a view or a record that there is not, and for
  // capacities that are too small.
  DeviceLanes(const cuda::Device& device, const DeviceLanesConfig& config);
  ~DeviceLanes();
  DeviceLanes(const DeviceLanes&) = delete;
  DeviceLanes& operator=(const DeviceLanes&) = delete;

  const EnvSpec& spec() const { return spec_; }
  RowSpec row_spec() const;

  // Enqueue, copy nothing, may be captured. StepRow writes the columns of row *row() that an
  // environment writes, and the header's number, from the actions of the row before; then a policy
  // writes action, log_prob and policy_version; then Advance makes the next row current.
  void StepRow(const RowSlots& slots, cuda::Stream& stream);
  void Advance(cuda::Stream& stream);

  // Device memory, for kernels between StepRow and Advance.
  const std::uint64_t* row() const;
  const std::uint64_t* token_ids() const;  // [M] of the episode played or played last
  const std::uint32_t* steps() const;      // [M] actions taken in it

  // Enqueues tokens; their max_steps is at least 1. Returns how many there was room for, as far as
  // the last drain tells.
  std::size_t AddTokens(std::span<const Token> tokens, cuda::Stream& stream);

  // Enqueues a copy of ended episodes; between Advance and StepRow, while no other is on
  // its way.
  void EnqueueDrain(cuda::Stream& stream);
  // The drain, once it has passed; false before, and without one. Throws Error(kInternal) when an
  // action was out of range, which lanes took for 0.
  bool TakeDrained(DeviceDrain& out);

  // Between Advance and StepRow: ends every playing lane with one more row, truncated, which needs
  // no Advance, and takes all tokens back. Later tokens begin as ever. Waits for the stream.
  CutTokens CutLanes(const RowSlots& slots, cuda::Stream& stream);

 private:
  struct Memory;  // of the device, and pinned

  void Enqueue(const RowSlots& slots, StepKind kind, cuda::Stream& stream);

  const DeviceLanesConfig config_;
  EnvSpec spec_;
  std::unique_ptr<Memory> memory_;
  std::uint64_t added_ = 0;  // tokens since the start
  std::uint64_t begun_ = 0;  // of them, as far as the last drain tells
  bool draining_ = false;
};

}  // namespace tetrion
