#pragma once

#include <array>

#include "lib/rl/trainer.h"
#include "lib/rl/trainer_figures.h"

namespace tetrion {

// What DreamerV3 reports of an update. The first eight losses are the parts of the total, not
// weighed, in the order in which they are computed.
inline constexpr std::array kDreamerFigures = {
    FigureInfo{"reconstruction_loss", "", "of the observations, added over their numbers"},
    FigureInfo{"reward_loss", "nats", "of the predicted rewards"},
    FigureInfo{"continue_loss", "nats", "of the predicted ends of episodes"},
    FigureInfo{"dynamics_loss", "nats", "what the prior lacks of the posterior"},
    FigureInfo{"representation_loss", "nats", "the same, training the posterior"},
    TrainerFigure("policy_loss").info(),
    FigureInfo{"value_loss", "nats", "the critic's on imagined rows", "tetrion_learner_loss",
               "value"},
    FigureInfo{"replay_value_loss", "nats", "the critic's on replayed rows"},
    TrainerFigure("loss").info(),
    TrainerFigure("entropy").info(),
    FigureInfo{"prior_entropy", "nats", "of the state that is predicted"},
    FigureInfo{"posterior_entropy", "nats", "of the state once the observation is seen"},
    FigureInfo{"return_scale", "", "what advantages are divided by"},
    FigureInfo{"imagined_return", "", "mean of the imagined returns"},
    FigureInfo{"imagined_reward", "", "mean reward of an imagined step"},
    FigureInfo{"imagined_value", "", "mean value of an imagined state"},
    TrainerFigure("grad_norm").info(),
    TrainerFigure("learning_rate").info(),
};
using DreamerFigure = FigureOf<kDreamerFigures>;
static_assert(kDreamerFigures.size() <= kMaxTrainerFigures && ExplainedOnce(kDreamerFigures));

inline double& Figure(UpdateStats& stats, DreamerFigure figure) {
  return stats.figures[figure.index()];
}
inline double Figure(const UpdateStats& stats, DreamerFigure figure) {
  return stats.figures[figure.index()];
}

}  // namespace tetrion
