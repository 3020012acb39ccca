#include "lib/core/address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/core/error.h"

namespace tetrion {
namespace {

std::string Told(const std::string& wanted, const std::string& bound) {
  return Advertised("--http-advertise", wanted, bound);
}

std::string Name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

TEST(AddressTest, AnAddressThatOthersCanUseIsToldAsItIs) {
  for (const char* bound :
       {"127.0.0.1:9464", "10.0.0.3:1", "[fe80::1]:80", "learner-0.learner:7"}) {
    EXPECT_EQ(Told("", bound), bound);
  }
}

TEST(AddressTest, EveryAddressOfTheMachineIsToldByItsName) {
  EXPECT_EQ(Told("", "0.0.0.0:9464"), Name() + ":9464");
  EXPECT_EQ(Told("", "[::]:9464"), Name() + ":9464");
  EXPECT_EQ(Told("", "*:9464"), Name() + ":9464");
}

TEST(AddressTest, WantedHostTakesTheBoundPortUnlessItHasItsOwn) {
  EXPECT_EQ(Told("actor-3.actors", "0.0.0.0:9464"), "actor-3.actors:9464");
  EXPECT_EQ(Told("gateway:80", "0.0.0.0:9464"), "gateway:80");
  EXPECT_EQ(Told("10.1.2.3", "127.0.0.1:5"), "10.1.2.3:5");
  EXPECT_EQ(Told("[fe80::1]", "[::]:5"), "[fe80::1]:5");
}

TEST(AddressTest, WhatIsNoAddressIsRefusedWithTheOption) {
  for (const char* wanted : {"a b", "host:0", "host:65536", "host:", ":5", "fe80::1", "http://a"}) {
    try {
      (void)Told(wanted, "0.0.0.0:9464");
      ADD_FAILURE() << wanted;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_EQ(std::string(error.what()).find(std::string("--http-advertise ") + wanted), 0U);
    }
  }
}

TEST(AddressTest, BoundAddressThatNoMemberCouldTellIsRefused) {
  for (const char* bound : {"a_b:1", "::1:80"}) EXPECT_THROW((void)Told("", bound), Error) << bound;
}

TEST(AddressTest, TheMachineItselfAsksByItsLoopback) {
  EXPECT_EQ(FromHere("0.0.0.0:9464"), "127.0.0.1:9464");
  EXPECT_EQ(FromHere("[::]:9464"), "[::1]:9464");
  EXPECT_EQ(FromHere("10.0.0.3:9464"), "10.0.0.3:9464");
}

std::string TcpRefusal(const std::string& endpoint, TcpUse use) {
  try {
    CheckEndpoint("--bind", endpoint, use);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(AddressTest, TcpAddressIsOneHostAndOnePort) {
  for (const TcpUse use : {TcpUse::kListen, TcpUse::kConnect}) {
    for (const char* good : {"tcp://10.0.0.1:1", "tcp://[::1]:65535", "tcp://[fe80::1%eth0]:80",
                             "tcp://my_coordinator:9300", "ipc:///tmp/a:b"}) {
      EXPECT_EQ(TcpRefusal(good, use), "") << good;
    }
    for (const char* bad :
         {"tcp://0.0.0.0:99999", "tcp://0.0.0.0:70000", "tcp://0.0.0.0:93x", "tcp://0.0.0.0:-1",
          "tcp://0.0.0.0:", "tcp://0.0.0.0", "tcp://:1", "tcp://", "tcp://0.0.0.0:*",
          "tcp://::1:80", "tcp://127.0.0.1:1;0.0.0.0:9300", "tcp://127.0.0.1;0.0.0.0:9300",
          "tcp://[::1]:1;[::]:9300", "tcp://[]:1", "tcp://[::1:1", "tcp://a b:1", "tcp://*x:1"}) {
      EXPECT_EQ(TcpRefusal(bad, use).find(std::string("--bind ") + bad + ": expected"), 0U) << bad;
    }
  }
}

TEST(AddressTest, AddressOfAnotherSchemeOrNoneIsRefused) {
  EXPECT_EQ(TcpRefusal("", TcpUse::kConnect), "");
  for (const char* bad : {"inproc://x", "udp://127.0.0.1:1", "127.0.0.1:1", "tcp:/127.0.0.1:1"}) {
    EXPECT_EQ(TcpRefusal(bad, TcpUse::kConnect),
              std::string("--bind ") + bad + ": expected tcp://host:port or ipc:///path");
  }
}

TEST(AddressTest, FreePortAndEveryHostAreForAListenerAlone) {
  for (const char* endpoint : {"tcp://10.0.0.1:0", "tcp://*:1", "tcp://eth0.1:0"}) {
    EXPECT_EQ(TcpRefusal(endpoint, TcpUse::kListen), "") << endpoint;
  }
  for (const char* endpoint : {"tcp://10.0.0.1:0", "tcp://*:1"}) {
    EXPECT_NE(TcpRefusal(endpoint, TcpUse::kConnect), "") << endpoint;
  }
}

TEST(AddressTest, LoopbackIsToldFromNamesThatBeginLikeIt) {
  for (const char* loopback : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(loopback)) << loopback;
  }
  for (const char* other :
       {"127.example.org:1", "localhost.example.org:1", "[::1:2]:1", "0.0.0.0:1"}) {
    EXPECT_FALSE(IsLoopback(other)) << other;
  }
}

TEST(AddressTest, BracketThatIsNotClosedIsNoAddress) {
  EXPECT_THROW((void)ParseHostPort("HTTP", "[::1:80"), Error);
}

TEST(AddressTest, NameIsToldFromAnAddress) {
  EXPECT_TRUE(NamesHost("tcp://localhost:1"));
  EXPECT_TRUE(NamesHost("tcp://10.0.0.example:1"));
  for (const char* no : {"tcp://10.0.0.1:1", "tcp://[::1]:1", "ipc:///tmp/x"}) {
    EXPECT_FALSE(NamesHost(no)) << no;
  }
}

TEST(AddressTest, PartsOfAnAddressAreFoundWithAndWithoutBrackets) {
  EXPECT_EQ(ParseHostPort("HTTP", "host-1.x:80").host, "host-1.x");
  EXPECT_EQ(ParseHostPort("HTTP", "host-1.x:65535").port, 65535);
  EXPECT_EQ(ParseHostPort("HTTP", "[fe80::1]:0").host, "fe80::1");
  EXPECT_EQ(ParseHostPort("HTTP", "[fe80::1]:0").port, 0);
  for (const char* none : {"", "host", ":80", "host:", "host:65536", "host:8x", "::1:0"}) {
    EXPECT_THROW((void)ParseHostPort("HTTP", none), Error) << none;
  }
}

}  // namespace
}  // namespace tetrion
