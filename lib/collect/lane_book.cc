#include "lib/collect/lane_book.h"

#include <algorithm>

namespace tetrion {
namespace {

// Episodes that may wait for their publication before the worker allocates: every lane twice per
// commit stride is far beyond what an environment can end.
constexpr std::size_t kEndedALane = 2;
constexpr std::size_t kLeastEnded = 4096;

}  // namespace

LaneBook::LaneBook(int lanes) : need_token_(lanes), playing_(static_cast<std::size_t>(lanes), 0) {
  taken_.reserve(playing_.size());
  const std::size_t ended = std::max(kLeastEnded, kEndedALane * playing_.size());
  ended_.reserve(ended);
  announced_.reserve(ended);
}

void LaneBook::Begin(int lane) {
  playing_[static_cast<std::size_t>(lane)] = 1;
  --need_token_;
}

void LaneBook::EndEpisodes(const RowView& row, std::uint64_t number, std::uint32_t version,
                           const VecEnv& env) {
  for (std::size_t l = 0; l < playing_.size(); ++l) {
    if (playing_[l] == 0 || (row.flags[l] & kIsLast) == 0) continue;
    EpisodeResult result = env.Episode(static_cast<int>(l));
    result.lane = static_cast<std::uint32_t>(l);
    result.policy_version = version;
    ended_.push_back({number, result});
    playing_[l] = 0;
    ++need_token_;
  }
}

std::span<const Token> LaneBook::Cut(const RowView& row, const VecEnv& env) {
  taken_.clear();
  for (std::size_t l = 0; l < playing_.size(); ++l) {
    if (playing_[l] == 0 || (row.flags[l] & kIsLast) != 0) continue;
    row.flags[l] |= kIsLast | kTruncated;
    taken_.push_back(env.token(static_cast<int>(l)));
    playing_[l] = 0;
    ++need_token_;
  }
  return taken_;
}

std::span<const Token> LaneBook::Drop(const VecEnv& env) {
  taken_.clear();
  for (std::size_t l = 0; l < playing_.size(); ++l) {
    if (playing_[l] == 0) continue;
    taken_.push_back(env.token(static_cast<int>(l)));
    playing_[l] = 0;
  }
  need_token_ = lanes();
  return taken_;
}

std::size_t LaneBook::Announce(std::uint64_t published, LaneListener& listener) {
  announced_.clear();
  for (const Ended& ended : ended_) {
    if (ended.last_row >= published) break;
    announced_.push_back(ended.result);
  }
  if (announced_.empty()) return 0;
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(announced_.size()));
  listener.OnEpisodes(announced_);
  return announced_.size();
}

}  // namespace tetrion
