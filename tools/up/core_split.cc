#include "tools/up/core_split.h"

#include <algorithm>
#include <tuple>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr double kAsGood = 1.0 - SplitSearch::kTie;

}  // namespace

SplitSearch::SplitSearch(CoreSplit rule, CoreSplit least, CoreSplit most)
    : rule_(rule), least_(least), most_(most) {
  TETRION_CHECK(least.workers <= rule.workers && rule.workers <= most.workers &&
                    least.threads <= rule.threads && rule.threads <= most.threads,
                "the rule's split is out of bounds");
}

std::optional<CoreSplit> SplitSearch::Next() const {
  if (trials_.size() == kMostTrials) return std::nullopt;
  if (trials_.empty()) return rule_;
  CoreSplit at = rule_;
  for (int CoreSplit::* number : {&CoreSplit::workers, &CoreSplit::threads}) {
    if (const auto next = NextAlong(number, at)) return next;
  }
  return std::nullopt;
}

// Moves `at` along one of its numbers as far as the trials say. Returns the split on that way that
// has had none.
std::optional<CoreSplit> SplitSearch::NextAlong(int CoreSplit::* number, CoreSplit& at) const {
  const CoreSplit start = at;
  for (const bool up : {true, false}) {
    while (true) {
      const CoreSplit next = up ? More(at, number) : Fewer(at, number);
      if (next == at) break;
      const Trial* trial = Find(next);
      if (trial == nullptr) return next;
      const double now = trial->speed.steps_per_s, before = Find(at)->speed.steps_per_s;
      if (up ? kAsGood * now <= before : now < kAsGood * before) break;
      at = next;
    }
    if (!(at == start)) break;
  }
  return std::nullopt;
}

CoreSplit SplitSearch::More(const CoreSplit& at, int CoreSplit::* number) const {
  CoreSplit more = at;
  const bool is_enough = number == &CoreSplit::workers && Find(at)->speed.ring_wait > kWaits;
  if (!is_enough) more.*number = std::min(2 * at.*number, most_.*number);
  return more;
}

CoreSplit SplitSearch::Fewer(const CoreSplit& at, int CoreSplit::* number) const {
  CoreSplit fewer = at;
  fewer.*number = std::max(at.*number / 2, least_.*number);
  return fewer;
}

void SplitSearch::Tell(const TrainingSpeed& speed) {
  const std::optional<CoreSplit> split = Next();
  TETRION_CHECK(split && speed.steps_per_s >= 0, "no trial is due");
  trials_.push_back({*split, speed});
}

CoreSplit SplitSearch::Best() const {
  TETRION_CHECK(!trials_.empty(), "no trial was made");
  double fastest = 0;
  for (const Trial& trial : trials_) fastest = std::max(fastest, trial.speed.steps_per_s);
  const Trial* best = nullptr;
  for (const Trial& trial : trials_) {
    if (trial.speed.steps_per_s < kAsGood * fastest) continue;
    const auto size = [](const CoreSplit& split) { return std::tie(split.workers, split.threads); };
    if (best == nullptr || size(trial.split) < size(best->split)) best = &trial;
  }
  return best->split;
}

const SplitSearch::Trial* SplitSearch::Find(const CoreSplit& split) const {
  const auto trial = std::ranges::find(trials_, split, &Trial::split);
  return trial == trials_.end() ? nullptr : &*trial;
}

}  // namespace tetrion
