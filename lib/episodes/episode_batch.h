#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tetrion {

// Zeroed pages of the kernel's, touched when first written. Owns the memory.
class ZeroPages {
 public:
  enum class Size {
    kHuge,   // fewer faults; a touched byte may cost 2 MiB
    kSmall,  // a touched byte costs its page alone, and pages can be given back one by one
  };
  // Throws Error(kTryAgain) when the machine has not that much memory.
  explicit ZeroPages(std::size_t bytes, Size size = Size::kHuge);
  ~ZeroPages();
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  std::byte* data() const { return data_; }  // 64-byte aligned
  std::size_t size() const { return bytes_; }
  // Makes `bytes` at `at` zeros. Several whole pages go back to the kernel instead, so that pages
  // which no writer touches again cost neither time nor memory. Returns the bytes written.
  std::size_t Clear(std::byte* at, std::size_t bytes);

 private:
  const std::size_t bytes_;
  std::byte* data_;
};

// Why and how an episode ended.
struct EpisodeEnd {
  std::uint64_t job = 0;
  std::int32_t length = 0;  // actions taken
  bool terminated = false;  // by the rules
  bool truncated = false;   // by a limit on its steps
  float episode_return = 0.0F;
  std::int32_t lines = 0;
};

// Room for `capacity` episodes of K steps, transition-aligned: reward and done of step k are what
// action k earned and did; observation k is what it was chosen from. A request of B episodes uses
// the first B rows, so that every array is [B, K, ...], row-major, back to back.
//
// Padding: steps k >= length hold zeros and done = 1, after Finish. The batch knows how much of
// every row may differ from that and pads no more. What others may have written behind the steps
// ever played (MarkDirty) goes back to the kernel as pages, which then are zeros: time and memory
// follow the steps played, not K. `dones` alone is written, a byte a step. Short rows are written
// whole, in huge pages. An unfinished row holds anything.
//
// Thread roles: a row belongs to one writer at a time; the thread that hands it over orders the
// writes.
class EpisodeBatch {
 public:
  // `obs_bytes` is one observation's size, `mask_actions` how many actions a mask is of (0 without
  // masks, 64 at most). Throws Error(kTryAgain) without memory.
  EpisodeBatch(int capacity, int steps, std::size_t obs_bytes, int mask_actions = 0);

  int capacity() const { return capacity_; }
  int steps() const { return steps_; }  // K
  std::size_t obs_bytes() const { return obs_bytes_; }
  int mask_actions() const { return static_cast<int>(mask_bytes_); }  // A

  // Row's and step's place in observations, [capacity, K, obs_bytes] u8.
  std::byte* Observation(int row, int step) {
    return observations_.data() + At(row, step) * obs_bytes_;
  }
  std::byte* FinalObservation(int row) {
    return final_observations_.data() + static_cast<std::size_t>(row) * obs_bytes_;
  }
  // What action `step` did; written when the next observation is there.
  void SetOutcome(int row, int step, float reward, bool done) {
    rewards[At(row, step)] = reward;
    dones[At(row, step)] = done ? 1 : 0;
  }
  void SetAction(int row, int step, std::int32_t action, float log_prob, float value) {
    actions[At(row, step)] = action;
    log_probs[At(row, step)] = log_prob;
    values[At(row, step)] = value;
  }
  // Which actions were legal at step, bit a for action a. With masks only.
  void SetMask(int row, int step, std::uint64_t mask);
  // Row is complete: pads it and writes how it ended.
  void Finish(int row, const EpisodeEnd& end);
  // Row is given up after `steps_begun` steps: it stays unpadded, and the batch remembers.
  void Abandon(int row, int steps_begun) { Touch(row, steps_begun); }
  // A finished row of `from` (same K and obs_bytes) becomes row `row` of this batch.
  void CopyRow(int row, const EpisodeBatch& from, int from_row);
  // The caller may have written into the arrays: pads every step of every row anew.
  void MarkDirty();
  // Bytes written as padding so far, those of CopyRow included. Any thread.
  std::uint64_t padded_bytes() const { return padded_bytes_.load(std::memory_order_relaxed); }

  // The functions above write them; the batch's owner reads them.
  std::span<std::int32_t> lengths;       // [capacity]
  std::span<std::uint8_t> terminated;    // [capacity] 0 or 1
  std::span<std::uint8_t> truncated;     // [capacity] 0 or 1
  std::span<float> returns;              // [capacity]
  std::span<std::int32_t> lines;         // [capacity]
  std::span<std::int64_t> job_ids;       // [capacity]
  std::span<float> rewards;              // [capacity, K]
  std::span<std::int32_t> actions;       // [capacity, K]
  std::span<std::uint8_t> dones;         // [capacity, K] 0 or 1
  std::span<float> log_probs;            // [capacity, K]; zeros where the policy gives none
  std::span<float> values;               // [capacity, K]; zeros where the policy gives none
  std::span<std::uint8_t> action_masks;  // [capacity, K, A] 0 or 1, 1 is legal; or empty
  std::byte* observations() const { return observations_.data(); }
  std::byte* final_observations() const { return final_observations_.data(); }

 private:
  std::size_t At(int row, int step) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(steps_) +
           static_cast<std::size_t>(step);
  }
  void Touch(int row, int steps_begun);
  void Pad(int row, int length);
  std::size_t WritePadding(int row, int first, int end);
  std::size_t GiveBack(int row, int first, int end);
  int StepsToKeep(int resident, int length) const;

  const int capacity_;
  const int steps_;
  const std::size_t obs_bytes_;
  const std::size_t mask_bytes_;
  const bool gives_back_;  // rows are long enough for it
  ZeroPages observations_;
  ZeroPages final_observations_;
  ZeroPages columns_;        // rewards, actions, log_probs, values, dones
  ZeroPages masks_;          // action_masks
  ZeroPages rows_;           // the columns of [capacity]
  std::span<int> touched_;   // [capacity] steps from here on are padded already
  std::span<int> resident_;  // [capacity] steps from here on were never played, or given back
  std::atomic<std::uint64_t> padded_bytes_{0};
};

}  // namespace tetrion
