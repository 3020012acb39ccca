#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// The mean over those of a batch's rows that count, by operations that read nothing on the host and
// whose shapes do not depend on which rows these are. Where all count it is the plain mean, to the
// last bit on the CPU.
class CountedMean {
 public:
  // `counts`, any shape: 1 of a row that counts, else 0. Where none does every mean is 0.
  explicit CountedMean(const torch::Tensor& counts);

  // `values`: of the shape of `counts`, or with one dimension before it. What those of other rows
  // are has no part in the mean or its gradient while they are finite.
  torch::Tensor Of(const torch::Tensor& values) const;

 private:
  const torch::Tensor counts_, count_;  // count_: a scalar, how many count, at least 1
};

}  // namespace tetrion
