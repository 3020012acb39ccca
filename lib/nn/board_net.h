#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/nn/board_windows.h"
#include "lib/nn/dense_kernels.h"

namespace tetrion {

// A number for each board, from its cells and E numbers more:
//
//   window [60] -> H -> SiLU -> H -> SiLU, summed over the board's columns -+-> H -> SiLU -> 1
//   rest [E] ---------------------------------------------------------------'
//
// The first two layers are the same for every column, a convolution over columns that sees all
// rows at once, and are computed once for each distinct window.
//
// Immutable after construction; weights and buffers are the caller's.
class BoardNet {
 public:
  // What a thread works in; overwritten by every Forward.
  struct Workspace {
    BoardWindows windows;
    std::vector<float> active1, active2;  // [windows, H] after SiLU
    std::vector<float> slope1, slope2;    // [windows, H] SiLU'
    std::vector<float> sum;               // [boards, H]
    std::vector<float> active3, slope3;   // [boards, H]
    std::vector<float> grad1, grad2, grad3, grad_sum;
  };
  // The weights as products read them; those of Backward are transposed.
  struct Packed {
    PackedWeights w2, w3, w2_back, w3_back;  // [H, H]
    std::vector<float> w2_transposed, w3_transposed;
  };
  // Adds a tensor of the shape to the caller's flat buffer; returns its offset.
  using AddTensor = std::function<std::size_t(const std::string&, std::vector<std::int64_t>)>;

  // Parameters are called `prefix`.column.1.weight and so on. `columns` of a board, `rest` numbers
  // more, `units` H, a multiple of kScorerUnitsStep.
  BoardNet(const std::string& prefix, int columns, int rest, std::int64_t units,
           Precision precision, const AddTensor& add);

  std::size_t head_weight() const { return w4_; }

  // For calls of at most `max_boards`; with `training` Backward may be called.
  void Allocate(int max_boards, bool training, Workspace& work) const;
  Packed AllocatePacked() const;
  // Again whenever the parameters have changed, which must stay until the last call.
  void PackForward(const float* parameters, Packed& packed) const;
  void PackBackward(const float* parameters, Packed& packed) const;

  // boards [n, columns + rest], rows one behind the other -> out [n]. With `slopes` keeps what
  // Backward needs in `work`, which was allocated for training.
  void Forward(const float* parameters, const Packed& packed, const float* boards, int n,
               bool slopes, Workspace& work, float* out) const;
  // Adds the slopes of the loss to `gradients`, as long as the parameters, for d loss / d out [n]
  // of the last Forward of `work` with slopes.
  void Backward(const float* parameters, const Packed& packed, const float* boards,
                const float* grad_out, Workspace& work, float* gradients) const;

 private:
  const int columns_, rest_;
  const std::int64_t units_;
  const DenseKernels& kernels_;
  // Offsets in the flat buffer; weights are [in, out].
  std::size_t w1_, b1_, w2_, b2_, w3_, rest_w_, b3_, w4_, b4_;
};

}  // namespace tetrion
