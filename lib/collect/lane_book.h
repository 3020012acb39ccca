#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/token.h"

namespace tetrion {

// Which lanes of a worker play and which need a token, and the episodes that ended but are not
// announced yet. A lane needs a token from the row on in which its episode ends by the rules, is
// cut, or is dropped. Allocates nothing after construction while no more than two episodes a lane
// wait to be announced (4,096 with few lanes). One worker thread.
class LaneBook {
 public:
  explicit LaneBook(int lanes);

  int lanes() const { return static_cast<int>(playing_.size()); }
  // Lanes that need a token.
  int need_token() const { return need_token_; }
  bool Plays(int lane) const { return playing_[static_cast<std::size_t>(lane)] != 0; }
  // The lane has been given a token.
  void Begin(int lane);

  // Playing lanes whose column of row number `number` is_last have ended by the rules or by
  // max_steps; `version` chose their last action.
  void EndEpisodes(const RowView& row, std::uint64_t number, std::uint32_t version,
                   const VecEnv& env);
  // Cuts every lane that still plays: its column of `row` becomes the last of an unfinished
  // episode. Returns the tokens, valid until the next call.
  std::span<const Token> Cut(const RowView& row, const VecEnv& env);
  // Marks all playing lanes as needing a token and leaves the published row as it is: where the
  // policy failed, the policy's process has marked the row's lanes as cut. Returns the tokens,
  // valid until the next call.
  std::span<const Token> Drop(const VecEnv& env);

  bool HasEnded() const { return !ended_.empty(); }
  // Tells `listener` of the ended episodes whose last row is below `published`. Returns how many.
  std::size_t Announce(std::uint64_t published, LaneListener& listener);

 private:
  struct Ended {
    std::uint64_t last_row;
    EpisodeResult result;
  };

  int need_token_;
  std::vector<std::uint8_t> playing_;     // [M] 1: plays, 0: needs a token
  std::vector<Ended> ended_;              // in row order
  std::vector<EpisodeResult> announced_;  // scratch of Announce
  std::vector<Token> taken_;              // scratch of Cut and Drop
};

}  // namespace tetrion
