#include "lib/setup/curve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

std::string CheckComplaint(const CurveOptions& options) {
  return Complaint([&] { CheckCurveOptions(options); });
}

TEST(CurveOptionsTest, HalfOfTheOptionsIsRefusedWithTheMissingOne) {
  EXPECT_EQ(CheckComplaint({}), "");
  EXPECT_EQ(CheckComplaint({.key = "k", .server = "s"}), "");
  EXPECT_EQ(CheckComplaint({.key = "k", .allow = "a"}), "");
  EXPECT_EQ(CheckComplaint({.key = "k", .server = "s", .allow = "a"}), "");
  EXPECT_THAT(CheckComplaint({.server = "s"}),
              AllOf(HasSubstr("--curve-server needs --curve-key"), HasSubstr("./tetrion keygen")));
  EXPECT_THAT(CheckComplaint({.allow = "a"}), HasSubstr("--curve-allow needs --curve-key"));
  EXPECT_THAT(CheckComplaint({.key = "k"}),
              AllOf(HasSubstr("--curve-server"), HasSubstr("--curve-allow")));
}

TEST(CurveOptionsTest, FilesBecomeWhatSocketsAreGiven) {
  std::string folder = std::filesystem::temp_directory_path() / "tetrion-curve-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const wire::CurveKeys keys = wire::CurveKeys::Make();
  wire::WriteKeyFiles(folder + "/me", keys, false);
  const CurveOptions options = {
      .key = folder + "/me.secret", .server = folder + "/me.pub", .allow = folder};
  const wire::ClientSecurity client = ClientSecurityOf(options);
  EXPECT_EQ(client.own.secret_key, keys.secret_key);
  EXPECT_EQ(client.server_key, keys.public_key);
  const wire::ServerSecurity server = ServerSecurityOf(options);
  EXPECT_TRUE(server.on());
  EXPECT_EQ(server.allowed->size(), 1U);
  EXPECT_EQ(OwnKeysOf(options).public_key, keys.public_key);
  EXPECT_TRUE(OwnKeysOf({}).empty());
  EXPECT_FALSE(ClientSecurityOf({.key = options.key, .allow = folder}).on());
  EXPECT_FALSE(ServerSecurityOf({.key = options.key, .server = options.server}).on());
  EXPECT_THAT(Complaint([&] { ClientSecurityOf({.key = folder + "/no.secret", .server = "s"}); }),
              HasSubstr("no.secret: No such file"));
  std::filesystem::remove_all(folder);
}

TEST(CurveOptionsTest, OpenAddressNeedsKeysOrInsecureSpelledOut) {
  const CurveOptions keys = {.key = "k", .allow = "a"}, none;
  const auto complaint = [](const std::string& endpoint, const CurveOptions& curve, bool insecure) {
    return Complaint([&] { RefuseOpenBind("--rows-bind", endpoint, curve, insecure); });
  };
  EXPECT_THAT(complaint("tcp://0.0.0.0:0", none, false),
              AllOf(HasSubstr("--rows-bind tcp://0.0.0.0:0"), HasSubstr("./tetrion keygen"),
                    HasSubstr("--curve-key and --curve-allow"), HasSubstr("--insecure")));
  EXPECT_NE(complaint("tcp://*:5000", none, false), "");
  EXPECT_NE(complaint("tcp://10.1.2.3:5000", {.key = "k", .server = "s"}, false), "");
  EXPECT_EQ(complaint("tcp://0.0.0.0:0", keys, false), "");
  EXPECT_EQ(complaint("tcp://0.0.0.0:0", none, true), "");
  EXPECT_EQ(complaint("tcp://127.0.0.1:0", none, false), "");
  EXPECT_EQ(complaint("tcp://localhost:0", none, false), "");
  EXPECT_EQ(complaint("tcp://[::1]:0", none, false), "");
  EXPECT_EQ(complaint("ipc:///tmp/x", none, false), "");
  EXPECT_NE(complaint("tcp://localhost.example.org:0", none, false), "");
  EXPECT_NE(complaint("tcp://[::1:2]:0", none, false), "");
  for (const char* odd : {"tcp://127.0.0.1:1;0.0.0.0:9300", "tcp://127.0.0.1:99999"}) {
    EXPECT_THAT(complaint(odd, keys, true), HasSubstr(odd)) << "no such address";
  }
  EXPECT_THAT(complaint("ipc://@x", none, false), HasSubstr("every user of this machine"));
}

}  // namespace
}  // namespace tetrion
