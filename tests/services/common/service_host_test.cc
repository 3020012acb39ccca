#include "services/common/service_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/http/http_get.h"

namespace tetrion {
namespace {

constexpr int kHttpTimeoutMs = 5000;

// A link agent whose cycles the test writes.
class FakeLink final : public Agent {
 public:
  explicit FakeLink(std::function<void()> cycle) : cycle_(std::move(cycle)) {}
  std::string name() const override { return "link"; }
  int DoWork() override {
    cycle_();
    ++cycles;
    return 0;
  }
  void OnClose() override { closed = true; }

  std::atomic<int> cycles{0};
  std::atomic<bool> closed{false};

 private:
  const std::function<void()> cycle_;
};

class ServiceHostTest : public ::testing::Test {
 protected:
  std::string Page(const std::string& path) {
    return HttpGet(host_.http_address(), path, kHttpTimeoutMs);
  }
  // What Run throws; empty when it returns.
  std::string ErrorOfRun(Agent& link, const ServiceHost::Steps& steps) {
    try {
      host_.Run(link, steps);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // -1: it is not served.
  double ScrapedMaxCycle() const {
    const std::string series = "\ntetrion_agent_max_cycle_seconds{agent=\"link\"} ";
    const std::string text = metrics_.SerializeText();
    const std::size_t at = text.find(series);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size()));
  }
  static void Throw(const char* text) { throw Error(ExitCode::kTryAgain, text); }

  MetricsRegistry metrics_;
  std::atomic<int> errors_{0};
  ServiceHost host_{metrics_, "127.0.0.1:0", [] { return Readiness{.ready = true}; },
                    [this] { ++errors_; }};
};

TEST_F(ServiceHostTest, ServesWhileTheLinkRunsAndEndsInOrder) {
  FakeLink link([] {});
  host_.AddJson("/status", [] { return std::string("{}"); });
  std::vector<std::string> order;
  host_.Run(link, {.done = [&] { return link.cycles > 2; },
                   .stop_rest =
                       [&] {
                         order.push_back(link.closed ? "link closed" : "link runs");
                         order.push_back(Page("/status"));
                       }});
  EXPECT_EQ(order, (std::vector<std::string>{"link closed", "{}"}));
  EXPECT_THROW(Page("/status"), Error);
  EXPECT_EQ(errors_, 0);
}

TEST_F(ServiceHostTest, ReadinessAndLostLogLinesAreServed) {
  FakeLink link([] {});
  std::string ready, metrics;
  host_.Run(link, {.done = [&] { return !metrics.empty(); },
                   .wait =
                       [&] {
                         ready = Page("/readyz");
                         metrics = Page("/metrics");
                       }});
  EXPECT_NE(ready.find("true"), std::string::npos) << ready;
  EXPECT_NE(metrics.find("tetrion_log_lines_lost_total"), std::string::npos) << metrics;
}

TEST_F(ServiceHostTest, ErrorOfTheLinkEndsTheWaitAndIsThrownOnceTheRestHasStopped) {
  FakeLink link([] { Throw("the link is broken"); });
  bool stopped = false;
  EXPECT_EQ(ErrorOfRun(link, {.done = [] { return false; }, .stop_rest = [&] { stopped = true; }}),
            "the link is broken");
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(host_.failed());
  EXPECT_EQ(errors_, 1);
}

TEST_F(ServiceHostTest, FirstErrorOfAnyThreadIsTheOneThatIsThrown) {
  FakeLink link([] {});
  const auto fail = [this](const char* text) {
    host_.Fail(std::make_exception_ptr(Error(ExitCode::kTryAgain, text)));
  };
  EXPECT_FALSE(host_.failed());
  ::testing::internal::CaptureStdout();
  const std::string thrown = ErrorOfRun(link, {.done = [this] { return host_.failed(); },
                                               .wait =
                                                   [&] {
                                                     fail("first");
                                                     fail("second");
                                                   }});
  const std::string logged = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(thrown, "first");
  EXPECT_EQ(logged.find("first"), std::string::npos) << logged;
  EXPECT_NE(logged.find("second"), std::string::npos) << logged;
  EXPECT_EQ(errors_, 1) << "the end is asked for once";
}

TEST_F(ServiceHostTest, StepThatThrowsLeavesNoThreadBehind) {
  FakeLink link([] {});
  EXPECT_EQ(ErrorOfRun(link, {.done = [&] { return link.cycles > 0; },
                              .stop_rest = [] { Throw("the last checkpoint"); }}),
            "the last checkpoint");
  EXPECT_TRUE(link.closed);
  EXPECT_THROW(Page("/readyz"), Error);
}

TEST_F(ServiceHostTest, AgeOfACycleGrowsOnlyWhileTheLinkRuns) {
  EXPECT_EQ(host_.LinkCycleAgeNs(), 0);
  std::atomic<bool> hang{true};
  FakeLink link([&hang] {
    while (hang) std::this_thread::yield();
  });
  host_.Run(link, {.done =
                       [&] {
                         if (host_.LinkCycleAgeNs() > kNanosPerMilli) hang = false;
                         return !hang;
                       },
                   .wait = [] { std::this_thread::yield(); }});
  EXPECT_EQ(host_.LinkCycleAgeNs(), 0);
}

TEST(MemberReadinessTest, EndsWithTheLinksProblemsAndWithAThreadThatHangs) {
  EXPECT_TRUE(MemberReadiness("", kMaxLinkCycleNs).ready);
  EXPECT_EQ(MemberReadiness("no coordinator yet", 0).reason, "no coordinator yet");
  EXPECT_FALSE(MemberReadiness("no coordinator yet", 0).ready);
  const Readiness stuck = MemberReadiness("", 2 * kMaxLinkCycleNs);
  EXPECT_FALSE(stuck.ready);
  EXPECT_NE(stuck.reason.find("10 s"), std::string::npos) << stuck.reason;
}

TEST_F(ServiceHostTest, AddressInUseIsRefusedAtOnce) {
  try {
    const ServiceHost second(metrics_, host_.http_address(), [] { return Readiness{}; }, [] {});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

TEST(TotalsOfTest, EveryCountIsTaken) {
  const LinkTotals totals = TotalsOf({.messages_in = 1,
                                      .messages_out = 2,
                                      .bytes_in = 3,
                                      .bytes_out = 4,
                                      .malformed = 5,
                                      .reconnects = 6});
  EXPECT_EQ(totals.messages_in, 1U);
  EXPECT_EQ(totals.messages_out, 2U);
  EXPECT_EQ(totals.bytes_in, 3U);
  EXPECT_EQ(totals.bytes_out, 4U);
  EXPECT_EQ(totals.malformed, 5U);
  EXPECT_EQ(totals.reconnects, 6U);
}

TEST_F(ServiceHostTest, LongestCycleOfTheLinkIsScraped) {
  FakeLink link([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  EXPECT_EQ(ErrorOfRun(link, {.done = [&] { return link.cycles > 1; }}), "");
  EXPECT_GE(ScrapedMaxCycle(), 0.002);
}

TEST_F(ServiceHostTest, CycleThatHangsIsScrapedBeforeItEnds) {
  std::atomic<bool> hang{true};
  FakeLink link([&hang] {
    while (hang) std::this_thread::yield();
  });
  double scraped = -1;
  host_.Run(link, {.done = [&] { return !hang; },
                   .wait =
                       [&] {
                         if (host_.LinkCycleAgeNs() <= 2 * kNanosPerMilli) return;
                         scraped = ScrapedMaxCycle();
                         hang = false;
                       }});
  EXPECT_GT(scraped, 0.002);
}

}  // namespace
}  // namespace tetrion
