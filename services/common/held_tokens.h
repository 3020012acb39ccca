#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "lib/frame/token.h"
#include "lib/wire/messages.h"

namespace tetrion {

// Every token this actor answers for: waiting, in play, or finished but not yet acknowledged. Kept
// by range, as the ledger does, so that a re-registration can list exactly what is held. Pure
// bookkeeping; link thread only.
class HeldTokens {
 public:
  // Takes a granted range; its tokens (those not done) join the pool. A range that is listed
  // already is a repeated grant, unless its attempt is newer: then the coordinator has taken the
  // old tokens back and granted the range again, so the old ones are dropped.
  void Add(const wire::GrantedRange& range);
  // Moves up to `count` tokens from the pool into `out`.
  void TakeFromPool(std::size_t count, std::vector<Token>& out);
  std::size_t pool_size() const { return pool_.size(); }
  // Empties the pool: at drain, to give the tokens back.
  std::vector<Token> TakePool();

  // False for a token of an earlier session: its episode must not be reported.
  bool Holds(std::uint64_t token_id, std::uint32_t attempt) const;
  // The coordinator has settled the token (acknowledged report or abandonment). Nothing for one of
  // another attempt, which has been granted again meanwhile.
  void Settle(std::uint64_t token_id, std::uint32_t attempt);
  std::size_t held() const { return held_; }

  // For Register: the oldest ranges, at most kMaxHeldRanges, and the first id below which the list
  // is complete.
  struct Listed {
    std::vector<wire::HeldRange> ranges;
    std::uint64_t below = 0;
  };
  Listed ListHeld() const;
  // Groups tokens by range for an Abandon message.
  static std::vector<wire::HeldRange> Group(std::span<const Token> tokens);
  // The session ended.
  void Clear();

 private:
  struct Range {
    std::uint32_t attempt = 0;
    std::uint32_t held = 0;
    wire::Bitmap bitmap;  // held tokens
  };
  void Drop(std::map<std::uint64_t, Range>::iterator range);

  std::map<std::uint64_t, Range> ranges_;  // by first_id
  std::deque<Token> pool_;
  std::size_t held_ = 0;
};

}  // namespace tetrion
