#include "services/common/health_check.h"

#include <gmock/gmock.h>

#include "lib/core/error.h"
#include "lib/http/http_endpoint.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

class HealthCheckTest : public ::testing::Test {
 protected:
  HealthCheckTest() { service_.Start(); }
  // What is said on stderr.
  std::string Ask(const HealthCheck& check, const std::string& bind, int expected) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(AskHealth(check, bind), expected);
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Port() const { return service_.address().substr(service_.address().rfind(':')); }

  MetricsRegistry metrics_;
  Readiness now_{.ready = true};
  HttpEndpoint service_{"127.0.0.1:0", metrics_, [this] { return now_; }};
};

TEST_F(HealthCheckTest, AReadyServiceIsWellAndNothingIsSaid) {
  EXPECT_EQ(Ask({.command = "healthcheck"}, service_.address(), 0), "");
  EXPECT_EQ(Ask({.command = "healthcheck"}, "0.0.0.0" + Port(), 0), "");
}

TEST_F(HealthCheckTest, AServiceThatIsNotReadySaysWhyAndLives) {
  now_ = {.ready = false, .reason = "no coordinator"};
  EXPECT_THAT(Ask({.command = "healthcheck"}, service_.address(), 1),
              HasSubstr("status 503: {\"ready\":false,\"reason\":\"no coordinator\"}"));
  EXPECT_EQ(Ask({.command = "healthcheck", .live = true}, service_.address(), 0), "");
}

TEST_F(HealthCheckTest, AServiceThatIsNotThereIsNotWell) {
  const std::string address = service_.address();
  service_.Stop();
  EXPECT_THAT(Ask({.command = "healthcheck", .live = true}, address, 1),
              HasSubstr("http://" + address + "/livez"));
}

TEST_F(HealthCheckTest, APortThatOnlyTheServiceKnowsIsSaidToBeTheTrouble) {
  EXPECT_THAT(Ask({.command = "healthcheck"}, "127.0.0.1:0", 1),
              HasSubstr("TETRION_HTTP_BIND=0.0.0.0:9464"));
}

TEST(HealthCheckOptionsTest, OnlyTheCommandIsTaken) {
  EXPECT_NO_THROW(CheckHealthCheck({}));
  EXPECT_NO_THROW(CheckHealthCheck({.command = "healthcheck", .live = true}));
  EXPECT_THROW(CheckHealthCheck({.command = "health"}), Error);
  EXPECT_THROW(CheckHealthCheck({.live = true}), Error);
}

}  // namespace
}  // namespace tetrion
