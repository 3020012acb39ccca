#include "services/learner/training_watch.h"

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/rl/trainer_figures.h"

namespace tetrion::learner {
namespace {

double ValueAt(const UpdateStats& stats, std::optional<std::size_t> place, double missing) {
  return place ? stats.figures[*place] : missing;
}

}  // namespace

bool TrainingWatch::Warning::Due(const Clock& clock) {
  const std::int64_t now_ns = clock.NowNs();
  if (next_ns_ != 0 && now_ns < next_ns_) return false;
  next_ns_ = now_ns + kWarnEveryNs;
  return true;
}

TrainingWatch::TrainingWatch(const EntropyRange& entropy, std::span<const FigureInfo> figures,
                             const Clock& clock)
    : clock_(clock),
      range_(entropy),
      entropy_at_(PlaceOf("entropy", figures)),
      explained_at_(PlaceOf("explained_variance", figures)),
      target_square_at_(PlaceOf("target_square", figures)),
      // A trainer without the targets' square has a value loss in nats.
      half_error_at_(target_square_at_ ? PlaceOf("value_loss", figures) : std::nullopt) {}

void TrainingWatch::Look(const UpdateStats& stats) {
  LookAtSkipped(stats);
  if (stats.updates == 0) return;  // its figures are of an update that was not taken
  entropy_ += ValueAt(stats, entropy_at_, /*missing=*/range_.largest);
  unexplained_ += ValueAt(stats, explained_at_, /*missing=*/0) < 0 ? 1 : 0;
  error_square_ += 2 * ValueAt(stats, half_error_at_, /*missing=*/0);
  target_square_ += ValueAt(stats, target_square_at_, /*missing=*/0);
  if (++averaged_ < kAveraged) return;
  const double entropy = entropy_ / averaged_;
  const int unexplained = unexplained_;
  const bool large_error = error_square_ > kLargeError * target_square_;
  averaged_ = unexplained_ = 0;
  entropy_ = error_square_ = target_square_ = 0;
  const bool decided = entropy - range_.least < kLeastEntropy * (range_.largest - range_.least);
  if (decided && low_entropy_.Due(clock_)) {
    log::warn(
        "the policy hardly tries anything else: its entropy is {:.4f} nats, under {:g}% of the way "
        "from the least possible {:.4f} to the largest {:.2f}; a higher --entropy-coef keeps it "
        "trying",
        entropy, 100 * kLeastEntropy, range_.least, range_.largest);
  }
  if (2 * unexplained > kAveraged && large_error && bad_value_.Due(clock_)) {
    log::warn(
        "the value network predicts worse than a constant would: explained variance below 0 in {} "
        "of {} batches; a lower --learning-rate or --discount helps when this goes on",
        unexplained, kAveraged);
  }
}

void TrainingWatch::LookAtSkipped(const UpdateStats& stats) {
  if (stats.updates == 0 && stats.skipped == 0) return;  // no row of it was to be trained
  if (stats.skipped == 0) {
    skipped_in_a_row_ = 0;
    return;
  }
  skipped_ += static_cast<std::uint64_t>(stats.skipped);
  if (skip_.Due(clock_)) {
    log::warn("an update was skipped: {} is not a finite number; {} skipped so far", stats.problem,
              skipped_);
  }
  if (stats.updates > 0) {
    skipped_in_a_row_ = 0;
    return;
  }
  if (skipped_in_a_row_++ == 0) first_problem_ = stats.problem;
  if (skipped_in_a_row_ < kMostSkippedInARow) return;
  throw Error(ExitCode::kConfig,
              "training has diverged: no update of the last " + std::to_string(skipped_in_a_row_) +
                  " batches could be taken; first " + first_problem_ +
                  " was not a finite number. Begin anew with the best weights and a lower "
                  "--learning-rate or a tighter bound of the gradient (--grad-clip; with --algo "
                  "dreamer --agc): ./tetrion up --init-from RUN/best; with --resume RUN the newest "
                  "ones are trained on, which may end the same way");
}

}  // namespace tetrion::learner
