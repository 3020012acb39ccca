#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/nn/categorical.h"
#include "lib/nn/parameters.h"
#include "lib/nn/precision.h"

namespace tetrion {

// Units of the scorer's layers come in whole vectors of the widest kernels (lib/run/run_config.h
// refuses others).
inline constexpr int kScorerUnitsStep = 16;
inline constexpr int kScorerUnits = 64;

struct NetworkConfig {
  std::string name = "auto";  // scorer, columns, mlp, conv; auto follows the view
  std::uint64_t seed = 1;     // initial weights: a pure function of (seed, network, environment)
  bool blank = false;         // no initial weights, which take long: others are loaded before use
  int max_states = 1;         // most states of one call; every buffer is allocated for it
  bool training = false;      // false: no gradient buffer, Forward and Backward are not allowed
  int threads = 1;            // threads of one call, the caller's included
  int scorer_units = kScorerUnits;        // of a layer of scorer and columns, a multiple of it
  Precision precision = Precision::kF32;  // of scorer and columns, the only ones that round
};

// An actor-critic network: view -> logits and value. All parameters live in one flat f32 buffer and
// all gradients in another of the same layout, so that publishing, loading and an all-reduce are
// one copy. N states of a call, F = view_floats, A = actions.
//
// Thread role: one thread at a time; the instance owns its helper threads and all buffers. After
// construction no call allocates, but for what the tensor library does in network conv
// (lib/core/freed_memory.h).
class Network {
 public:
  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const std::string& name() const { return name_; }
  std::span<float> parameters() { return parameters_; }
  std::span<const float> parameters() const { return parameters_; }
  // Empty unless made for training. Backward adds to it; the optimiser zeroes it.
  std::span<float> gradients() { return gradients_; }
  // The pieces in buffer order, without gaps.
  const ParameterLayout& layout() const { return layout_; }

  // Inference. view [n, F] f32, mask [n] (null without masks) -> logits [n, A], masked with
  // kMaskedLogit, and value [n]; either output may be null.
  virtual void Infer(const float* view, const std::uint64_t* mask, int n, float* logits,
                     float* value) = 0;
  // The same, and keeps what Backward needs. `view`, `mask` and the parameters must stay unchanged
  // until then; Infer may be called.
  virtual void Forward(const float* view, const std::uint64_t* mask, int n, float* logits,
                       float* value) = 0;
  // As Forward of the states that the last one was of: `view`, `mask` and n are the same, and what
  // they hold; parameters may have changed. What follows from the states alone is not found again.
  virtual void ForwardAgain(const float* view, const std::uint64_t* mask, int n, float* logits,
                            float* value) {
    Forward(view, mask, n, logits, value);
  }
  // Adds the gradient of the last Forward for d loss/d logits [n, A] and d loss/d value [n]. The
  // gradient of a masked logit is ignored.
  virtual void Backward(const float* grad_logits, const float* grad_value) = 0;

 protected:
  Network() = default;

  // As the free function, to this network's layout; used before AllocateBuffers.
  std::size_t AddParameter(const std::string& name, std::vector<std::int64_t> shape);
  void AllocateBuffers(bool training);

  std::string name_;
  ParameterLayout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
};

// The network `config.name` for an environment. Throws Error(kUsage) when there is no such network
// or it cannot read the environment's view.
std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config, const EnvSpec& env);

// What "auto" stands for: the network that the environment's entry names for its view.
std::string ResolveNetworkName(const std::string& name, const EnvSpec& env);

}  // namespace tetrion
