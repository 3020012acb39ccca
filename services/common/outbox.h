#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/frame/token.h"
#include "lib/wire/messages.h"

namespace tetrion {

// What workers hand to the link thread: finished episodes and tokens given back. Bounded by the
// tokens the actor holds.
class Outbox {
 public:
  // Worker threads. Never blocks for more than a swap.
  void PutEpisodes(int worker, std::span<const EpisodeResult> episodes);
  void PutAbandoned(std::span<const Token> tokens, const char* reason);

  // Link thread: appends what has gathered and empties the box.
  void Take(std::vector<wire::EpisodeReport>& episodes,
            std::map<std::string, std::vector<Token>>& abandoned);

 private:
  Mutex mu_;
  std::vector<wire::EpisodeReport> episodes_ TETRION_GUARDED_BY(mu_);
  std::map<std::string, std::vector<Token>> abandoned_ TETRION_GUARDED_BY(mu_);  // by reason
};

}  // namespace tetrion
