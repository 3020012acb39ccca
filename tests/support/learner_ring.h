#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lib/rl/gradient_sync.h"

namespace tetrion::testing {

// Several learners of one process, a thread each, that take the mean of their gradients. A learner
// that waits in vain for the others fails the test after kPatience.
class LearnerRing {
 public:
  explicit LearnerRing(int learners) : learners_(learners) {}

  // Of one more learner. The ring outlives it.
  std::unique_ptr<GradientSync> Join() { return std::make_unique<Member>(*this); }
  // Gradients that all of them shared.
  int reduced() const { return reduced_; }

 private:
  static constexpr std::chrono::seconds kPatience{60};

  class Member final : public GradientSync {
   public:
    explicit Member(LearnerRing& ring) : ring_(ring) {}
    bool AllCanStep(bool ready) override {
      bool all = false;
      ring_.Meet([&] { ring_.ready_ += ready ? 1 : 0; },
                 [&] {
                   ring_.all_ready_ = ring_.ready_ == ring_.learners_;
                   ring_.ready_ = 0;
                 },
                 [&] { all = ring_.all_ready_; });
      return all;
    }
    void AllReduce(std::span<float> gradients) override {
      ring_.Meet(
          [&] {
            ring_.sum_.resize(gradients.size());
            for (std::size_t i = 0; i < gradients.size(); ++i) ring_.sum_[i] += gradients[i];
          },
          [&] {
            ring_.mean_.clear();
            for (const float x : ring_.sum_) {
              ring_.mean_.push_back(x / static_cast<float>(ring_.learners_));
            }
            ring_.sum_.clear();
            ++ring_.reduced_;
          },
          [&] { std::copy(ring_.mean_.begin(), ring_.mean_.end(), gradients.begin()); });
    }

   private:
    LearnerRing& ring_;
  };

  // Every learner gives; the last one concludes; then every learner takes.
  void Meet(const std::function<void()>& give, const std::function<void()>& conclude,
            const std::function<void()>& take) {
    std::unique_lock lock(mu_);
    give();
    const int round = round_;
    if (++arrived_ == learners_) {
      conclude();
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    const bool met = changed_.wait_for(lock, kPatience, [&] { return round_ != round; });
    EXPECT_TRUE(met) << "a learner waits for the others";
    if (met) take();
  }

  const int learners_;
  std::mutex mu_;
  std::condition_variable changed_;
  int round_ = 0, arrived_ = 0, ready_ = 0, reduced_ = 0;
  bool all_ready_ = false;
  std::vector<float> sum_, mean_;
};

}  // namespace tetrion::testing
