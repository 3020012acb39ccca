#include "services/learner/rows_endpoint.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const RowsChoice& choice, const CurveOptions& curve = {}) {
  try {
    CheckRowsChoice(choice, curve);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(RowsEndpointTest, WrongAddressesNameOptionAndForm) {
  EXPECT_EQ(RefusalOf({}), "");
  EXPECT_EQ(
      RefusalOf({.bind = "tcp://0.0.0.0:9001", .advertise = "learner:9001", .insecure = true}), "");
  EXPECT_THAT(RefusalOf({.bind = "ipc:///tmp/rows"}), HasSubstr("tcp://0.0.0.0:9001"));
  EXPECT_THAT(RefusalOf({.bind = "0.0.0.0:9001"}), HasSubstr("--rows-bind is '0.0.0.0:9001'"));
  EXPECT_THAT(RefusalOf({.advertise = "learner:9001"}), HasSubstr("give --rows-bind"));
  EXPECT_THAT(RefusalOf({.bind = "tcp://127.0.0.1:9001", .advertise = "tcp://learner:9001"}),
              HasSubstr("must be host:port"));
}

TEST(RowsEndpointTest, RowsAreEncryptedWhereTheControlChannelIs) {
  const RowsChoice open = {.bind = "tcp://0.0.0.0:9001"}, local = {.bind = "tcp://127.0.0.1:0"};
  const CurveOptions whole = {.key = "k", .server = "s", .allow = "a"};
  EXPECT_EQ(RefusalOf(open, whole), "");
  EXPECT_EQ(RefusalOf(local, whole), "");
  EXPECT_EQ(RefusalOf({}, whole), "");
  EXPECT_EQ(RefusalOf(local), "");
  EXPECT_THAT(RefusalOf(open), HasSubstr("--rows-bind tcp://0.0.0.0:9001 is open"));
  const CurveOptions client = {.key = "k", .server = "s"};
  EXPECT_EQ(RefusalOf({}, client), "");
  const RowsChoice insecure = {.bind = "tcp://0.0.0.0:9001", .insecure = true};
  for (const RowsChoice& choice : {open, local, insecure}) {
    EXPECT_THAT(RefusalOf(choice, client), HasSubstr("--curve-key without --curve-allow"));
  }
  EXPECT_THAT(RefusalOf(open, {.key = "k", .allow = "a"}), HasSubstr("needs --curve-server"));
}

TEST(RowsEndpointTest, ActorsAreToldTheBoundAddressUnlessItMeansEveryInterface) {
  EXPECT_EQ(AdvertisedRows({}, "tcp://10.0.0.7:9001"), "10.0.0.7:9001");
  EXPECT_EQ(AdvertisedRows({}, "tcp://[fe80::1]:9001"), "[fe80::1]:9001");
  EXPECT_EQ(AdvertisedRows({.advertise = "learner:1"}, "tcp://0.0.0.0:9001"), "learner:1");
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  if (!IsHostPort(std::string(name) + ":9001")) GTEST_SKIP() << "this host has no proper name";
  EXPECT_EQ(AdvertisedRows({}, "tcp://0.0.0.0:9001"), std::string(name) + ":9001");
  EXPECT_EQ(AdvertisedRows({}, "tcp://[::]:9001"), std::string(name) + ":9001");
}

}  // namespace
}  // namespace tetrion::learner
