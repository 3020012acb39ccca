#include <algorithm>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tools/stream/cartpole_env.h"
#include "tools/stream/commands.h"
#include "tools/stream/stream_end.h"
#include "tools/stream/truncation_guard.h"

namespace tetrion {
namespace {

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

}  // namespace

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

}  // namespace tetrion
