#include "lib/rl/dreamer/dreamer_terms.h"

#include <cmath>
#include <vector>

#include "lib/core/check.h"
#include "lib/rl/dreamer/behaviour_loss.h"
#include "lib/rl/dreamer/counted_mean.h"
#include "lib/rl/dreamer/world_model_loss.h"
#include "lib/rl/stage_timer.h"

namespace tetrion {
namespace {

using torch::Tensor;

static_assert([] {
  for (std::size_t i = 0; i < kDreamerNumbers.size(); ++i) {
    if ((kDreamerNumbers[i].part != nullptr) != (i < kMustBeFinite)) return false;
  }
  return true;
}());

// What each of the numbers counts in the total: 0 for those that are no loss.
std::array<double, kDreamerNumbers.size()> Weights(const DreamerSettings& settings) {
  return {settings.reconstruction_scale,
          settings.reward_loss_scale,
          settings.continue_loss_scale,
          settings.dynamics_scale,
          settings.representation_scale,
          /*imagined_return=*/0.0,
          /*policy_loss=*/1.0,
          /*value_loss=*/1.0,
          settings.replay_value_scale};
}

Tensor EntropyOf(const Tensor& log_probs) {
  return -(log_probs.exp() * log_probs).sum({-2, -1});
}

}  // namespace

DreamerTerms ComputeDreamerTerms(const DreamerModel& model, const DreamerHead& slow,
                                 const DreamerSettings& settings, const DreamerRows& rows,
                                 const OneHotSampler& sample, const ReturnScaler& scale) {
  DreamerTerms terms;
  StageTimer timer;
  const WorldModelLoss world = ComputeWorldModelLoss(model, settings, rows, sample);
  timer.AddTo(terms.observe_s);
  Imagination imagined = Imagine(model, world.deter.flatten(0, 1), world.stoch.flatten(0, 1),
                                 settings.horizon, sample);
  if (settings.start_weight == "data") imagined.start_alive = rows.alive.flatten();
  timer.AddTo(terms.imagine_s);
  const ImaginedWorth worth = ComputeImaginedWorth(model, slow, settings, imagined);
  const Tensor scaled_by = scale(worth.returns);
  const BehaviourLoss behaviour =
      ComputeBehaviourLoss(model, slow, settings, rows, world, imagined, worth, scaled_by);
  const CountedMean rows_mean(rows.counts), starts_mean(rows.counts.flatten());
  std::vector<Tensor> numbers = {
      world.reconstruction, world.reward,         world.cont,
      world.dynamics,       world.representation, starts_mean.Of(worth.returns),
      behaviour.policy,     behaviour.value,      behaviour.replay_value};
  const auto weights = Weights(settings);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (weights[i] == 0.0) continue;
    const Tensor weighed = numbers[i] * weights[i];
    terms.total = terms.total.defined() ? terms.total + weighed : weighed;
  }
  const torch::NoGradGuard no_gradient;
  for (const Tensor& number :
       {rows_mean.Of(EntropyOf(world.prior)), rows_mean.Of(EntropyOf(world.posterior)),
        starts_mean.Of(worth.reward), starts_mean.Of(worth.value), behaviour.entropy, scaled_by}) {
    numbers.push_back(number);
  }
  TETRION_CHECK(numbers.size() == kDreamerNumbers.size(), "a number for each that is declared");
  terms.numbers = torch::stack(numbers).detach();
  terms.deter = world.deter.detach().to(torch::kBFloat16).contiguous();
  terms.stoch = world.stoch.detach().argmax(-1).to(torch::kUInt8).contiguous();
  return terms;
}

std::string ReadDreamerNumbers(const DreamerSettings& settings, std::span<const float> numbers,
                               UpdateStats& stats) {
  const auto weights = Weights(settings);
  for (std::size_t i = 0; i < kDreamerNumbers.size(); ++i) {
    const double number = numbers[i];
    if (kDreamerNumbers[i].part != nullptr && !std::isfinite(number)) {
      return kDreamerNumbers[i].part;
    }
    Figure(stats, kDreamerNumbers[i].figure) = number;
    if (weights[i] != 0.0) Figure(stats, "loss") += weights[i] * number;
  }
  return "";
}

}  // namespace tetrion
