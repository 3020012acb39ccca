#pragma once

#include <cstdint>
#include <span>

#include "lib/nn/dreamer/dreamer_core.h"
#include "lib/nn/dreamer/dreamer_decoder.h"
#include "lib/nn/dreamer/dreamer_encoder.h"
#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// DreamerV3's world model, actor and critic on one flat buffer of parameters:
//
//   view -> Encode -> embed -+
//                            +-> PosteriorLogProbs -> z -+
//   deter, z, action -> Core -> deter -> PriorLogProbs   +-> Feature -> Decode, reward, continue,
//                                 '----------------------'             actor, value
//
// Leading dimensions "..." are any: [N], [T, B]. All tensors are f32. The model owns neither
// buffer; both outlive it. Thread role: one thread at a time; several models may read one buffer.
class DreamerModel {
 public:
  // The model's steps along one sequence, whose slopes one backward pass may take: the parameters'
  // are one product over all steps. The model outlives it; its parameters do not change meanwhile.
  class Steps {
   public:
    explicit Steps(const DreamerModel& model)
        : model_(model), core_(model.core_.OverSteps()), posterior_(model.posterior_.OverSteps()) {}
    // As Core and PosteriorLogProbs, of ActionTerm [N, U] and EmbedTerm [N, U]; deter [N, D].
    torch::Tensor Core(const torch::Tensor& deter, const torch::Tensor& stoch,
                       const torch::Tensor& action_term) const {
      return core_(deter, stoch, action_term);
    }
    torch::Tensor PosteriorLogProbs(const torch::Tensor& deter,
                                    const torch::Tensor& embed_term) const {
      return model_.StochLogProbs(posterior_(deter, embed_term));
    }

   private:
    const DreamerModel& model_;
    const DreamerCore core_;
    const DreamerPosterior posterior_;
  };

  // `parameters` is the whole buffer of DreamerLayout, or its first ActingFloats: then Encode,
  // Core, PosteriorLogProbs, Feature and the actor alone may be called. `gradients` is empty
  // (inference) or as long as `parameters`: backward adds to it. Both are memory of `device`.
  DreamerModel(const DreamerShape& shape, std::span<float> parameters, std::span<float> gradients,
               torch::Device device = torch::kCPU);

  const DreamerShape& shape() const { return shape_; }

  // view [..., F] -> [..., E].
  torch::Tensor Encode(const torch::Tensor& view) const { return encoder_(view); }
  // deter [N, D], stoch [N, S, C] one-hot, action [N, A] one-hot -> deter [N, D].
  torch::Tensor Core(const torch::Tensor& deter, const torch::Tensor& stoch,
                     const torch::Tensor& action) const {
    return core_(deter, stoch, ActionTerm(action));
  }
  // deter [..., D], embed [..., E] -> log-probabilities [..., S, C], mixed with the uniform ones.
  torch::Tensor PosteriorLogProbs(const torch::Tensor& deter, const torch::Tensor& embed) const {
    return StochLogProbs(posterior_(deter, EmbedTerm(embed)));
  }
  // The parts of both that know no state, [..., U]: of a known sequence they are taken at once.
  torch::Tensor ActionTerm(const torch::Tensor& action) const { return core_.ActionTerm(action); }
  torch::Tensor EmbedTerm(const torch::Tensor& embed) const { return posterior_.EmbedTerm(embed); }
  torch::Tensor PriorLogProbs(const torch::Tensor& deter) const;
  // deter [..., D], stoch [..., S, C] -> [..., D + S C].
  torch::Tensor Feature(const torch::Tensor& deter, const torch::Tensor& stoch) const;

  // Feature -> logits [..., 255], [...], [..., A], [..., 255]; the actor's are not mixed yet.
  torch::Tensor RewardLogits(const torch::Tensor& feature) const { return reward_(feature); }
  torch::Tensor ContinueLogit(const torch::Tensor& feature) const;
  torch::Tensor ActorLogits(const torch::Tensor& feature) const { return actor_(feature); }
  torch::Tensor ValueLogits(const torch::Tensor& feature) const { return value_(feature); }
  // As UnimixLogProbs with the actor's share -> [..., A].
  torch::Tensor ActorLogProbs(const torch::Tensor& feature) const;

  // Feature -> what the view is predicted to be, in the decoder's terms [..., F].
  torch::Tensor Decode(const torch::Tensor& feature) const { return decoder_(feature); }
  // Loss of a prediction [..., F] for a view [..., F], added over its floats -> [...].
  torch::Tensor ReconstructionLoss(const torch::Tensor& prediction,
                                   const torch::Tensor& view) const;

 private:
  torch::Tensor StochLogProbs(const torch::Tensor& logits) const;

  const DreamerShape shape_;
  const DreamerTensors tensors_;
  const DreamerEncoder encoder_;
  const DreamerCore core_;
  const DreamerPosterior posterior_;
  const DreamerHead actor_;
  const DreamerHead prior_;
  const DreamerDecoder decoder_;
  const DreamerHead reward_, continue_, value_;
};

}  // namespace tetrion
