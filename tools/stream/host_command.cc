#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tools/stream/cartpole_env.h"
#include "tools/stream/commands.h"
#include "tools/stream/stream_end.h"

namespace tetrion {
namespace {

// Long enough to cost nothing, short enough that every caller's bound is met: the stop flag is
// looked at inside.
constexpr std::int64_t kServeNs = kNanosPerSecond;

// Serves until something ends it that the options do not tell to go on after.
StreamOutcome Serve(CompatHost& host, const CartPoleCompatEnv& env, const StreamOptions& options,
                    std::uint64_t& losses) {
  std::uint64_t lost_reset = 0;  // the episode that has been counted as lost
  for (;;) {
    const CompatResult result = host.Serve(kServeNs);
    if (result == CompatResult::kSeqError) {
      // The kernel has been told; its next ENV_RESET makes it good.
      log::warn("seq_error: {}", host.problem());
    } else if (result == CompatResult::kPeerLost) {
      // Between episodes a kernel may go: its work is done.
      if (!options.stay) return {env.running() ? result : CompatResult::kOk, host.problem()};
      if (env.running() && host.stats().resets != lost_reset) {
        lost_reset = host.stats().resets;
        ++losses;
        log::warn("peer_lost: the kernel has gone in the middle of an episode");
      }
    } else if (result != CompatResult::kOk && result != CompatResult::kIdle) {
      return {result, host.problem()};
    }
  }
}

}  // namespace

int RunHost(const StreamOptions& options, const std::atomic<bool>& stop, std::FILE* out) {
  auto region = OpenRegion(options, CompatRole::kHost, stop);
  if (!region) return 0;
  CartPoleCompatEnv env(options.seed, static_cast<std::uint32_t>(options.max_steps));
  auto host = AttachNamed(options, stop, [&] {
    return CompatHost(region->memory(), env, EndConfigOf(options, stop),
                      static_cast<std::int64_t>(options.wait_s * 1e9));
  });
  if (!host) return 0;
  if (options.weights_given) host->SetWeights(options.weights);
  std::uint64_t losses = 0;
  const StreamOutcome outcome = Serve(*host, env, options, losses);
  const CompatStats& stats = host->stats();
  JsonLine line("host");
  line.Text("end", CompatResultName(outcome.result)).Stats(stats);
  line.Number("mean_return",
              stats.episodes == 0 ? 0 : env.return_sum() / static_cast<double>(stats.episodes));
  line.Count("losses", losses).Flag("streamed", host->streaming());
  std::fputs(line.Finish().c_str(), out);
  std::fflush(out);
  ThrowUnlessGood(outcome, options);
  return 0;
}

}  // namespace tetrion
