#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "lib/core/figure.h"
#include "lib/metrics/catalog_table.h"

// Every figure of the status page and of metrics.jsonl that a service makes, declared once:
// heartbeats, /status, console, plot and docs/metrics.md follow. A trainer declares its own
// (lib/rl/trainer_figures.h), which stand among the learner's.
namespace tetrion {

// Of the run, by the coordinator. "a.b": the key b of the object a.
inline constexpr std::array kRunFigures = {
    FigureInfo{"time", "seconds", "Unix time of this status"},
    FigureInfo{"elapsed_s", "seconds", "running time of this start"},
    FigureInfo{"epoch", "", "starts of the run's coordinator"},
    FigureInfo{"actors", "sessions", "actors alive"},
    FigureInfo{"learner_up", "bool", "a learner is alive"},
    FigureInfo{"env_steps", "steps", "environment steps of the run"},
    FigureInfo{"env_steps_per_s", "steps/s", "their present rate"},
    FigureInfo{"episodes", "episodes", "accounted episodes"},
    FigureInfo{"episodes_per_s", "episodes/s", "their present rate"},
    FigureInfo{"return_mean", "reward", "mean return of the last 100 accounted episodes"},
    FigureInfo{"return_best", "reward", "best return of an accounted episode"},
    FigureInfo{"lines_mean", "lines", "mean lines of the last 100 accounted episodes"},
    FigureInfo{"length_mean", "steps", "mean length of the last 100 accounted episodes"},
    FigureInfo{"stop_after.seconds", "seconds", "--stop-after as a time; 0: none"},
    FigureInfo{"stop_after.steps", "steps", "--stop-after as steps; 0: none"},
    FigureInfo{"stop_after.progress", "ratio", "how much of it is done"},
    FigureInfo{"tokens.issued", "tokens", "handed to actors"},
    FigureInfo{"tokens.done", "tokens", "whose episode is accounted"},
    FigureInfo{"tokens.outstanding", "tokens", "granted and not yet done"},
    FigureInfo{"tokens.free_again", "tokens", "given back and not yet granted again"},
    FigureInfo{"tokens.duplicates", "reports", "of tokens that were done already"},
    FigureInfo{"tokens.refused", "reports", "of tokens that the session did not hold"},
    FigureInfo{"tokens.abandoned", "tokens", "given back by actors"},
    FigureInfo{"tokens.freed", "tokens", "taken from sessions that ended"},
};

// Of the actors' heartbeats; the status shows sums over the live actors.
inline constexpr std::array kActorFigures = {
    FigureInfo{"wait_token_s", "seconds", "workers waited for tokens"},
    FigureInfo{"wait_ring_s", "seconds", "workers waited for space in their rings"},
    FigureInfo{"wait_weights_s", "seconds", "workers waited for weights"},
    FigureInfo{"wait_answer_s", "seconds", "workers waited for the learner's answers"},
    FigureInfo{"workers", "loops", "lane loops"},
    FigureInfo{"rows", "rows", "rows completed"},
    FigureInfo{"episodes", "episodes", "episodes announced"},
    FigureInfo{"not_finite_rows", "rows", "rows on which the policy failed"},
    FigureInfo{"weights_refused", "versions", "weights that workers could not use"},
    FigureInfo{"acknowledged", "episodes", "whose report was acknowledged"},
    FigureInfo{"fenced", "episodes", "whose report was refused, or of an earlier session"},
};

// Of the learner's heartbeat, beside its trainer's.
inline constexpr std::array kLearnerFigures = {
    FigureInfo{"updates", "updates", "optimiser steps, those before a resume included"},
    FigureInfo{.name = "updates_per_s",
               .unit = "updates/s",
               .help = "their present rate",
               .of_the_present = true},
    FigureInfo{
        .name = "batches", .unit = "batches", .metric = "tetrion_learner_weights_published_total"},
    FigureInfo{"steps_trained", "steps", "environment steps of those batches"},
    FigureInfo{.name = "skipped_updates",
               .unit = "updates",
               .metric = "tetrion_learner_skipped_updates_total"},
    FigureInfo{
        .name = "policy_version", .unit = "version", .metric = "tetrion_learner_policy_version"},
    FigureInfo{.name = "replay_rows",
               .unit = "lane rows",
               .help = "that can be sampled",
               .of_the_present = true},
    FigureInfo{.name = "replay_capacity_rows",
               .unit = "lane rows",
               .help = "of the shards with rows, at least of those of the attached rings",
               .of_the_present = true},
    FigureInfo{.name = "rings",
               .unit = "rings",
               .help = "attached",
               .metric = "tetrion_learner_rings",
               .label = "attached",
               .of_the_present = true},
    FigureInfo{"rows_ingested", "rows", "copied into the replay"},
    FigureInfo{.name = "rows_lost", .unit = "rows", .metric = "tetrion_learner_rows_lost_total"},
    FigureInfo{.name = "streams",
               .unit = "streams",
               .metric = "tetrion_learner_streams",
               .of_the_present = true},
    FigureInfo{.name = "remote_streams",
               .unit = "streams",
               .help = "workers of other hosts",
               .of_the_present = true},
    FigureInfo{
        .name = "rows_answered", .unit = "rows", .metric = "tetrion_learner_inference_rows_total"},
    FigureInfo{.name = "limiter_wait_s",
               .unit = "seconds",
               .metric = "tetrion_replay_lease_wait_seconds_total"},
    FigureInfo{.name = "reader_wait_s",
               .unit = "seconds",
               .metric = "tetrion_replay_reader_wait_seconds_total"},
    FigureInfo{"checkpoints", "files", "checkpoints written"},
    FigureInfo{"older_checkpoint", "bool",
               "this start went on from a checkpoint that was not the newest, which could not be "
               "used: the learner's log says why"},
    FigureInfo{.name = "checkpoint_age_s",
               .unit = "seconds",
               .metric = "tetrion_learner_checkpoint_age_seconds",
               .of_the_present = true},
};

static_assert(ExplainedOnce(kRunFigures) && ExplainedOnce(kActorFigures));
static_assert(ExplainedOnce(kLearnerFigures));

using RunFigure = FigureOf<kRunFigures>;
using ActorFigure = FigureOf<kActorFigures>;
using LearnerFigure = FigureOf<kLearnerFigures>;

// Whether the catalog has every metric that these figures name; for static_assert.
consteval bool NameMetrics(std::span<const FigureInfo> figures) {
  return std::ranges::all_of(figures, [](const FigureInfo& figure) {
    return figure.metric.empty() || std::ranges::any_of(kCatalog, [&](const MetricInfo& info) {
             return info.name == figure.metric;
           });
  });
}
static_assert(NameMetrics(kLearnerFigures));

// Whether these figures of a trainer can stand among the learner's; for static_assert.
consteval bool FitBesideTheLearners(std::span<const FigureInfo> figures) {
  return std::ranges::none_of(figures, [](const FigureInfo& figure) {
    return std::ranges::any_of(kLearnerFigures,
                               [&](const FigureInfo& other) { return other.name == figure.name; });
  });
}

}  // namespace tetrion
