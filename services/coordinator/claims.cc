#include "services/coordinator/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tetrion::coordinator {
namespace {

std::string NotBelow(const char* what, std::uint64_t have, std::uint64_t limit) {
  return std::string(what) + " " + std::to_string(have) + " is not below " + std::to_string(limit);
}

std::string ImpossibleIn(const wire::EpisodeReport& episode, const ReportLimits& limits) {
  if (episode.length_steps > limits.max_steps) {
    return NotBelow("length", episode.length_steps, std::uint64_t{limits.max_steps} + 1);
  }
  if (episode.lane >= limits.lanes) return NotBelow("lane", episode.lane, limits.lanes);
  if (episode.worker >= limits.workers) return NotBelow("worker", episode.worker, limits.workers);
  if (episode.policy_version >= limits.version_limit) {
    return NotBelow("policy version", episode.policy_version, limits.version_limit);
  }
  if (!std::isfinite(episode.episode_return)) return "its return is not finite";
  return "";
}

}  // namespace

std::string ImpossibleIn(const wire::ReportBatch& batch, const ReportLimits& limits) {
  for (const wire::EpisodeReport& episode : batch.episodes) {
    const std::string wrong = ImpossibleIn(episode, limits);
    if (!wrong.empty()) return "report of token " + std::to_string(episode.token_id) + ": " + wrong;
  }
  return "";
}

std::string ImpossibleSteps(std::uint64_t env_steps, const Process& process,
                            std::uint32_t max_steps) {
  if (!process.base_known) return "";
  const std::uint64_t own = env_steps - std::min(env_steps, process.steps_base);
  const std::uint64_t most =
      process.tokens_granted > std::numeric_limits<std::uint64_t>::max() >> 32
          ? std::numeric_limits<std::uint64_t>::max()
          : process.tokens_granted * max_steps;
  if (own <= most) return "";
  return "told " + std::to_string(own) + " steps, " + std::to_string(process.tokens_granted) +
         " tokens of at most " + std::to_string(max_steps) + " steps were granted";
}

std::string ImpossibleRequest(std::uint64_t request, std::uint64_t last_request) {
  if (request <= last_request || request - last_request == 1) return "";
  return "request " + std::to_string(request) + " follows " + std::to_string(last_request);
}

}  // namespace tetrion::coordinator
