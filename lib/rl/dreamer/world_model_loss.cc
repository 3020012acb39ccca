#include "lib/rl/dreamer/world_model_loss.h"

#include <vector>

#include "lib/nn/dreamer/primitives.h"
#include "lib/rl/dreamer/counted_mean.h"

namespace tetrion {

using torch::Tensor;

namespace {

void Follow(const DreamerModel& model, const DreamerRows& rows, const OneHotSampler& sample,
            WorldModelLoss& out) {
  const std::vector<Tensor> embeds = model.EmbedTerm(model.Encode(rows.view)).unbind(0);
  const std::vector<Tensor> actions = model.ActionTerm(rows.prev_action).unbind(0);
  const DreamerModel::Steps steps(model);
  std::vector<Tensor> deters, stochs, posteriors;
  Tensor deter = rows.deter, stoch = rows.stoch;
  for (std::size_t t = 0; t < embeds.size(); ++t) {
    if (rows.begins(static_cast<int>(t))) {
      const Tensor keep = rows.keep[static_cast<std::int64_t>(t)];
      deter = deter * keep;
      stoch = stoch * keep.unsqueeze(-1);
    }
    deter = steps.Core(deter, stoch, actions[t]);
    const Tensor log_probs = steps.PosteriorLogProbs(deter, embeds[t]);
    stoch = StraightThrough(sample(log_probs), log_probs);
    deters.push_back(deter);
    stochs.push_back(stoch);
    posteriors.push_back(log_probs);
  }
  out.deter = torch::stack(deters);
  out.stoch = torch::stack(stochs);
  out.posterior = torch::stack(posteriors);
}

}  // namespace

WorldModelLoss ComputeWorldModelLoss(const DreamerModel& model, const DreamerSettings& settings,
                                     const DreamerRows& rows, const OneHotSampler& sample) {
  WorldModelLoss out;
  Follow(model, rows, sample, out);
  out.prior = model.PriorLogProbs(out.deter);
  out.feature = model.Feature(out.deter, out.stoch);
  const KlTerms kl = KlLosses(out.posterior, out.prior, settings.free_nats);
  const CountedMean mean(rows.counts);
  out.dynamics = mean.Of(kl.dynamics);
  out.representation = mean.Of(kl.representation);
  out.reconstruction = mean.Of(model.ReconstructionLoss(model.Decode(out.feature), rows.view));
  out.reward = mean.Of(TwoHotLoss(model.RewardLogits(out.feature), rows.reward));
  out.cont = mean.Of(torch::binary_cross_entropy_with_logits(
      model.ContinueLogit(out.feature), rows.alive * DiscountOf(settings).in_head,
      /*weight=*/{}, /*pos_weight=*/{}, at::Reduction::None));
  return out;
}

}  // namespace tetrion
