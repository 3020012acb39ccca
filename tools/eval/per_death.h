#pragma once

namespace tetrion {

// How much is reached until a game ends by death, when other games are cut or still run: all that
// was reached, in every game, over the number of deaths. This is the maximum-likelihood estimate
// when what a life reaches is exponential, as it is where every step has the same risk.
struct PerDeath {
  double estimate = 0;  // infinite without a death
  // 95% interval, exact for exponential lives: 2 T / chi2(0.975, 2 D) to 2 T / chi2(0.025, 2 D) of
  // T in all and D deaths when the play stopped at the last death; when it stopped for another
  // reason the lower end has 2 D + 2 degrees of freedom. Without a death only `low` is finite.
  double low = 0, high = 0;
};

// `total` was reached up to the moment in which play stopped, unfinished games included.
PerDeath PerDeathOf(double total, int deaths, bool stopped_at_death);

// The quantile of the chi-squared distribution with 2 * `half_freedom` degrees of freedom, by
// bisection of its Poisson sum; relative error below 1e-9.
double ChiSquaredQuantile(double probability, int half_freedom);

}  // namespace tetrion
