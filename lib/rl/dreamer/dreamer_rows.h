#pragma once

#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/sequence_batch.h"

namespace tetrion {

// Rows 1..T of a batch as the tensors that the losses take. Allocated once; the views of `batch`
// and the flags are its own memory, so that it outlives the rows.
class DreamerRows {
 public:
  DreamerRows(const DreamerShape& shape, SequenceBatch& batch);

  // Takes over what the batch holds now.
  void Fill();

  const SequenceBatch& batch() const { return batch_; }
  // Whether an episode begins in one of the lanes at row t.
  bool begins(int t) const { return begins_[static_cast<std::size_t>(t)]; }

  torch::Tensor view;         // [T, B, F]
  torch::Tensor prev_action;  // [T, B, A] one-hot, 0: none
  torch::Tensor keep;         // [T, B, 1] 0 where an episode begins, else 1
  torch::Tensor reward;       // [T, B]
  torch::Tensor alive;        // [T, B] 0 at terminal rows, else 1
  torch::Tensor not_last;     // [T, B] 0 at an episode's last row, else 1
  // The state before row 0; 0 where it is not known.
  torch::Tensor deter;  // [B, D]
  torch::Tensor stoch;  // [B, S, C] one-hot

 private:
  const DreamerShape shape_;
  SequenceBatch& batch_;
  torch::Tensor context_deter_;  // [B, D] bf16, the batch's memory
  std::vector<bool> begins_;
};

}  // namespace tetrion
