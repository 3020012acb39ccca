#include "services/common/unacked.h"

#include <gtest/gtest.h>

#include <vector>

namespace tetrion {
namespace {

struct Fixture {
  FakeClock clock;
  Unacked<wire::Abandon> box{clock, kNanosPerSecond};
  std::vector<std::uint64_t> sent;

  void Add() {
    const std::uint64_t number = box.NextNumber();
    box.Add(number, {.request = number});
  }
  void SendDue(std::size_t room = 100) {
    box.SendDue([&](wire::Abandon& message) {
      if (sent.size() >= room) return false;
      sent.push_back(message.request);
      return true;
    });
  }
};

TEST(UnackedTest, SendsOnceAndAgainOnlyWhenOverdue) {
  Fixture f;
  f.Add();
  f.SendDue();
  f.SendDue();
  EXPECT_EQ(f.sent, (std::vector<std::uint64_t>{1}));
  f.clock.AdvanceMs(999);
  f.SendDue();
  EXPECT_EQ(f.sent.size(), 1U);
  f.clock.AdvanceMs(1);
  f.SendDue();
  EXPECT_EQ(f.sent, (std::vector<std::uint64_t>{1, 1}));
}

TEST(UnackedTest, FullSocketStopsTheRoundAndTheRestGoesNextTime) {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.Add();
  f.SendDue(/*room=*/2);
  EXPECT_EQ(f.sent, (std::vector<std::uint64_t>{1, 2}));
  f.SendDue();
  EXPECT_EQ(f.sent, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(UnackedTest, AcknowledgementsMayComeInAnyOrderAndTwice) {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.Add();
  std::vector<std::uint64_t> settled;
  const auto settle = [&](const wire::Abandon& message) { settled.push_back(message.request); };
  EXPECT_TRUE(f.box.Acknowledge(2, settle));
  EXPECT_FALSE(f.box.Acknowledge(2, settle));
  EXPECT_FALSE(f.box.Acknowledge(77, settle));
  EXPECT_TRUE(f.box.Acknowledge(1, settle));
  EXPECT_EQ(settled, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(f.box.size(), 1U);
}

TEST(UnackedTest, ReconnectSendsEverythingAgainAtOnce) {
  Fixture f;
  f.Add();
  f.Add();
  f.SendDue();
  f.box.ResendAll();
  f.SendDue();
  EXPECT_EQ(f.sent, (std::vector<std::uint64_t>{1, 2, 1, 2}));
}

}  // namespace
}  // namespace tetrion
