#include "tools/up/core_choice.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "lib/core/error.h"
#include "lib/core/nowait_writer.h"
#include "lib/setup/trainer_threads.h"
#include "tools/up/console.h"
#include "tools/up/core_split.h"
#include "tools/up/remembered_splits.h"
#include "tools/up/slot_plan.h"
#include "tools/up/trial_run.h"

namespace tetrion {
namespace {

void Say(const std::string& text) {
  (void)NoWaitWriter(STDOUT_FILENO).Write("--threads auto: " + text + "\n");
}

std::string Count(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string Text(const CoreSplit& split) {
  return Count(split.workers, "worker") + " an actor, " + Count(split.threads, "thread") +
         " of the learner";
}

std::string ProcessorHere() {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  return ProcessorIn(text.str());
}

// The splits that there are: with a number of workers that was given, only the threads differ.
struct SplitBounds {
  CoreSplit rule, least, most;
};

SplitBounds BoundsOf(const UpOptions& options, const RunPlan& plan, int cores) {
  SplitBounds bounds;
  bounds.rule = {plan.workers, TrainerThreads(plan.config, 0, cores)};
  bounds.most = {std::min(std::max(cores / options.actors, plan.workers),
                          MostWorkersPerActor(options, plan.most_slots)),
                 std::min(cores, kMostTrainerThreads)};
  if (options.workers > 0) bounds.least.workers = bounds.most.workers = options.workers;
  return bounds;
}

bool Within(const CoreSplit& split, const SplitBounds& bounds) {
  const auto fits = [&](int CoreSplit::* number) {
    return bounds.least.*number <= split.*number && split.*number <= bounds.most.*number;
  };
  return fits(&CoreSplit::workers) && fits(&CoreSplit::threads);
}

std::string FigureText(const TrialResult& result) {
  if (result.end == TrialResult::End::kMeasured) {
    const int wait = static_cast<int>(std::lround(100 * result.speed.ring_wait));
    return HumanNumber(result.speed.steps_per_s) + " steps trained a second, workers wait " +
           std::to_string(wait) + "% of their time for the learner";
  }
  if (result.end == TrialResult::End::kFailed) return "failed, as told above";
  return "could not be measured in " + std::to_string(kTrialLimitS) + " s";
}

// Says so where it is.
bool Interrupted(const SignalWatcher& signals) {
  if (!signals.Draining()) return false;
  Say("interrupted; the run was not begun");
  return true;
}

// What was given is wrong, and so the run would be refused, too. Another fault may be the trial's
// alone.
bool IsRefusal(int exit_code) {
  return exit_code == static_cast<int>(ExitCode::kUsage) ||
         exit_code == static_cast<int>(ExitCode::kConfig);
}

// Of the first trial. nullopt: the run may do better.
std::optional<int> HearFailure(const TrialResult& result) {
  const std::string what =
      "FAILED (exit status " + std::to_string(result.exit_code) + "): " + result.failed + " ended";
  if (IsRefusal(result.exit_code)) {
    Say("so would the run: " + what);
    return result.exit_code;
  }
  Say(what +
      "; if the run itself does not fail, the temporary folder was the cause: make room there, or "
      "set TMPDIR to another");
  return std::nullopt;
}

// Plays what the search asks for. nullopt: Best() is known, or nothing could be trained and
// `trained` is false; otherwise up's exit code.
std::optional<int> PlayTrials(const UpOptions& options, const RunPlan& plan, int cores,
                              SignalWatcher& signals, SplitSearch& search, bool& trained) {
  trained = false;
  while (const std::optional<CoreSplit> split = search.Next()) {
    const TrialResult result = PlayTrial(options, plan, *split, trained, cores, signals);
    if (Interrupted(signals)) return 0;  // as of a run that is interrupted
    Say(Text(*split) + ": " + FigureText(result));
    if (result.end == TrialResult::End::kFailed && !trained) return HearFailure(result);
    if (result.end != TrialResult::End::kMeasured && !trained) return std::nullopt;
    trained = true;
    search.Tell(result.speed);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> ChooseCores(const RunPlan& plan, int cores, SignalWatcher& signals,
                               UpOptions& options) {
  const SplitBounds bounds = BoundsOf(options, plan, cores);
  SplitSearch search(bounds.rule, bounds.least, bounds.most);
  const auto take = [&](const CoreSplit& split) {
    options.workers = split.workers;
    options.threads = split.threads;
  };
  const auto take_rule = [&](const std::string& why) {
    Say(why + "; takes what is usual without it");
    options.threads = 0;
    return std::nullopt;
  };
  if (options.replay.resident_lanes > 0)
    return take_rule("there are no workers with resident lanes");
  if (!search.HasChoice()) return take_rule("there is nothing to choose here");
  const RememberedSplits remembered(RememberedSplits::DefaultPath());
  const std::string key =
      SplitKey(options, plan.config, ProcessorHere(), cores, bounds.most.workers);
  const std::optional<CoreSplit> known = remembered.Find(key);
  if (known && Within(*known, bounds)) {
    Say("takes " + Text(*known) + ", as measured before; to measure anew remove " +
        remembered.path());
    take(*known);
    return std::nullopt;
  }
  Say("tries how to share " + Count(cores, "core") + ", some 6 s each, at most " +
      std::to_string(SplitSearch::kMostTrials) + " times; leave the machine idle; Ctrl-C ends it");
  bool trained = false;
  if (const auto code = PlayTrials(options, plan, cores, signals, search, trained)) return code;
  if (!trained) return take_rule("nothing can be measured");
  take(search.Best());
  const bool is_remembered = remembered.Remember(key, search.Best());
  Say("takes " + Text(search.Best()) + ", the fewest within 5% of the fastest" +
      (is_remembered ? "; remembered in " + remembered.path() : ""));
  return std::nullopt;
}

}  // namespace tetrion
