#include "lib/collect/batch_pool.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

constexpr std::size_t kObs = 8;

TEST(BatchPoolTest, BatchComesBackWhenItsLastHolderLetsGo) {
  const auto pool = std::make_shared<BatchPool>();
  auto batch = pool->Take(4, 5, kObs);
  EpisodeBatch* const first = batch.get();
  auto second_holder = batch;
  batch.reset();
  EXPECT_EQ(pool->idle(), 0);
  second_holder.reset();
  EXPECT_EQ(pool->idle(), 1);
  EXPECT_EQ(pool->Take(3, 5, kObs).get(), first);  // fewer episodes fit
  EXPECT_NE(pool->Take(3, 6, kObs).get(), first);  // another shape does not
  EXPECT_NE(pool->Take(5, 5, kObs).get(), first);  // nor do more episodes
}

TEST(BatchPoolTest, KeepsTwoBatchesAndOutlivesItsOwner) {
  auto pool = std::make_shared<BatchPool>();
  auto a = pool->Take(1, 1, kObs), b = pool->Take(1, 1, kObs), c = pool->Take(1, 1, kObs);
  a.reset();
  b.reset();
  c.reset();
  EXPECT_EQ(pool->idle(), 2);
  auto last = pool->Take(1, 1, kObs);
  pool.reset();
  last->SetAction(0, 0, 1, 0.0F, 0.0F);
  EXPECT_EQ(last->actions[0], 1);
}

TEST(BatchPoolTest, ClosedPoolFreesWhatItHasAndWhatComesBack) {
  const auto pool = std::make_shared<BatchPool>();
  auto idle = pool->Take(1, 1, kObs), out = pool->Take(1, 1, kObs);
  idle.reset();
  pool->Close();
  EXPECT_EQ(pool->idle(), 0);
  out->SetAction(0, 0, 1, 0.0F, 0.0F);  // the holder's as before
  out.reset();
  EXPECT_EQ(pool->idle(), 0);
}

}  // namespace
}  // namespace tetrion
