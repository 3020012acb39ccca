#include "services/common/outbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace tetrion {
namespace {

TEST(OutboxTest, EpisodesArriveWithTheirWorkerAndOnlyOnce) {
  Outbox box;
  const std::vector<EpisodeResult> results = {{.token_id = 4,
                                               .attempt = 2,
                                               .lane = 7,
                                               .length_steps = 30,
                                               .lines = 5,
                                               .episode_return = 9.5F,
                                               .policy_version = 11}};
  box.PutEpisodes(3, results);
  std::vector<wire::EpisodeReport> episodes;
  std::map<std::string, std::vector<Token>> abandoned;
  box.Take(episodes, abandoned);
  ASSERT_EQ(episodes.size(), 1U);
  EXPECT_EQ(episodes[0].token_id, 4U);
  EXPECT_EQ(episodes[0].attempt, 2U);
  EXPECT_EQ(episodes[0].lane, 7U);
  EXPECT_EQ(episodes[0].worker, 3U);
  EXPECT_EQ(episodes[0].length_steps, 30U);
  EXPECT_EQ(episodes[0].lines, 5U);
  EXPECT_EQ(episodes[0].episode_return, 9.5F);
  EXPECT_EQ(episodes[0].policy_version, 11U);
  box.Take(episodes, abandoned);
  EXPECT_EQ(episodes.size(), 1U);
}

TEST(OutboxTest, AbandonedTokensAreKeptByReason) {
  Outbox box;
  box.PutAbandoned(std::vector<Token>{{.id = 1}}, "drain");
  box.PutAbandoned(std::vector<Token>{{.id = 2}}, "not_finite");
  box.PutAbandoned(std::vector<Token>{{.id = 3}}, "drain");
  std::vector<wire::EpisodeReport> episodes;
  std::map<std::string, std::vector<Token>> abandoned;
  box.Take(episodes, abandoned);
  EXPECT_EQ(abandoned["drain"].size(), 2U);
  EXPECT_EQ(abandoned["not_finite"].size(), 1U);
}

TEST(OutboxTest, NothingIsLostBetweenManyWorkersAndTheLink) {
  Outbox box;
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&box, w] {
      for (std::uint64_t i = 0; i < 1000; ++i) {
        box.PutEpisodes(w, std::vector<EpisodeResult>{{.token_id = i}});
      }
    });
  }
  std::vector<wire::EpisodeReport> episodes;
  std::map<std::string, std::vector<Token>> abandoned;
  while (episodes.size() < 4000) box.Take(episodes, abandoned);
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(episodes.size(), 4000U);
}

}  // namespace
}  // namespace tetrion
