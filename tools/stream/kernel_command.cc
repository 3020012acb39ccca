#include <memory>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/policy/random_policy.h"
#include "lib/region_v2/compat_kernel.h"
#include "tools/stream/commands.h"
#include "tools/stream/latency.h"
#include "tools/stream/stream_end.h"
#include "tools/stream/stream_policy.h"
#include "tools/stream/truncation_guard.h"

namespace tetrion {
namespace {

constexpr std::int64_t kStepsPerLook = 16;

// The policy behind --policy, null for linear: before the region is touched, so that a wrong name
// leaves nothing behind.
std::unique_ptr<Policy> LoadPolicy(const StreamOptions& options) {
  if (options.policy == "linear") return nullptr;
  if (options.policy == "random") {
    return std::make_unique<RandomPolicy>(options.seed, ActionSpec{.count = 2});
  }
  return LoadCheckpointPolicy(options.runs_dir,
                              options.policy.substr(options.policy.find(':') + 1));
}

std::unique_ptr<StreamPolicy> MakePolicy(const StreamOptions& options, const CompatKernel& kernel,
                                         std::unique_ptr<Policy> loaded) {
  if (loaded == nullptr) return std::make_unique<LinearStreamPolicy>(kernel, options.weights);
  return std::make_unique<PolicyStreamPolicy>(std::move(loaded));
}

// Plays episodes over one kernel end and keeps the account.
class Player {
 public:
  Player(const StreamOptions& options, const std::atomic<bool>& stop, CompatKernel& kernel,
         std::unique_ptr<Policy> loaded)
      : options_(options),
        stop_(stop),
        kernel_(kernel),
        policy_(MakePolicy(options, kernel, std::move(loaded))) {}

  // Plays until the options' bounds (kOk), a signal (kStopped) or anything else that ends the
  // episode.
  StreamOutcome Play() {
    const std::int64_t begin_ns = MonotonicClock::Get().NowNs();
    StreamOutcome outcome;
    while (outcome.result == CompatResult::kOk && !Finished()) {
      if (stop_.load(std::memory_order_acquire)) {
        outcome.result = CompatResult::kStopped;
      } else {
        outcome = PlayEpisode();
      }
    }
    played_ns_ += MonotonicClock::Get().NowNs() - begin_ns;
    return outcome;
  }
  std::int64_t steps() const { return steps_; }

  void Report(JsonObject& line) const {
    const double seconds = static_cast<double>(played_ns_) / 1e9;
    AddNumber(line, "mean_return",
              episodes_ == 0 ? 0 : return_sum_ / static_cast<double>(episodes_));
    AddNumber(line, "steps_per_s", seconds > 0 ? static_cast<double>(steps_) / seconds : 0);
    line.Add("p50_ns", round_trip_.Quantile(0.50)).Add("p99_ns", round_trip_.Quantile(0.99));
    line.Add("streamed", streamed_);
  }

 private:
  bool Finished() const {
    return (options_.episodes > 0 && episodes_ >= options_.episodes) ||
           (options_.steps > 0 && steps_ >= options_.steps);
  }

  StreamOutcome Failed(CompatResult result) const {
    return {result, kernel_.problem(), kernel_.error_result()};
  }

  StreamOutcome PlayEpisode() {
    CompatObs obs;
    if (const CompatResult result = kernel_.Reset(obs); result != CompatResult::kOk) {
      return Failed(result);
    }
    streamed_ = kernel_.streaming();
    double episode_return = 0;
    while (obs.done <= 0.5F) {
      const auto action = policy_->Act(obs, static_cast<std::uint64_t>(episodes_));
      if (!action) {
        return {CompatResult::kRefused,
                "the heap has no weights of model " + std::to_string(obs.model_id),
                kCompatErrorRestart};
      }
      // Clock and stop flag now and then: either costs a good part of a step.
      const bool looks = steps_ % kStepsPerLook == 0;
      if (looks && stop_.load(std::memory_order_relaxed)) return {CompatResult::kStopped, "", 0};
      const std::int64_t sent_ns = looks ? MonotonicClock::Get().NowNs() : 0;
      if (const CompatResult result = kernel_.Step(*action, obs); result != CompatResult::kOk) {
        return Failed(result);
      }
      if (looks) round_trip_.Add(MonotonicClock::Get().NowNs() - sent_ns);
      episode_return += static_cast<double>(obs.reward);
      ++steps_;
    }
    ++episodes_;
    return_sum_ += episode_return;
    return {};
  }

  const StreamOptions& options_;
  const std::atomic<bool>& stop_;
  CompatKernel& kernel_;
  const std::unique_ptr<StreamPolicy> policy_;
  LatencyHistogram round_trip_;
  std::int64_t episodes_ = 0, steps_ = 0, played_ns_ = 0;
  double return_sum_ = 0;
  bool streamed_ = false;
};

// Whether a kernel that stays goes on after `result`.
bool Survivable(CompatResult result) {
  return result != CompatResult::kOk && result != CompatResult::kStopped &&
         result != CompatResult::kCorrupt;
}

// Connects and plays, again and again if the options say so.
StreamOutcome PlayOn(const StreamOptions& options, const std::atomic<bool>& stop,
                     CompatKernel& kernel, Player& player, std::uint64_t& losses) {
  const auto wait_ns = static_cast<std::int64_t>(options.wait_s * 1e9);
  RetryPause pause;
  for (;;) {
    const std::int64_t steps_before = player.steps();
    StreamOutcome outcome = {kernel.Connect(wait_ns), kernel.problem(), kernel.error_result()};
    const bool connected = outcome.result == CompatResult::kOk;
    if (connected) outcome = player.Play();
    if (!options.stay || !Survivable(outcome.result)) return outcome;
    if (connected) {
      ++losses;
      log::warn("{}: {}; waiting for a host", CompatResultName(outcome.result), outcome.problem);
    }
    if (player.steps() > steps_before) pause.Reset();
    SleepUnlessStopped(pause.NextNs(), stop);
  }
}

}  // namespace

int RunKernel(const StreamOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  std::unique_ptr<Policy> loaded = LoadPolicy(options);
  auto region = OpenRegion(options, CompatRole::kKernel, stop);
  if (!region) return 0;
  const TruncationGuard guard(region->memory(), options.region);
  auto kernel = AttachNamed(
      options, stop, [&] { return CompatKernel(region->memory(), EndConfigOf(options, stop)); });
  if (!kernel) return 0;
  Player player(options, stop, *kernel, std::move(loaded));
  std::uint64_t losses = 0;
  const auto report = [&](const char* end) {
    JsonObject line;
    line.Add("role", "kernel").Add("end", end);
    AddStats(line, kernel->stats());
    player.Report(line);
    line.Add("losses", losses).Add("adopted", kernel->adopted()).Add("epoch", kernel->epoch());
    std::fputs((line.Text() + "\n").c_str(), out);
    std::fflush(out);
  };
  StreamOutcome outcome;
  try {
    outcome = PlayOn(options, stop, *kernel, player, losses);
  } catch (const Error&) {
    report("policy_failed");
    throw;
  }
  report(CompatResultName(outcome.result));
  ThrowUnlessGood(outcome, options);
  return 0;
}

}  // namespace tetrion
