#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/rl/trainer.h"

namespace tetrion::learner {

// What a policy's entropy can be, in nats.
struct EntropyRange {
  double least = 0;
  double largest = 0;
};

// Looks at every update for signs that training goes wrong, and says so in the log; ends it when
// nothing can be learnt any more. Each warning comes at most once a minute. One thread.
class TrainingWatch {
 public:
  // Batches in a row of which no update could be taken, after which training ends.
  static constexpr int kMostSkippedInARow = 100;
  // Batches over which entropy and explained variance are averaged before they are judged.
  static constexpr int kAveraged = 200;
  // Share of the range of possible entropies below which the policy counts as decided for good.
  static constexpr double kLeastEntropy = 0.01;
  // Mean square error of the values, as a share of their targets' mean square, from which a
  // negative explained variance counts: targets that hardly differ are never explained.
  static constexpr double kLargeError = 0.01;
  static constexpr std::int64_t kWarnEveryNs = 60 * kNanosPerSecond;

  // `figures`: Trainer::Figures; what the trainer does not report is not judged.
  TrainingWatch(const EntropyRange& entropy, std::span<const FigureInfo> figures,
                const Clock& clock);

  // Once per batch. Throws Error(kConfig) after kMostSkippedInARow batches without an update: says
  // what was not finite first and how to go on.
  void Look(const UpdateStats& stats);

 private:
  // One warning and when it may come again.
  class Warning {
   public:
    bool Due(const Clock& clock);

   private:
    std::int64_t next_ns_ = 0;
  };
  void LookAtSkipped(const UpdateStats& stats);

  const Clock& clock_;
  const EntropyRange range_;
  const std::optional<std::size_t> entropy_at_, explained_at_, target_square_at_;
  const std::optional<std::size_t> half_error_at_;  // half the values' mean square error
  int skipped_in_a_row_ = 0;
  std::uint64_t skipped_ = 0;
  std::string first_problem_;  // of the batches in a row
  // Sums since the last look at them.
  int averaged_ = 0;
  int unexplained_ = 0;  // batches with a negative explained variance
  double entropy_ = 0, error_square_ = 0, target_square_ = 0;
  Warning skip_, low_entropy_, bad_value_;
};

}  // namespace tetrion::learner
