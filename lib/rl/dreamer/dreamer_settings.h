#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "lib/core/setting_visitor.h"

namespace tetrion {

// What a user may set of DreamerV3, section [run.dreamer] of a config file. Default and declaration
// of a setting stand here and nowhere else. Every process of a run has them, also those without a
// tensor library: this header includes lib/core alone.
struct DreamerSettings {
  // What `window` and `batch_windows` of a run are unless told otherwise.
  static constexpr int kWindow = 64, kBatchWindows = 16;

  std::string size = "nano";
  std::string norm = "rms";
  double unimix = 0.01;        // of prior and posterior
  double actor_unimix = 0.01;  // of the actor
  int horizon = 15;            // H
  // Replay.
  double train_ratio = 32.0;
  double online_share = 0.25;
  // World model.
  double continue_horizon = 333.0;
  std::string discount_in = "head";
  double free_nats = 1.0;
  double reconstruction_scale = 1.0;
  double reward_loss_scale = 1.0;
  double continue_loss_scale = 1.0;
  double dynamics_scale = 1.0;
  double representation_scale = 0.1;
  // Actor and critic.
  double lambda = 0.95;
  double entropy_coef = 3e-4;
  std::string start_weight = "head";
  std::string return_critic = "online";
  double slow_regulariser = 1.0;
  double slow_rate = 0.02;
  std::string slow_moves = "after";
  double replay_value_scale = 0.3;
  double return_rate = 0.01;
  // Optimiser.
  double learning_rate = 4e-5;
  std::uint64_t warmup_updates = 1000;
  double agc = 0.3;
  double agc_least_norm = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-20;
  bool operator==(const DreamerSettings&) const = default;

  // As lib/core/setting_visitor.h describes.
  template <typename Visitor>
  void Visit(Visitor&& v);

  // What does not fit together when a batch's windows train `window` rows of a replay whose lanes
  // keep `capacity_rows` rows; empty when all does.
  std::string Misfit(std::uint64_t window, std::uint64_t capacity_rows) const {
    if (window < 2) {
      return "window = " + std::to_string(window) +
             ": expected at least 2 rows, of which the later ones bootstrap the first";
    }
    if (window + 1 > capacity_rows) {
      return "window = " + std::to_string(window) + ": expected at most the replay's " +
             std::to_string(capacity_rows) + " rows less the context row";
    }
    return "";
  }
};

template <typename Visitor>
void DreamerSettings::Visit(Visitor&& v) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  constexpr double kMostUnimix = 0.9;      // more is hardly a distribution of the model's
  constexpr double kMostBeta = 0.99999;    // 1: nothing new is ever taken in
  constexpr double kLeast = 1e-30;         // of divisors: a float holds it, and its inverse
  constexpr double kLeastEpsilon = 1e-20;  // gradients below about 1e-22 have no square in a float
  v.Choice("size", size, "nano|1m|12m|25m|50m|100m|200m|400m", "widths of the model");
  v.Choice("norm", norm, "rms|layer", "norm of hidden layers: RMSNorm, or LayerNorm with a shift");
  v.Number("unimix", unimix, 0.0, kMostUnimix, "",
           MayChange("share of the uniform distribution in the states of prior and posterior"));
  v.Number("actor_unimix", actor_unimix, 0.0, kMostUnimix, "",
           MayChange("share of the uniform distribution over legal actions in the actor's"));
  v.Number("horizon", horizon, 1, 1024, "steps", MayChange("steps imagined from every row"));
  v.Number("train_ratio", train_ratio, 1e-3, 1e6, "",
           MayChange("rows trained on for each row that a lane brings; waits of trainer and ingest "
                     "keep it"));
  v.Number(
      "online_share", online_share, 0.0, 1.0, "",
      MayChange("most of the trained windows that are fresh ones, each taken at most once; the "
                "others are drawn from the whole replay"));
  v.Number("continue_horizon", continue_horizon, 1.0, 1e9, "steps",
           "future reward is discounted by 1 - 1 / continue_horizon a step");
  v.Choice(
      "discount_in", discount_in, "head|returns",
      "where the discount is: head, the continue head predicts chance times discount; returns, "
      "it predicts the chance, and returns and weights multiply the discount");
  v.Number("free_nats", free_nats, 0.0, 1e6, "nats", MayChange("least value of either KL loss"));
  v.Number("reconstruction_scale", reconstruction_scale, 0.0, 1e6, "",
           MayChange("weight of the reconstruction loss"));
  v.Number("reward_loss_scale", reward_loss_scale, 0.0, 1e6, "",
           MayChange("weight of the loss of the predicted rewards"));
  v.Number("continue_loss_scale", continue_loss_scale, 0.0, 1e6, "",
           MayChange("weight of the loss of the predicted ends of episodes"));
  v.Number("dynamics_scale", dynamics_scale, 0.0, 1e6, "",
           MayChange("weight of the KL loss that trains the prior"));
  v.Number("representation_scale", representation_scale, 0.0, 1e6, "",
           MayChange("weight of the KL loss that trains the posterior"));
  v.Number("lambda", lambda, 0.0, 1.0, "", MayChange("mixes step counts of the returns"));
  v.Number("entropy_coef", entropy_coef, 0.0, 1e3, "", MayChange("weight of the entropy bonus"));
  v.Choice("start_weight", start_weight, "head|data",
           MayChange("how much a start of imagination counts: head, as the continue head says; "
                     "data, 0 where the row is terminal, else 1"));
  v.Choice("return_critic", return_critic, "online|slow",
           MayChange("whose values imagined returns and advantages take: the critic that learns, "
                     "or the slow one"));
  v.Number("slow_regulariser", slow_regulariser, 0.0, 1e3, "",
           MayChange("weight of the slow critic's values in the value loss"));
  v.Number("slow_rate", slow_rate, 0.0, 1.0, "",
           MayChange("share of the critic that an update moves into the slow critic"));
  v.Choice("slow_moves", slow_moves, "after|before",
           MayChange("the slow critic follows the parameters after an update's step, or those "
                     "before it"));
  v.Number("replay_value_scale", replay_value_scale, 0.0, 1e3, "",
           MayChange("weight of the value loss on replayed rows"));
  v.Number("return_rate", return_rate, 0.0, 1.0, "",
           MayChange("share of a batch's percentiles in the scale of returns"));
  v.Number("learning_rate", learning_rate, 0.0, 1.0, "", MayChange("LaProp's step size"));
  v.Number("warmup_updates", warmup_updates, std::uint64_t{0}, kAny, "updates",
           MayChange("the learning rate rises linearly from 0 over so many updates"));
  v.Number("agc", agc, 0.0, 1e6, "",
           MayChange("bound of a tensor's gradient, as a share of its parameters' norm; 0: none"));
  v.Number("agc_least_norm", agc_least_norm, kLeast, 1e6, "",
           MayChange("least norm of a tensor's parameters in that bound"));
  v.Number("beta1", beta1, 0.0, kMostBeta, "", MayChange("LaProp: decay of the momentum"));
  v.Number("beta2", beta2, 0.0, kMostBeta, "",
           MayChange("LaProp: decay of the squares that normalise a gradient"));
  v.Number("epsilon", epsilon, kLeastEpsilon, 1.0, "",
           MayChange("LaProp: added to the root of the squares"));
}

// Discount of future reward a step: the part that the continue head predicts, and what multiplies
// its prediction.
struct Discount {
  double in_head = 1, beside_head = 1;
  double Whole() const { return in_head * beside_head; }
};
inline Discount DiscountOf(const DreamerSettings& settings) {
  const double whole = 1.0 - 1.0 / settings.continue_horizon;
  if (settings.discount_in == "head") return {.in_head = whole};
  return {.beside_head = whole};
}

}  // namespace tetrion
