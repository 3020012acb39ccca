// Clients of a host whose name server does not answer. A program of its own: it replaces the C
// library's getaddrinfo, which libzmq calls in its own thread.

#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/wire/session_link.h"
#include "lib/wire/socket.h"
#include "tests/lib/wire/quiet_owner_for_test.h"

namespace {

// What is known of one name.
struct Lookups {
  const std::string_view name;
  const int each_ms;
  std::atomic<int> begun{0}, ended{0};
};
// Look-ups of one test may go on into the next, and beyond the program's end.
Lookups slow{.name = "slow.invalid", .each_ms = 1'500};
Lookups slower{.name = "slower.invalid", .each_ms = 10'000};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name, const char*,
                                                                  const addrinfo*, addrinfo**) {
  Lookups& lookups = name != nullptr && name == slower.name ? slower : slow;
  ++lookups.begun;
  std::this_thread::sleep_for(std::chrono::milliseconds(lookups.each_ms));
  ++lookups.ended;
  return EAI_AGAIN;
}

namespace tetrion::wire {
namespace {

TEST(HostNameTest, LinkGivesUpThoughEachLookUpTakesLongerThanItsSilence) {
  QuietOwner owner;
  SessionLink link({.endpoint = [] { return CoordinatorPlace("tcp://slow.invalid:1"); },
                    .silence_ns = kNanosPerSecond / 2,
                    .give_up_ns = 4 * kNanosPerSecond},
                   owner);
  const Deadline deadline = Deadline::AfterMs(15'000);
  std::string told;
  while (told.empty() && !deadline.Passed()) {
    try {
      link.DoWork(5);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      told = error.what();
    }
  }
  EXPECT_NE(told.find("no coordinator for 4 s"), std::string::npos) << told;
  EXPECT_GT(slow.begun, 0) << "libzmq did not ask for the name here";
  EXPECT_GT(link.stats().reconnects, 0U);
}

TEST(HostNameTest, ClientReopensAndEndsWhileItsNameIsLookedUp) {
  const Deadline deadline = Deadline::AfterMs(5'000);
  {
    ControlClient client({.endpoint = "tcp://slower.invalid:1"});
    while (slower.begun == 0 && !deadline.Passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(slower.begun, 1) << "libzmq did not ask for the name here";
    EXPECT_TRUE(client.Reopen("tcp://slower.invalid:2"));
  }
  EXPECT_EQ(slower.ended, 0) << "it waited for the name";
}

}  // namespace
}  // namespace tetrion::wire
