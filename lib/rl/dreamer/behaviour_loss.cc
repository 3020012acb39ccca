#include "lib/rl/dreamer/behaviour_loss.h"

#include <vector>

#include "lib/nn/dreamer/primitives.h"
#include "lib/rl/dreamer/counted_mean.h"
#include "lib/rl/dreamer/lambda_return.h"
#include "lib/rl/dreamer/tensor_returns.h"

namespace tetrion {

using torch::Tensor;

namespace {

// Two-hot loss of the critic for `target`, and for the slow critic's values beside it.
Tensor CriticLoss(const Tensor& logits, const Tensor& target, const Tensor& slow, double share) {
  if (share == 1.0) return TwoHotLoss(logits, target, slow);
  const Tensor loss = TwoHotLoss(logits, target);
  return share == 0.0 ? loss : loss + share * TwoHotLoss(logits, slow);
}

// Returns of the rows as they were played, [T-1, B]; `boot` [T, B] is what the imagination from
// each of them is worth.
Tensor PlayedReturns(const DreamerSettings& settings, const DreamerRows& rows, const Tensor& boot) {
  const double discount = DiscountOf(settings).Whole();
  if (CurrentUpdateKernels() != nullptr) {
    return ReplayedReturnsOf(rows.reward, rows.not_last, rows.alive, boot, discount,
                             settings.lambda);
  }
  const SequenceBatch& batch = rows.batch();
  const Tensor returns = torch::empty({batch.steps - 1, batch.lanes});
  ReplayedReturns({batch.steps, batch.lanes, batch.reward.data(), batch.is_last.data(),
                   batch.is_terminal.data(), boot.const_data_ptr<float>()},
                  discount, settings.lambda, returns.mutable_data_ptr<float>());
  return returns;
}

// Loss of the critic on the rows as they were played.
Tensor ReplayValueLoss(const DreamerModel& model, const DreamerHead& slow,
                       const DreamerSettings& settings, const DreamerRows& rows,
                       const WorldModelLoss& world, const Tensor& returns) {
  const std::int64_t steps = rows.reward.size(0) - 1;
  const Tensor target = PlayedReturns(settings, rows, returns[0].view_as(rows.reward));
  const Tensor feature = world.feature.narrow(0, 0, steps);
  Tensor slow_value;
  {
    const torch::NoGradGuard no_gradient;
    slow_value = TwoHotMean(slow(feature));
  }
  const Tensor loss =
      CriticLoss(model.ValueLogits(feature), target, slow_value, settings.slow_regulariser);
  return CountedMean(rows.counts.narrow(0, 0, steps)).Of(rows.not_last.narrow(0, 0, steps) * loss);
}

// Sets the returns and weights of `out` from its rewards [H, N], and values and cont [H+1, N].
void FillReturns(const Tensor& values, const Tensor& cont, double lambda, ImaginedWorth& out) {
  if (CurrentUpdateKernels() != nullptr) {
    out.returns = ImaginedReturnsOf(out.reward, cont, values, lambda);
    out.weight = ImaginedWeightsOf(cont);
    return;
  }
  // Row 0's reward is not read.
  const Tensor rewards = torch::cat({out.reward.narrow(0, 0, 1), out.reward});
  out.returns = torch::empty_like(out.reward);
  out.weight = torch::empty_like(out.reward);
  const ImaginedRows rows = {.horizon = static_cast<int>(out.reward.size(0)),
                             .starts = static_cast<int>(out.reward.size(1)),
                             .reward = rewards.const_data_ptr<float>(),
                             .cont = cont.const_data_ptr<float>(),
                             .value = values.const_data_ptr<float>()};
  ImaginedReturns(rows, lambda, out.returns.mutable_data_ptr<float>());
  ImaginedWeights(rows, out.weight.mutable_data_ptr<float>());
}

}  // namespace

Imagination Imagine(const DreamerModel& model, const Tensor& deter, const Tensor& stoch,
                    int horizon, const OneHotSampler& sample) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> actions, log_probs;
  Tensor h = deter.detach(), z = stoch.detach();
  const std::int64_t width = h.size(1) + z.size(1) * z.size(2);
  Imagination out;
  out.feature = torch::empty({horizon + 1, h.size(0), width}, h.options());
  const auto feature = [&](std::int64_t k) {
    // With a version of its own: the rows that are written later are other rows.
    Tensor place = out.feature[k].variable_data();
    torch::cat_out(place, {h, z.flatten(1)}, 1);
    return place;
  };
  for (int k = 0; k < horizon; ++k) {
    const Tensor now = feature(k);
    {
      const torch::AutoGradMode actor_learns(true);
      log_probs.push_back(model.ActorLogProbs(now));
    }
    actions.push_back(sample(log_probs.back()));
    h = model.Core(h, z, actions.back());
    z = sample(model.PriorLogProbs(h));
  }
  (void)feature(horizon);
  out.action = torch::stack(actions);
  const torch::AutoGradMode actor_learns(true);
  out.log_probs = torch::stack(log_probs);
  return out;
}

ImaginedWorth ComputeImaginedWorth(const DreamerModel& model, const DreamerHead& slow,
                                   const DreamerSettings& settings, const Imagination& imagined) {
  const std::int64_t horizon = imagined.action.size(0);
  const Tensor decides = imagined.feature.narrow(0, 0, horizon);
  ImaginedWorth out;
  out.value_logits = model.ValueLogits(decides);
  const torch::NoGradGuard no_gradient;
  const Tensor last = imagined.feature.narrow(0, horizon, 1);
  const bool slow_returns = settings.return_critic == "slow";
  out.value = TwoHotMean(out.value_logits);
  out.slow = TwoHotMean(slow(decides));
  out.baseline = slow_returns ? out.slow : out.value;
  out.reward = TwoHotMean(model.RewardLogits(imagined.feature.narrow(0, 1, horizon)));
  const Tensor values =
      torch::cat({out.baseline, TwoHotMean(slow_returns ? slow(last) : model.ValueLogits(last))});
  // Behind the first row: chance to go on, with the whole discount.
  const Tensor chance = torch::sigmoid(model.ContinueLogit(imagined.feature));
  const Tensor cont = (chance * DiscountOf(settings).beside_head).contiguous();
  // No step has led to the starts: they count undiscounted where the head says nothing of it.
  cont[0].copy_(imagined.start_alive.defined() ? imagined.start_alive : chance[0]);
  FillReturns(values, cont, settings.lambda, out);
  return out;
}

BehaviourLoss ComputeBehaviourLoss(const DreamerModel& model, const DreamerHead& slow,
                                   const DreamerSettings& settings, const DreamerRows& rows,
                                   const WorldModelLoss& world, const Imagination& imagined,
                                   const ImaginedWorth& worth, const Tensor& scale) {
  BehaviourLoss out;
  const CountedMean mean(rows.counts.flatten());  // of the starts
  const Tensor advantage = (worth.returns - worth.baseline) / scale;
  const Tensor chosen = (imagined.log_probs * imagined.action).sum(-1);
  const Tensor entropy = -(imagined.log_probs.exp() * imagined.log_probs).sum(-1);
  out.policy = -mean.Of(worth.weight * (chosen * advantage + settings.entropy_coef * entropy));
  out.entropy = mean.Of(entropy.detach());
  out.value = mean.Of(worth.weight * CriticLoss(worth.value_logits, worth.returns, worth.slow,
                                                settings.slow_regulariser));
  out.replay_value = ReplayValueLoss(model, slow, settings, rows, world, worth.returns);
  return out;
}

}  // namespace tetrion
