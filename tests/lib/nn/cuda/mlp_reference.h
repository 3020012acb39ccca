#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/mlp.h"

namespace tetrion::testing {

// Network `mlp`, one state at a time in double, transcribed from its formula: what device
// code is compared with.
class MlpReference {
 public:
  MlpReference(const EnvSpec& env, std::span<const float> parameters)
      : layout_(MlpLayout(env)),
        wide_(MlpShapeOf(env.obs) == MlpShape::kWide),
        parameters_(parameters) {}

  // view [F] -> logits [A], not masked.
  std::vector<double> Logits(std::span<const float> view) const {
    std::vector<double> h(view.begin(), view.end());
    for (const char* layer : {"1", "2"}) {
      const std::string name = (wide_ ? "trunk." : "policy.") + std::string(layer);
      h = Linear(name, h);
      if (wide_) Normalise(name + ".norm", h);
      for (double& x : h) x = wide_ ? x / (1 + std::exp(-x)) : std::tanh(x);
    }
    return Linear("policy.head", h);
  }

 private:
  std::span<const float> Piece(const std::string& name) const {
    const ParameterInfo& info = ParameterOf(layout_, name);
    return parameters_.subspan(info.offset, info.size);
  }

  std::vector<double> Linear(const std::string& name, const std::vector<double>& in) const {
    const std::span<const float> weight = Piece(name + ".weight"), bias = Piece(name + ".bias");
    std::vector<double> out(bias.begin(), bias.end());
    for (std::size_t o = 0; o < out.size(); ++o) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        out[o] += static_cast<double>(weight[o * in.size() + i]) * in[i];
      }
    }
    return out;
  }

  void Normalise(const std::string& name, std::vector<double>& h) const {
    const std::span<const float> scale = Piece(name + ".scale"), bias = Piece(name + ".bias");
    const auto count = static_cast<double>(h.size());
    double mean = 0, variance = 0;
    for (const double x : h) mean += x / count;
    for (const double x : h) variance += (x - mean) * (x - mean) / count;
    for (std::size_t i = 0; i < h.size(); ++i) {
      h[i] =
          (h[i] - mean) / std::sqrt(variance + kLayerNormEpsilon) * static_cast<double>(scale[i]) +
          static_cast<double>(bias[i]);
    }
  }

  const ParameterLayout layout_;
  const bool wide_;
  const std::span<const float> parameters_;
};

}  // namespace tetrion::testing
