#pragma once

#include <string>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/sequence_batch.h"

namespace tetrion {

// Rows 1..T of a batch as the tensors that the losses take, of a device. Allocated once; on the
// CPU, views and rewards are the memory of `batch`, so that it outlives the rows.
class DreamerRows {
 public:
  // `every_row_may_begin`: what losses compute does not depend on where episodes begin.
  DreamerRows(const DreamerShape& shape, SequenceBatch& batch, torch::Device device = torch::kCPU,
              bool every_row_may_begin = false);

  // Takes over what the batch holds now.
  void Fill();
  // What of the batch is not finite; empty when all is.
  std::string NotFinite() const;

  const SequenceBatch& batch() const { return batch_; }
  // Whether an episode begins, or may begin, in one of the lanes at row t.
  bool begins(int t) const { return every_row_may_begin_ || begins_[static_cast<std::size_t>(t)]; }

  torch::Tensor view;         // [T, B, F]
  torch::Tensor prev_action;  // [T, B, A] one-hot, 0: none
  torch::Tensor keep;         // [T, B, 1] 0 where an episode begins, else 1
  torch::Tensor reward;       // [T, B]
  torch::Tensor alive;        // [T, B] 0 at terminal rows, else 1
  torch::Tensor not_last;     // [T, B] 0 at an episode's last row, else 1
  torch::Tensor counts;       // [T, B] 0 where the lane idles, else 1
  // The state before row 0; 0 where it is not known.
  torch::Tensor deter;  // [B, D]
  torch::Tensor stoch;  // [B, S, C] one-hot

 private:
  // The same tensors where the batch is.
  struct OnHost {
    torch::Tensor view, prev_action, keep, reward, alive, not_last, counts, deter, stoch;
  };
  void FillHost();

  const DreamerShape shape_;
  SequenceBatch& batch_;
  const bool every_row_may_begin_;
  OnHost host_;
  torch::Tensor context_deter_;  // [B, D] bf16, the batch's memory
  std::vector<bool> begins_;
};

}  // namespace tetrion
