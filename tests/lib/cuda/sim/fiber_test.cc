#include "lib/cuda/sim/fiber.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tetrion::cuda::sim {
namespace {

// Fibers live as long as the process, and so does the pool that holds them.
FiberPool& Pool() {
  static FiberPool* pool = new FiberPool;
  return *pool;
}

TEST(FiberTest, WorkStopsHalfwayAndGoesOn) {
  FiberPool& pool = Pool();
  Fiber& fiber = pool.Take();
  std::string log;
  fiber.Begin([&] {
    for (const char c : {'a', 'b', 'c'}) {
      log += c;
      fiber.Suspend();
    }
  });
  EXPECT_EQ(log, "a");
  EXPECT_FALSE(fiber.idle());
  log += '-';
  fiber.Resume();
  fiber.Resume();
  EXPECT_EQ(log, "a-bc");
  fiber.Resume();
  EXPECT_TRUE(fiber.idle());
  pool.Give(fiber);
}

TEST(FiberTest, FibersAreUsedAgain) {
  FiberPool& pool = Pool();
  Fiber& first = pool.Take();
  pool.Give(first);
  int runs = 0;
  for (int i = 0; i < 1000; ++i) {
    Fiber& fiber = pool.Take();
    EXPECT_EQ(&fiber, &first);
    fiber.Begin([&runs] { ++runs; });
    pool.Give(fiber);
  }
  EXPECT_EQ(runs, 1000);
}

// Switches of many fibers in between each other, with values on each stack and exceptions that are
// thrown and caught on it.
TEST(FiberTest, StacksKeepTheirValues) {
  FiberPool& pool = Pool();
  std::vector<Fiber*> fibers;
  int caught = 0;
  for (int f = 0; f < 50; ++f) {
    Fiber* fiber = &pool.Take();
    fibers.push_back(fiber);
    fiber->Begin([f, fiber, &caught] {
      std::vector<int> values(100, f);
      for (int i = 0; i < 10; ++i) {
        fiber->Suspend();
        try {
          if (values[static_cast<std::size_t>(i)] == f) throw std::runtime_error("on its stack");
        } catch (const std::runtime_error&) {
          ++caught;
        }
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    for (Fiber* fiber : fibers) fiber->Resume();
  }
  EXPECT_EQ(caught, 500);
  for (Fiber* fiber : fibers) {
    EXPECT_TRUE(fiber->idle());
    pool.Give(*fiber);
  }
}

TEST(FiberTest, AnotherThreadGoesOnWithAFiber) {
  FiberPool& pool = Pool();
  Fiber& fiber = pool.Take();
  int steps = 0;
  const auto work = [&] {
    ++steps;
    fiber.Suspend();
    ++steps;
  };
  fiber.Begin(work);
  std::thread([&fiber] { fiber.Resume(); }).join();
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(fiber.idle());
  std::thread([&] { fiber.Begin(work); }).join();
  fiber.Resume();
  EXPECT_EQ(steps, 4);
  pool.Give(fiber);
}

}  // namespace
}  // namespace tetrion::cuda::sim
