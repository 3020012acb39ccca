#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "lib/core/philox.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kSeed = 20240229;

std::uint64_t Mixed(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9E3779B97F4A7C15ULL;
  return digest ^ digest >> 29;
}

// What a set of tokens did, added up so that the order in which they were played does not matter.
struct Played {
  std::uint64_t digest = 0;
  std::uint64_t steps = 0;
  bool operator==(const Played&) const = default;
};

// Plays `tokens` in the given order on `lanes` lanes: action k of a token is its k-th draw.
class DigestRun {
 public:
  DigestRun(const std::string& name, int lanes, std::vector<std::uint64_t> tokens)
      : rows_({.name = name, .lanes = lanes, .seed = kSeed, .illegal_is_noop = true}),
        tokens_(std::move(tokens)),
        digest_(static_cast<std::size_t>(lanes)) {}

  Played Run() {
    std::vector<int> active;
    for (int lane = 0; lane < rows_.env->lanes(); ++lane) {
      if (TakeToken(lane)) active.push_back(lane);
    }
    while (!active.empty()) {
      rows_.env->Step(active, rows_.actions.data(), rows_.row);
      std::erase_if(active, [this](int lane) { return !Account(lane); });
    }
    return played_;
  }

 private:
  bool TakeToken(int lane) {
    if (next_ == tokens_.size()) return false;
    digest_[static_cast<std::size_t>(lane)] = Mixed(1, tokens_[next_]);
    rows_.env->Reset(lane, {tokens_[next_++], 0, 2000});
    return true;
  }

  // Folds the lane's row into its digest and chooses its next action; false when it is out of
  // tokens.
  bool Account(int lane) {
    std::uint64_t& digest = digest_[static_cast<std::size_t>(lane)];
    const std::size_t bytes = rows_.env->spec().obs.record_bytes;
    for (std::size_t i = 0; i < bytes; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, rows_.row.record + static_cast<std::size_t>(lane) * bytes + i, 8);
      digest = Mixed(digest, word);
    }
    std::uint32_t reward = 0;
    std::memcpy(&reward, &rows_.row.reward[lane], 4);
    digest = Mixed(digest, std::uint64_t{reward} << 8 | rows_.row.flags[lane]);
    if (rows_.row.mask != nullptr) digest = Mixed(digest, rows_.row.mask[lane]);
    const EpisodeResult episode = rows_.env->Episode(lane);
    if ((rows_.row.flags[lane] & kIsLast) != 0) {
      played_.digest += digest;
      played_.steps += episode.length_steps;
      return TakeToken(lane);
    }
    const PhiloxBlock draw =
        PhiloxDraw(kSeed, episode.token_id, episode.length_steps, PhiloxPurpose::kActions);
    const auto count = static_cast<std::uint32_t>(rows_.env->spec().action.count);
    rows_.actions[static_cast<std::size_t>(lane)] =
        static_cast<std::int32_t>(BoundedDraw(draw.word[0], count));
    return true;
  }

  testing::RowedEnv rows_;
  const std::vector<std::uint64_t> tokens_;
  std::size_t next_ = 0;
  std::vector<std::uint64_t> digest_;  // [M]
  Played played_;
};

std::vector<std::uint64_t> Tokens(std::size_t count) {
  std::vector<std::uint64_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// The golden digests pin rules, piece draws and the record's bits. If one of them changes on
// purpose, stored replays and published scores change their meaning too.
TEST(DigestTest, AMillionRandomTetrisStepsAreTheGoldenOnesForEveryLaneCount) {
  const Played golden = {234604096152373427ULL, 1011197};
  for (const int lanes : {1, 7, 64, 1024}) {
    EXPECT_EQ(DigestRun("tetris", lanes, Tokens(16500)).Run(), golden) << lanes;
  }
}

TEST(DigestTest, LaneOrderDoesNotMatter) {
  const auto tokens = Tokens(2000);
  std::vector<std::uint64_t> backwards(tokens.rbegin(), tokens.rend());
  for (const std::string& name : testing::AllEnvNames()) {
    const Played forwards = DigestRun(name, 33, tokens).Run();
    EXPECT_EQ(forwards, DigestRun(name, 33, backwards).Run()) << name;
    EXPECT_EQ(forwards, DigestRun(name, 500, tokens).Run()) << name;
  }
}

TEST(DigestTest, PlacementsAreTheGoldenOnes) {
  const Played golden = {15074476117323415567ULL, 86782};
  EXPECT_EQ(DigestRun("tetris-placement", 16, Tokens(4000)).Run(), golden);
}

void PrintTo(const Played& played, std::ostream* out) {
  *out << "{" << played.digest << "ULL, " << played.steps << "}";
}

}  // namespace
}  // namespace tetrion
