// Clients of a host whose name server does not answer, or knows addresses of IPv6 too. A program of
// its own: it replaces the C library's getaddrinfo, which libzmq calls in its own thread.

#include <dlfcn.h>
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

using GetAddrInfo = int(const char*, const char*, const addrinfo*, addrinfo**);

// The address of that family, null without one: of a name of IPv6 alone, of both, or as given.
const char* AddressOf(const char* name, int family) {
  const std::string_view asked = name == nullptr ? "" : name;
  if (asked == "six.invalid") return family == AF_INET6 ? "::1" : nullptr;
  if (asked == "four-and-six.invalid") return family == AF_INET6 ? "::1" : "127.0.0.1";
  return name;
}

int LookUpSlowly(Lookups& lookups) {
  ++lookups.begun;
  std::this_thread::sleep_for(std::chrono::milliseconds(lookups.each_ms));
  ++lookups.ended;
  return EAI_AGAIN;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  for (Lookups* lookups : {&slow, &slower}) {
    if (name != nullptr && name == lookups->name) return LookUpSlowly(*lookups);
  }
  const char* const address = AddressOf(name, hints != nullptr ? hints->ai_family : AF_UNSPEC);
  if (name != nullptr && address == nullptr) return EAI_NONAME;
  static const auto real = reinterpret_cast<GetAddrInfo*>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(address, service, hints, found);
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

// Whether a client of that name reaches a server at `endpoint` within so many reopenings.
bool Reaches(const std::string& name, const std::string& endpoint, int reopenings) {
  FakeClock clock;
  ControlServer server(endpoint);
  const std::string port = server.endpoint().substr(server.endpoint().rfind(':'));
  ControlClient client({.endpoint = "tcp://" + name + port}, clock);
  for (int i = 0;; ++i) {
    EXPECT_EQ(client.Send(Heartbeat{.phase = "running"}), SendStatus::kOk);
    // What was looked up wrongly will not come, however long this waits.
    if (server.Poll(i < reopenings ? 300 : 10'000).socket) return true;
    if (i == reopenings) return false;
    clock.AdvanceMs(60'000);
    EXPECT_TRUE(client.Reopen());
  }
}

TEST(HostNameTest, NameOfAnAddressOfIpv6AloneIsReachedByTheSecondConnection) {
  try {
    const ControlServer there("tcp://[::1]:0");
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  EXPECT_TRUE(Reaches("six.invalid", "tcp://[::1]:0", 1));
}

TEST(HostNameTest, OfANameWithAddressesOfBothFamiliesIpv4IsFirst) {
  EXPECT_TRUE(Reaches("four-and-six.invalid", "tcp://127.0.0.1:0", 0));
}

}  // namespace
}  // namespace tetrion::wire
