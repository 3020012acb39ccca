#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "lib/core/setting_visitor.h"

namespace tetrion {

// What a user may set of V-trace, section [run.vtrace] of a config file. Default and declaration of
// a setting stand here and nowhere else. Every process of a run has them, also those without a
// tensor library: this header includes lib/core alone.
struct VtraceSettings {
  // What `window` and `batch_windows` of a run are unless told otherwise.
  static constexpr int kWindow = 32, kBatchWindows = 1;
  double discount = 0.997;
  double lambda = 1.0;
  double rho_clip = 1.0;
  double c_clip = 1.0;
  double value_coef = 0.5;
  double entropy_coef = 0.01;
  double learning_rate = 3e-4;
  std::string decay = "linear";
  std::uint64_t decay_updates = 0;
  double weight_decay = 0;
  double grad_clip = 0.5;  // of the policy's and of the value's gradient, each
  std::uint64_t average_updates = 0;
  int reuse = 2;
  int minibatches = 1;
  int max_lag = 64;
  bool normalise_advantage = false;
  double ppo_clip = 0.0;
  std::string reward_scale = "none";
  bool operator==(const VtraceSettings&) const = default;

  // As lib/core/setting_visitor.h describes.
  template <typename Visitor>
  void Visit(Visitor&& v);

  // What does not fit together when a batch has `batch_lanes` lanes; empty when all does.
  std::string Misfit(int batch_lanes) const {
    if (minibatches > 0 && batch_lanes % minibatches == 0) return "";
    return "minibatches = " + std::to_string(minibatches) +
           ": expected a divisor of the batch's batch_windows * lanes = " +
           std::to_string(batch_lanes);
  }
};

template <typename Visitor>
void VtraceSettings::Visit(Visitor&& v) {
  constexpr double kLeastClip = 1e-9;  // 0: no row counts (rho_clip), no later row (c_clip)
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  v.Number("discount", discount, 0.0, 1.0, "", MayChange("discount of future reward"));
  v.Number("lambda", lambda, 0.0, 1.0, "",
           MayChange("V-trace lambda: mixes step counts of the value target"));
  v.Number("rho_clip", rho_clip, kLeastClip, 1e6, "",
           MayChange("V-trace bound of the importance weight"));
  v.Number("c_clip", c_clip, kLeastClip, 1e6, "", MayChange("V-trace bound of the trace weight"));
  v.Number("value_coef", value_coef, 0.0, 1e3, "", MayChange("weight of the value loss"));
  v.Number("entropy_coef", entropy_coef, 0.0, 1e3, "", MayChange("weight of the entropy bonus"));
  v.Number("learning_rate", learning_rate, 0.0, 1.0, "", MayChange("Adam's step size"));
  v.Choice("decay", decay, "linear|harmonic",
           MayChange("how the learning rate falls: linear, to 0 after decay_updates; harmonic, to "
                     "half after so many, a third after twice so many, for ever"));
  v.Number("decay_updates", decay_updates, std::uint64_t{0}, kAny, "updates",
           MayChange("how fast the learning rate falls; 0: it is constant"));
  v.Number("weight_decay", weight_decay, 0.0, 10.0, "",
           MayChange("share of the weights that an update takes away, times the learning rate"));
  v.Number("grad_clip", grad_clip, 0.0, 1e6, "",
           MayChange("bound of the gradient's norm, of the policy's parameters and of the value's, "
                     "each; 0: none"));
  v.Number(
      "average_updates", average_updates, std::uint64_t{0}, std::uint64_t{1} << 40, "updates",
      MayChange("checkpoints play with the mean of the weights over about so many last updates, at "
                "most an eighth of all; 0: with the last weights"));
  v.Number("reuse", reuse, 1, 64, "updates", MayChange("updates taken from one batch"));
  v.Number("minibatches", minibatches, 1, 1024, "updates",
           MayChange("optimiser steps of one pass over a batch, each over a part of its lanes"));
  v.Number("max_lag", max_lag, 1, 1 << 20, "versions",
           MayChange("a batch is reused only while its rows are at most so old"));
  v.Flag("normalise_advantage", normalise_advantage,
         MayChange("advantages to mean 0 and deviation 1"));
  v.Number("ppo_clip", ppo_clip, 0.0, 1.0, "",
           MayChange("PPO's clip range; 0: plain policy gradient"));
  v.Choice("reward_scale", reward_scale, "none|symlog", "how rewards are compressed in the loss");
}

}  // namespace tetrion
