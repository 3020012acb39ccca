// Trainers that use the tensor library allocate tensors in every update. Once the first updates are
// over these come and go within the heap: none of the kernel's memory is asked for or given back.
// Apart from other tests, since KeepFreedMemory holds for all of a program.

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <thread>

#include "lib/core/freed_memory.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "tests/lib/rl/dreamer/fixed_source.h"
#include "tests/lib/rl/vtrace/random_source.h"

namespace tetrion {
namespace {

// The tensor library's allocator of host memory, which also looks at each block how much memory
// malloc has of the kernel. One thread at a time.
class WatchedAllocator final : public c10::Allocator {
 public:
  explicit WatchedAllocator(c10::Allocator& inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr block = inner_.allocate(bytes);
    const struct mallinfo2 info = mallinfo2();
    const std::size_t taken = info.arena + info.hblkhd;
    if (taken != taken_) ++changes;
    taken_ = taken;
    ++blocks;
    return block;
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_.copy_data(to, from, bytes);
  }

  int blocks = 0;   // of tensors
  int changes = 0;  // of what malloc has of the kernel, from block to block

 private:
  c10::Allocator& inner_;
  std::size_t taken_ = 0;
};

class SteadyMemoryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    KeepFreedMemory();
    allocator = new WatchedAllocator(*c10::GetAllocator(c10::kCPU));  // as long as any tensor
    c10::SetAllocator(c10::kCPU, allocator);
  }

  // Makes updates in a thread, as the learner does. Which gaps the heap has differs from run to
  // run: now and then an update finds none that is large enough, and the heap still grows.
  static void ExpectFewAfter(int first, int counted, Trainer& trainer, BatchSource& source) {
    int updates = 0, changing = 0;
    std::thread([&] {
      for (int i = 0; i < first + counted; ++i) {
        allocator->blocks = allocator->changes = 0;
        updates += trainer.Step(source, 0).updates;
        EXPECT_GT(allocator->blocks, 100);  // it is watched
        if (i >= first && allocator->changes > 0) ++changing;
      }
    }).join();
    EXPECT_EQ(updates, first + counted);
    EXPECT_LE(changing, counted / 3) << "of the last " << counted << " updates";
  }

  static WatchedAllocator* allocator;
};

WatchedAllocator* SteadyMemoryTest::allocator = nullptr;

TEST_F(SteadyMemoryTest, NetworkConvFindsItsLargeBlocksInTheHeap) {
  constexpr int kSteps = 32, kLanes = 42;  // what a layer gives has 33 MiB
  const EnvSpec env = testing::MaskedPlanesEnv();
  const auto trainer =
      MakeVtraceTrainer({.settings = {.reuse = 1}, .network = "conv", .window = kSteps}, env,
                        testing::RandomSource::RowsOf(env, kLanes));
  testing::RandomSource source(env, kSteps, kLanes);
  ExpectFewAfter(/*first=*/6, /*counted=*/6, *trainer, source);
}

TEST_F(SteadyMemoryTest, DreamerV3FindsItsBlocksInTheHeap) {
  testing::FixedRows rows = {.settings = {.size = "1m"}, .steps = 32, .lanes = 16};
  testing::FixedSource source(rows);
  const auto trainer = MakeDreamerTrainer(
      {.settings = rows.settings, .window = rows.steps, .batch_lanes = rows.lanes}, rows.env);
  ExpectFewAfter(/*first=*/10, /*counted=*/12, *trainer, source);
}

}  // namespace
}  // namespace tetrion
