#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "tests/lib/replay/any_window_selector.h"

// A discrete-event model of a replay on a device: two host threads that only enqueue, two in-order
// queues that work later, each at its own pace, and events between them. The gate under test keeps
// them apart. The property: whenever a row is read it holds the row that the lease names, however
// the four are interleaved, while the writer laps the ring many times.
namespace tetrion {
namespace {

constexpr int kStride = 4, kCapacity = 16, kRows = 5;
constexpr std::size_t kQueueBound = 40;

// Work runs in order; what returns false waits for another queue and is asked again.
class Queue {
 public:
  void Enqueue(std::function<bool()> work) { work_.push_back(std::move(work)); }
  void Step() {
    if (!work_.empty() && work_.front()()) work_.pop_front();
  }
  std::size_t size() const { return work_.size(); }

 private:
  std::deque<std::function<bool()>> work_;
};

class QueueEvent final : public Event {
 public:
  QueueEvent(Queue& own, Queue& other) : own_(own), other_(other) {}
  void Record() {
    own_.Enqueue([this, point = ++recorded_] {
      passed_ = point;
      return true;
    });
  }
  bool Passed() const override { return passed_ == recorded_; }
  void Fence() const override {
    other_.Enqueue([this, point = recorded_] { return passed_ >= point; });
  }

 private:
  Queue& own_;
  Queue& other_;
  std::uint64_t recorded_ = 0, passed_ = 0;
};

class Model {
 public:
  explicit Model(std::uint64_t seed)
      : seed_(seed),
        gate_({.capacity_rows = kCapacity, .commit_stride = kStride},
              std::make_unique<testing::AnyWindowSelector>(kRows, seed), Limiter::Unlimited()) {
    // Fewer events than leases and chunks in flight: they are recorded anew before they are needed.
    for (int i = 0; i < 3; ++i) {
      commits_.push_back(std::make_unique<QueueEvent>(writing_, reading_));
      reads_.push_back(std::make_unique<QueueEvent>(reading_, writing_));
    }
  }

  void Run(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      const PhiloxBlock draw = PhiloxDraw(seed_, step, 0, PhiloxPurpose::kInitialState);
      // Each schedule has a pace of its own for either queue.
      const std::uint32_t writing = 1 + static_cast<std::uint32_t>(seed_) % 4;
      const std::uint32_t reading = 1 + static_cast<std::uint32_t>(seed_) / 4 % 4;
      const std::uint32_t turn = BoundedDraw(draw.word[0], 2 + writing + reading);
      if (turn == 0) {
        Write(1 + static_cast<int>(BoundedDraw(draw.word[1], kStride)));
      } else if (turn == 1) {
        Read();
      } else {
        (turn < 2 + writing ? writing_ : reading_).Step();
      }
    }
    lease_.Close();
  }

  int wrong() const { return wrong_; }
  std::uint64_t rows_read() const { return rows_read_; }
  std::uint64_t rows_written() const { return gate_.Stats(0).written_rows; }

 private:
  void Write(int most) {
    if (writing_.size() > kQueueBound) return;
    const Chunk chunk = gate_.Acquire(0, most, 0);
    if (!chunk) return;
    for (std::uint64_t row = chunk.first;
         row < chunk.first + static_cast<std::uint64_t>(chunk.rows); ++row) {
      writing_.Enqueue([this, row] {
        slots_[row % kCapacity] = row;
        return true;
      });
    }
    QueueEvent& event = *commits_[commit_++ % commits_.size()];
    event.Record();
    gate_.Commit(chunk, &event);
  }
  // Opens a lease in one turn, enqueues its reads and closes it in another.
  void Read() {
    if (!lease_) {
      if (reading_.size() <= kQueueBound) lease_ = gate_.OpenLease(1, kRows, 0);
      return;
    }
    const std::uint64_t start = lease_.windows()[0].start;
    for (std::uint64_t row = start; row < start + kRows; ++row) {
      reading_.Enqueue([this, row] {
        wrong_ += slots_[row % kCapacity] != row ? 1 : 0;
        ++rows_read_;
        return true;
      });
    }
    QueueEvent& event = *reads_[read_++ % reads_.size()];
    event.Record();
    lease_.CloseAfter(&event);
  }

  const std::uint64_t seed_;
  Queue writing_, reading_;
  std::vector<std::unique_ptr<QueueEvent>> commits_, reads_;
  std::array<std::uint64_t, kCapacity> slots_{};
  ReplayGate gate_;
  ReadLease lease_;
  std::size_t commit_ = 0, read_ = 0;
  int wrong_ = 0;
  std::uint64_t rows_read_ = 0;
};

TEST(GateModelTest, EveryRowIsReadAsItWasLeasedHoweverTheQueuesAreInterleaved) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Model model(seed);
    model.Run(4000);
    ASSERT_EQ(model.wrong(), 0) << "schedule " << seed;
    ASSERT_GT(model.rows_read(), 100U) << "schedule " << seed;
    ASSERT_GT(model.rows_written(), 4U * kCapacity) << "schedule " << seed;
  }
}

}  // namespace
}  // namespace tetrion
