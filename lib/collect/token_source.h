#pragma once

#include <cstdint>

#include "lib/frame/token.h"

namespace tetrion {

enum class [[nodiscard]] TakeResult {
  kToken,    // a token was taken
  kTimeout,  // none came in time; ask again
  kIdle,     // none for now: the lane stays idle while other lanes play
  kDrain,    // none will come any more: cut the live lanes, return their tokens, stop
  kFenced,   // the session ended: cut the live lanes, drop their tokens, call AcceptFence, go on
};

// Where a worker's lanes get their episodes from.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Waits at most `timeout_ns` for a token. Worker thread only.
  virtual TakeResult Take(Token& token, std::int64_t timeout_ns) = 0;
  // What the next Take would say without a token (kDrain, kFenced), else kToken; lets the worker
  // see a drain between rows. One relaxed load.
  virtual TakeResult State() const = 0;
  // The worker has cut its lanes after kFenced; tokens of the new session may be taken.
  virtual void AcceptFence() = 0;
};

}  // namespace tetrion
