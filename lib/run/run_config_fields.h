#pragma once

#include <cstdint>
#include <limits>

#include "lib/run/run_config.h"

namespace tetrion {

// What a field means, and whether a run that is resumed may have another value.
struct FieldHelp {
  // Not explicit: a plain text is a field that stays for the run's life.
  constexpr FieldHelp(const char* meaning, bool changes = false)
      : text(meaning), may_change(changes) {}
  const char* text;
  bool may_change;
};
constexpr FieldHelp MayChange(const char* text) {
  return {text, true};
}

// Calls the visitor once per RunConfig field, in declaration order: the one place that gives a
// field its key, range or allowed values, unit and help. `Config` is RunConfig or const RunConfig.
// The visitor has:
//   Number(key, field, min, max, unit, help)   int, uint32, uint64, double
//   Flag(key, field, help)
//   Choice(key, field, "a|b|c", help)          std::string, one of the values
//   Text(key, field, help)                     std::string of [A-Za-z0-9_.-], 1 to 64 of them
// `help` is a FieldHelp: a text, or MayChange(text) for settings of learning that nothing which
// outlives a process depends on.
template <typename Config, typename Visitor>
void VisitRunConfig(Config& c, Visitor&& v) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  // Environment.
  v.Text("env", c.env, "environment");
  v.Text("view", c.view, "what the network sees; auto takes the environment's default");
  v.Number("seed", c.seed, std::uint64_t{0}, kAny, "", "seed of everything random in the run");
  v.Number("queue_size", c.queue_size, 1, 7, "pieces", "Tetris: pieces in the preview");
  v.Number("max_steps", c.max_steps, 0U, 1U << 30, "steps",
           MayChange("an episode is truncated here; 0: the environment's default"));
  v.Flag("iid_pieces", c.iid_pieces, "Tetris: independent pieces instead of 7-bags");
  v.Choice("illegal", c.illegal, "terminate|noop", "tetris-placement: what an illegal choice does");
  // Shapes.
  v.Number("lanes", c.lanes, 1, 4096, "lanes", "environments a worker steps together");
  v.Number("max_workers", c.max_workers, 1, kMaxWorkersOfRun, "workers",
           "replay shards, allocated at start: workers that can take part at once");
  v.Number("replay_rows", c.replay_rows, 0, 1 << 24, "rows",
           "replay rows per shard; 0: as few as the selector allows");
  v.Number("ring_rows", c.ring_rows, 2, 1 << 20, "rows", "rows of a worker's ring, a power of two");
  v.Number("commit_stride", c.commit_stride, 1, 1 << 16, "rows",
           "rows published at once; divides ring_rows");
  // Algorithm.
  v.Choice("algo", c.algo, "vtrace", "learning algorithm");
  v.Choice("network", c.network, "auto|scorer|mlp|conv", "network; auto follows the view");
  v.Number("window", c.window, 1, 1024, "steps", "length of a training window");
  v.Number("batch_windows", c.batch_windows, 1, 1024, "windows", "windows of an update");
  v.Number("discount", c.discount, 0.0, 1.0, "", MayChange("discount of future reward"));
  v.Number("lambda", c.lambda, 0.0, 1.0, "",
           MayChange("V-trace lambda: mixes step counts of the value target"));
  v.Number("rho_clip", c.rho_clip, 0.0, 1e6, "",
           MayChange("V-trace bound of the importance weight"));
  v.Number("c_clip", c.c_clip, 0.0, 1e6, "", MayChange("V-trace bound of the trace weight"));
  v.Number("value_coef", c.value_coef, 0.0, 1e3, "", MayChange("weight of the value loss"));
  v.Number("entropy_coef", c.entropy_coef, 0.0, 1e3, "", MayChange("weight of the entropy bonus"));
  v.Number("learning_rate", c.learning_rate, 0.0, 1.0, "", MayChange("Adam's step size"));
  v.Number("decay_updates", c.decay_updates, std::uint64_t{0}, kAny, "updates",
           MayChange("the learning rate falls linearly to 0 over so many updates; 0: constant"));
  v.Number("grad_clip", c.grad_clip, 0.0, 1e6, "",
           MayChange("bound of the gradient's global norm; 0: none"));
  v.Number("reuse", c.reuse, 1, 64, "updates", MayChange("updates taken from one batch"));
  v.Number("minibatches", c.minibatches, 1, 1024, "updates",
           MayChange("optimiser steps of one pass over a batch, each over a part of its lanes"));
  v.Number("max_lag", c.max_lag, 1, 1 << 20, "versions",
           MayChange("a batch is reused only while its rows are at most so old"));
  v.Flag("normalise_advantage", c.normalise_advantage,
         MayChange("advantages to mean 0 and deviation 1"));
  v.Number("ppo_clip", c.ppo_clip, 0.0, 1.0, "",
           MayChange("PPO's clip range; 0: plain policy gradient"));
  v.Choice("reward_scale", c.reward_scale, "none|symlog", "how rewards are compressed in the loss");
}

}  // namespace tetrion
