#pragma once

#include <optional>
#include <vector>

#include "tools/up/training_rate.h"

namespace tetrion {

// How cores are shared between those that play and the one that trains.
struct CoreSplit {
  int workers = 1;  // of each actor
  int threads = 1;  // of the learner
  bool operator==(const CoreSplit&) const = default;
};

// Looks for the split that trains fastest, by trials: the caller plays Next(), tells how fast it
// trained, and so on until there is none. Begins with the rule's split. First the workers move,
// then the threads: twice as many while that gains more than kTie, or else half as many while it
// loses no more. So two or three trials on two cores, five or so on many.
//
// Speed of training counts, not of playing: workers that are faster than the learner only make its
// rows older (docs/decisions/0024-few-workers-and-short-rings.md). So there are no more of them
// where those that there are wait for space in their rings for more than kWaits of their time,
// although threads in plenty may take time from other programs, and Best() is, of all splits within
// kTie of the fastest, the one with the fewest workers, and of those with the fewest threads. One
// thread.
class SplitSearch {
 public:
  static constexpr double kTie = 0.05;  // trials of one split differ by about as much
  static constexpr double kWaits = 0.2;
  static constexpr int kMostTrials = 8;  // at some 6 s each that is what a user waits for

  // `rule` lies between `least` and `most`.
  SplitSearch(CoreSplit rule, CoreSplit least, CoreSplit most);

  // Whether there is any split but the rule's.
  bool HasChoice() const { return !(least_ == most_); }
  // nullopt: Best() is known.
  std::optional<CoreSplit> Next() const;
  // Of the split that Next() names; 0 steps: it did not train.
  void Tell(const TrainingSpeed& speed);
  // For after the first trial.
  CoreSplit Best() const;

 private:
  struct Trial {
    CoreSplit split;
    TrainingSpeed speed;
  };

  std::optional<CoreSplit> NextAlong(int CoreSplit::* number, CoreSplit& at) const;
  CoreSplit More(const CoreSplit& at, int CoreSplit::* number) const;
  CoreSplit Fewer(const CoreSplit& at, int CoreSplit::* number) const;
  const Trial* Find(const CoreSplit& split) const;

  const CoreSplit rule_, least_, most_;
  std::vector<Trial> trials_;
};

}  // namespace tetrion
