#include "services/common/outbox.h"

namespace tetrion {

void Outbox::PutEpisodes(int worker, std::span<const EpisodeResult> episodes) {
  MutexLock lock(mu_);
  for (const EpisodeResult& episode : episodes) {
    episodes_.push_back({.token_id = episode.token_id,
                         .attempt = episode.attempt,
                         .length_steps = episode.length_steps,
                         .lines = episode.lines,
                         .policy_version = episode.policy_version,
                         .episode_return = episode.episode_return,
                         .lane = static_cast<std::uint16_t>(episode.lane),
                         .worker = static_cast<std::uint16_t>(worker)});
  }
}

void Outbox::PutAbandoned(std::span<const Token> tokens, const char* reason) {
  MutexLock lock(mu_);
  std::vector<Token>& box = abandoned_[reason];
  box.insert(box.end(), tokens.begin(), tokens.end());
}

void Outbox::Take(std::vector<wire::EpisodeReport>& episodes,
                  std::map<std::string, std::vector<Token>>& abandoned) {
  MutexLock lock(mu_);
  episodes.insert(episodes.end(), episodes_.begin(), episodes_.end());
  episodes_.clear();
  for (auto& [reason, tokens] : abandoned_) {
    std::vector<Token>& to = abandoned[reason];
    to.insert(to.end(), tokens.begin(), tokens.end());
  }
  abandoned_.clear();
}

}  // namespace tetrion
