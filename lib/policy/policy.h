#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tetrion {

// What a policy sees of n lanes at one logical time. All spans are the caller's, valid during the
// call only.
struct PolicyInput {
  int n = 0;
  const std::byte* records = nullptr;    // [n, record_bytes] u8, back to back
  const std::uint64_t* masks = nullptr;  // [n] bit a: action a legal; null without masks
  const std::uint8_t* flags = nullptr;   // [n] RowFlags; is_first resets recurrent state
  // [n] which lane each entry is: recurrent state belongs to a lane id, since a batch holds lanes
  // in any order and not all of them. Dense from 0; the id of a lane that is gone is given again,
  // and its new lane begins with is_first.
  const std::uint32_t* lane_ids = nullptr;
  // [n] with `steps`: the counter of the lane's random draws. Tokens of running episodes; with
  // streamed inference, whose rows carry no tokens, a key of stream and lane.
  const std::uint64_t* token_ids = nullptr;
  // [n] actions taken so far in the episode; with streamed inference the row's number.
  const std::uint32_t* steps = nullptr;
};

struct PolicyOutput {
  std::int32_t* action = nullptr;  // [n]
  float* log_prob = nullptr;       // [n] log-probability of the chosen action
  float* value = nullptr;          // [n] or null when not wanted
};

enum class [[nodiscard]] ActResult {
  kOk,
  kNotFinite,  // logits hold NaN or infinity: nothing was written, the caller aborts the episodes
  kGiveUp,     // it cannot decide for a reason of its own: the same, but no sign of broken weights
};

enum class [[nodiscard]] LoadResult {
  kLoaded,
  kWrongSize,  // not this network's parameters
  kNotFinite,  // refused, the old weights stay
};

// What acts on the weights that a trainer publishes. No member is thread-safe.
class WeightsUser {
 public:
  virtual ~WeightsUser() = default;
  // Takes weights published by a trainer (Trainer::PolicyBlob). Policies without weights accept
  // anything. `version` is what the rows will carry from now on.
  virtual LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) = 0;
  // Bytes LoadWeights expects; 0 for policies without weights.
  virtual std::size_t WeightsBytes() const { return 0; }
  virtual std::uint32_t version() const = 0;
};

// Chooses actions. One instance per worker thread; no member is thread-safe. Recurrent state, if
// any, lives in the policy. Draws come from Philox(seed, token, step, kActions), so a policy's
// choice for an observation does not depend on lane count or timing. Streamed inference keys them
// by stream, lane and row instead: there the choice of an episode does depend on where and when it
// is played.
class Policy : public WeightsUser {
 public:
  virtual ActResult Act(const PolicyInput& in, const PolicyOutput& out) = 0;
};

}  // namespace tetrion
