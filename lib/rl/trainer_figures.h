#pragma once

#include <array>
#include <optional>
#include <span>

#include "lib/core/figure.h"

namespace tetrion {

// Figures that trainers share: what learner, console and plot look for among a trainer's own. A
// trainer takes into its table those that it makes, and adds others of its own.
inline constexpr std::array kTrainerFigures = {
    FigureInfo{"loss", "", "total loss of the last update", "tetrion_learner_loss", "total"},
    FigureInfo{"policy_loss", "", "its policy part", "tetrion_learner_loss", "policy"},
    FigureInfo{"value_loss", "", "its value part, half the mean square error",
               "tetrion_learner_loss", "value"},
    FigureInfo{.name = "entropy", .unit = "nats", .metric = "tetrion_learner_entropy"},
    FigureInfo{.name = "grad_norm", .unit = "", .metric = "tetrion_learner_grad_norm"},
    FigureInfo{.name = "explained_variance",
               .unit = "ratio",
               .metric = "tetrion_learner_explained_variance"},
    FigureInfo{.name = "target_square",
               .unit = "",
               .help = "mean square of the value targets",
               .in_status = false},
    FigureInfo{"lag_p50", "versions", "median policy lag of the batch's rows"},
    FigureInfo{"lag_p99", "versions", "99th percentile of it"},
    FigureInfo{"learning_rate", "", "of the last update"},
};
using TrainerFigure = FigureOf<kTrainerFigures>;

// Its place in a trainer's table; nullopt: this trainer does not make it.
inline std::optional<std::size_t> PlaceOf(TrainerFigure figure, std::span<const FigureInfo> table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == figure.info().name) return i;
  }
  return std::nullopt;
}

}  // namespace tetrion
