// Questions to a host whose name server does not answer. A program of its own: it replaces the C
// library's getaddrinfo.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <string>
#include <string_view>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/http/http_endpoint.h"
#include "lib/http/http_get.h"
#include "lib/metrics/registry.h"

namespace {

std::atomic<bool> answers{false};  // whether the name server does
std::atomic<int> begun{0};         // look-ups that it was asked for
std::atomic<int> ended{0};         // those of them that it has answered

using GetAddrInfo = int(const char*, const char*, const addrinfo*, addrinfo**);

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  static const auto real = reinterpret_cast<GetAddrInfo*>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool looks_up = (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (!looks_up || std::string_view(name) != "here.invalid") {
    return real(name, service, hints, found);
  }
  ++begun;
  answers.wait(false);
  const int error = real("127.0.0.1", service, hints, found);
  ++ended;
  ended.notify_all();
  return error;
}

namespace tetrion {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& address, int timeout_ms) {
  try {
    (void)HttpGet(address, "/livez", timeout_ms);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    return error.what();
  }
  return "no error";
}

constexpr int kPatienceMs = 60'000;

class SlowNamesTest : public ::testing::Test {
 protected:
  SlowNamesTest() {
    answers = false;
    begun = 0;
    ended = 0;
  }
};

TEST_F(SlowNamesTest, LookUpThatEndsAfterItsQuestionAnswersTheNextOne) {
  MetricsRegistry metrics;
  HttpEndpoint endpoint("127.0.0.1:0", metrics, [] { return Readiness{.ready = true}; });
  endpoint.Start();
  const std::string address = endpoint.address();
  const std::string named = "here.invalid" + address.substr(address.rfind(':'));
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(ErrorOf(named, 1), HasSubstr("here.invalid is still being looked up after 1 ms"));
  }
  answers = true;
  answers.notify_all();
  EXPECT_EQ(ErrorOf(named, kPatienceMs), "no error");
  EXPECT_EQ(begun, 1);
  endpoint.Stop();
}

TEST_F(SlowNamesTest, LookUpEndsWithTheDeadlineAndFourAreUnderWayAtMost) {
  MetricsRegistry metrics;
  HttpEndpoint endpoint("127.0.0.1:0", metrics, [] { return Readiness{.ready = true}; });
  endpoint.Start();
  const std::string address = endpoint.address();
  const std::string named = "here.invalid" + address.substr(address.rfind(':'));
  static int port = 0;  // others when the test is repeated: what was found for these is kept
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(ErrorOf("here.invalid:" + std::to_string(++port), 1),
                HasSubstr("here.invalid is still being looked up after 1 ms"));
  }
  EXPECT_THAT(ErrorOf(named, kPatienceMs), HasSubstr("here.invalid was not looked up: four"));
  EXPECT_THAT(HttpGet(address, "/livez", kPatienceMs), HasSubstr("alive")) << "no name";
  answers = true;
  answers.notify_all();
  for (int n = 0; n < 4; n = ended) ended.wait(n);
  std::string answer = ErrorOf(named, kPatienceMs);
  // The thread of the last look-up ends a moment after it.
  while (answer.find("was not looked up") != std::string::npos)
    answer = ErrorOf(named, kPatienceMs);
  EXPECT_EQ(answer, "no error");
  endpoint.Stop();
}

}  // namespace
}  // namespace tetrion
