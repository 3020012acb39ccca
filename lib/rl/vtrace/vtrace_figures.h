#pragma once

#include <array>

#include "lib/rl/trainer.h"
#include "lib/rl/trainer_figures.h"

namespace tetrion {

// What V-trace reports of an update.
inline constexpr std::array kVtraceFigures = {
    TrainerFigure("loss").info(),
    TrainerFigure("policy_loss").info(),
    TrainerFigure("value_loss").info(),
    TrainerFigure("entropy").info(),
    TrainerFigure("grad_norm").info(),
    TrainerFigure("explained_variance").info(),
    TrainerFigure("target_square").info(),
    TrainerFigure("lag_p50").info(),
    TrainerFigure("lag_p99").info(),
    TrainerFigure("learning_rate").info(),
    FigureInfo{"mean_rho", "ratio", "mean clipped importance weight"},
    FigureInfo{"clipped_fraction", "ratio", "share of importance weights above rho_clip"},
};
using VtraceFigure = FigureOf<kVtraceFigures>;
static_assert(kVtraceFigures.size() <= kMaxTrainerFigures && ExplainedOnce(kVtraceFigures));

inline double& Figure(UpdateStats& stats, VtraceFigure figure) {
  return stats.figures[figure.index()];
}
inline double Figure(const UpdateStats& stats, VtraceFigure figure) {
  return stats.figures[figure.index()];
}

}  // namespace tetrion
