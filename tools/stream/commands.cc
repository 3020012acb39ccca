#include "tools/stream/commands.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/policy/random_policy.h"
#include "lib/region_v2/compat_kernel.h"
#include "lib/region_v2/compat_layout.h"
#include "lib/shm/mapped_file.h"
#include "tools/stream/cartpole_env.h"
#include "tools/stream/inspect.h"
#include "tools/stream/latency.h"
#include "tools/stream/region_doc.h"
#include "tools/stream/stream_end.h"
#include "tools/stream/stream_policy.h"

namespace tetrion {
namespace {

constexpr std::int64_t kStepsPerLook = 16;
// A host that has no room for an episode's first observation is asked so often, and for so long.
constexpr std::int64_t kBusyPauseNs = 10 * kNanosPerMilli;
constexpr std::int64_t kBusyMs = 10'000;

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
    CompatResult result = kernel_.Reset(obs);
    const Deadline patience = Deadline::AfterMs(kBusyMs);
    while (result == CompatResult::kBusy && !patience.Passed() &&
           !stop_.load(std::memory_order_relaxed)) {
      SleepUnlessStopped(kBusyPauseNs, stop_);
      result = kernel_.Reset(obs);
    }
    if (result == CompatResult::kBusy && stop_.load(std::memory_order_relaxed)) {
      return {CompatResult::kStopped, "", 0};
    }
    if (result != CompatResult::kOk) return Failed(result);
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
      result = kernel_.Step(*action, obs);
      if (result != CompatResult::kOk) return Failed(result);
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
      log::warn("{}: {}; waiting for a host", CompatResultName(outcome.result),
                ReasonOf(outcome, options));
    }
    if (player.steps() > steps_before) pause.Reset();
    SleepUnlessStopped(pause.NextNs(), stop);
  }
}

// Long enough to cost nothing, short enough that every caller's bound is met: the stop flag is
// looked at inside.
constexpr std::int64_t kServeNs = kNanosPerSecond;

// Serves until something ends it that the options do not tell to go on after. `patience` is the
// time a kernel has to appear, on a new region or on one that an earlier kernel has left.
StreamOutcome Serve(CompatHost& host, const CartPoleCompatEnv& env, const StreamOptions& options,
                    const Deadline& patience, std::uint64_t& losses) {
  std::uint64_t lost_reset = 0;  // the episode that has been counted as lost
  bool seen = false;
  for (;;) {
    const CompatResult result =
        host.Serve(seen || options.stay ? kServeNs : std::min(kServeNs, patience.LeftNs()));
    seen = seen || host.kernel_seen();
    if (result == CompatResult::kSeqError) {
      // The kernel has been told; its next ENV_RESET makes it good.
      log::warn("seq_error: {}", host.problem());
    } else if (result == CompatResult::kPeerLost && seen) {
      // Between episodes a kernel may go: its work is done.
      if (!options.stay) return {env.running() ? result : CompatResult::kOk, host.problem()};
      if (env.running() && host.stats().resets != lost_reset) {
        lost_reset = host.stats().resets;
        ++losses;
        log::warn("peer_lost: the kernel has gone in the middle of an episode");
      }
    } else if (result != CompatResult::kOk && result != CompatResult::kIdle &&
               result != CompatResult::kPeerLost) {
      return {result, host.problem()};
    }
    if (!seen && !options.stay && patience.Passed()) {
      return {CompatResult::kTimeout, "no kernel has come within --wait"};
    }
  }
}

// The region's bytes as they are now; both ends may be writing.
std::vector<std::byte> CopyOf(const MappedFile& file) {
  const std::size_t bytes =
      file.bytes() >= kCompatLargeRegionBytes ? kCompatLargeRegionBytes : kCompatRegionBytes;
  std::vector<std::byte> copy(bytes);
  auto* words = reinterpret_cast<std::uint32_t*>(file.data());  // mapped memory is page-aligned
  for (std::size_t i = 0; i < bytes / sizeof(std::uint32_t); ++i) {
    const std::uint32_t word =
        std::atomic_ref<std::uint32_t>(words[i]).load(std::memory_order_relaxed);
    std::memcpy(copy.data() + i * sizeof word, &word, sizeof word);
  }
  return copy;
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

int RunHost(const StreamOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  const Deadline patience(MonotonicClock::Get(), static_cast<std::int64_t>(options.wait_s * 1e9));
  auto region = OpenRegion(options, CompatRole::kHost, stop);
  if (!region) return 0;
  const TruncationGuard guard(region->memory(), options.region);
  CartPoleCompatEnv env(options.seed, static_cast<std::uint32_t>(options.max_steps));
  auto host = AttachNamed(options, stop, [&] {
    return CompatHost(region->memory(), env, EndConfigOf(options, stop), patience.LeftNs());
  });
  if (!host) return 0;
  if (options.weights_given) host->SetWeights(options.weights);
  std::uint64_t losses = 0;
  const StreamOutcome outcome = Serve(*host, env, options, patience, losses);
  const CompatStats& stats = host->stats();
  JsonObject line;
  line.Add("role", "host").Add("end", CompatResultName(outcome.result));
  AddStats(line, stats);
  AddNumber(line, "mean_return",
            stats.episodes == 0 ? 0 : env.return_sum() / static_cast<double>(stats.episodes));
  AddNumber(line, "steps_per_s", env.steps_per_s());
  line.Add("losses", losses).Add("streamed", host->streaming());
  std::fputs((line.Text() + "\n").c_str(), out);
  std::fflush(out);
  ThrowUnlessGood(outcome, options);
  return 0;
}

int RunInspect(const StreamOptions& options, std::FILE* out) {
  const MappedFile file =
      MappedFile::Open(options.region, kCompatRegionBytes,
                       options.size_mib == 2 ? kCompatLargeRegionBytes : kCompatRegionBytes);
  const TruncationGuard guard({file.data(), file.bytes()}, options.region);
  const std::vector<std::byte> copy = CopyOf(file);
  const RegionReport report = InspectRegion(copy, options.last);
  std::fputs(report.text.c_str(), out);
  for (const std::string& problem : report.problems) {
    std::fprintf(out, "problem: %s\n", problem.c_str());
  }
  std::fflush(out);
  if (report.problems.empty()) return 0;
  throw Error(ExitCode::kConfig, options.region + ": " + report.problems.front() +
                                     "; end both programs and remove the file, or let them agree");
}

int RunLayout(std::FILE* out) {
  std::fputs(RegionDoc().c_str(), out);
  return 0;  // what could not be written is said at the program's end
}

}  // namespace tetrion
