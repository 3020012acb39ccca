#include "lib/wire/input_bound.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tetrion::wire {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr double kSlack = 5000;  // bytes that a connection may bring beside its messages

// Two ends of a TCP connection.
struct Ends {
  int near = -1, far = -1;  // the listener's end, the peer's
};

// A listener of this process, its connections and their bound. Time moves where a test says so.
class InputBoundTest : public ::testing::Test {
 protected:
  InputBoundTest() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, Address(), sizeof(address_)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(getsockname(listener_, Address(), &size), 0);
    bound_ = std::make_unique<InputBound>(ntohs(address_.sin_port), clock_);
  }
  ~InputBoundTest() override {
    for (const int fd : open_) close(fd);
    close(listener_);
  }

  // A connection that the bound has not looked at yet, and one that it has.
  Ends Open() {
    Ends ends;
    ends.far = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(ends.far, Address(), sizeof(address_)), 0);
    ends.near = accept(listener_, nullptr, nullptr);
    open_.insert(open_.end(), {ends.near, ends.far});
    return ends;
  }
  Ends Connect() {
    const Ends ends = Open();
    EXPECT_EQ(Look(kMiB), 0);
    return ends;
  }
  // The peer sends so much, and the near end reads it into the process's memory.
  static void Bring(const Ends& ends, std::size_t bytes) {
    std::vector<char> buffer(std::size_t{64} << 10);
    while (bytes > 0) {
      const std::size_t some = std::min(bytes, buffer.size());
      ASSERT_EQ(send(ends.far, buffer.data(), some, 0), static_cast<ssize_t>(some));
      ASSERT_EQ(recv(ends.near, buffer.data(), some, MSG_WAITALL), static_cast<ssize_t>(some));
      bytes -= some;
    }
  }
  int Look(std::uint64_t most_bytes) {
    clock_.AdvanceNs(InputBound::kLookEveryNs);
    return bound_->Look(most_bytes);
  }
  // Waits for a hang-up only where one is `expected`.
  static bool HungUp(const Ends& ends, bool expected) {
    pollfd far = {.fd = ends.far, .events = POLLIN, .revents = 0};
    char byte;
    return poll(&far, 1, expected ? 5000 : 0) == 1 && recv(ends.far, &byte, 1, 0) == 0;
  }

  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }

  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address_{};
  FakeClock clock_;
  std::vector<int> open_;
  std::unique_ptr<InputBound> bound_;
};

TEST_F(InputBoundTest, InputThatBecomesNoMessageEndsItsConnection) {
  const Ends peer = Connect();
  Bring(peer, 2 * kMiB);
  EXPECT_EQ(Look(3 * kMiB), 0);
  EXPECT_NEAR(static_cast<double>(bound_->waiting_bytes()), 2.0 * kMiB, kSlack);
  EXPECT_FALSE(HungUp(peer, false));
  EXPECT_EQ(Look(kMiB), 1);
  EXPECT_TRUE(HungUp(peer, true));
  EXPECT_EQ(bound_->waiting_bytes(), 0U);
}

TEST_F(InputBoundTest, MessagesThatWereTakenAreNoInputThatWaits) {
  const Ends peer = Connect();
  for (int i = 0; i < 10; ++i) {
    Bring(peer, kMiB);
    bound_->Took(peer.near, kMiB);
  }
  EXPECT_EQ(Look(kMiB / 2), 0);
  EXPECT_EQ(bound_->waiting_bytes(), 0U);
  Bring(peer, kMiB);  // what was taken with room to spare buys nothing later
  EXPECT_EQ(Look(kMiB / 2), 1);
}

TEST_F(InputBoundTest, WhatComesAndIsTakenBeforeTheFirstLookCounts) {
  const Ends silent = Open(), talks = Open();
  Bring(silent, 2 * kMiB);
  Bring(talks, 3 * kMiB);
  bound_->Took(talks.near, 3 * kMiB);
  EXPECT_EQ(Look(kMiB), 1);
  EXPECT_TRUE(HungUp(silent, true));
  EXPECT_FALSE(HungUp(talks, false));
}

TEST_F(InputBoundTest, TheOneWithTheMostIsHungUpOnAndTheRestGoesOn) {
  const Ends modest = Connect(), greedy = Connect();
  Bring(modest, kMiB);
  Bring(greedy, 3 * kMiB);
  EXPECT_EQ(Look(2 * kMiB), 1);
  EXPECT_TRUE(HungUp(greedy, true));
  EXPECT_FALSE(HungUp(modest, false));
  EXPECT_NEAR(static_cast<double>(bound_->waiting_bytes()), kMiB, kSlack);
}

TEST_F(InputBoundTest, ManyThatAreModestAreTooMuchTogether) {
  std::vector<Ends> peers;
  for (int i = 0; i < 4; ++i) peers.push_back(Connect());
  for (const Ends& peer : peers) Bring(peer, kMiB);
  EXPECT_EQ(Look(2 * kMiB + kMiB / 2), 2);
}

TEST_F(InputBoundTest, HeartbeatsOfAQuietConnectionNeverAddUp) {
  const Ends peer = Connect();
  for (int hour = 0; hour < 1000; ++hour) {
    clock_.AdvanceMs(3'600'000);
    Bring(peer, 3600 * 20);  // plain pings and answers: under 20 bytes a second
    ASSERT_EQ(Look(kMiB / 4), 0) << hour;
  }
  EXPECT_EQ(bound_->waiting_bytes(), 0U);
}

TEST_F(InputBoundTest, OtherSocketsOfTheProcessAreNotLookedAt) {
  const Ends peer = Connect();
  InputBound elsewhere(1, clock_);
  Bring(peer, 2 * kMiB);
  clock_.AdvanceNs(InputBound::kLookEveryNs);
  EXPECT_EQ(elsewhere.Look(0), 0);
  EXPECT_EQ(elsewhere.waiting_bytes(), 0U);
  EXPECT_FALSE(HungUp(peer, false));
}

TEST_F(InputBoundTest, ConnectionWithAnOldOnesDescriptorBeginsAnew) {
  const Ends first = Connect();
  Bring(first, 3 * kMiB);
  bound_->Took(first.near, 3 * kMiB);
  EXPECT_EQ(Look(kMiB), 0);
  for (const int fd : {first.near, first.far}) close(fd);
  open_.clear();
  const Ends second = Open();
  ASSERT_EQ(second.near, first.near);
  Bring(second, kMiB);
  EXPECT_EQ(Look(kMiB), 0);
  EXPECT_NEAR(static_cast<double>(bound_->waiting_bytes()), kMiB, kSlack);
}

}  // namespace
}  // namespace tetrion::wire
