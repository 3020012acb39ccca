#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lib/nn/network.h"

// Automatic differentiation in double, which gradients that were written by hand are compared with.

namespace tetrion::testing {

using Weights = std::map<std::string, torch::Tensor>;

inline torch::Tensor Double(const std::vector<float>& values, at::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values.data()), shape).to(torch::kFloat64);
}

// The network's parameters by name, f64, with gradients.
inline Weights WeightsOf(const Network& network) {
  Weights weights;
  for (const ParameterInfo& info : network.layout()) {
    const float* piece = network.parameters().data() + info.offset;
    weights[info.name] = torch::from_blob(const_cast<float*>(piece), info.shape)
                             .to(torch::kFloat64)
                             .set_requires_grad(true);
  }
  return weights;
}

// Largest difference between `values` and `expected`, as a share of the largest expected element.
inline double WorstShare(const float* values, const torch::Tensor& expected) {
  const torch::Tensor flat = expected.detach().reshape({-1}).contiguous();
  const double* reference = flat.const_data_ptr<double>();
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    worst = std::max(worst, std::abs(values[i] - reference[i]));
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace tetrion::testing
