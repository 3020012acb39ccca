#include "lib/setup/member.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/core/error.h"
#include "lib/run/run_folder.h"

namespace tetrion {
namespace {

std::string MemberRefusal(const MemberOptions& options) {
  try {
    CheckMemberOptions(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(MemberTest, NeedsExactlyOneWayToItsRun) {
  MemberOptions options;
  options.name = "actor-0";
  EXPECT_THROW(CheckMemberOptions(options), Error);
  options.run_folder = "runs/a";
  EXPECT_NO_THROW(CheckMemberOptions(options));
  options.coordinator = "tcp://127.0.0.1:1";
  EXPECT_NE(MemberRefusal(options).find("give one of the two"), std::string::npos);
}

TEST(MemberTest, CoordinatorWithoutAPortThatCanBeIsAUsageError) {
  MemberOptions options;
  options.name = "actor-0";
  for (const char* odd : {"tcp://h:0", "tcp://h:70000", "tcp://h"}) {
    options.coordinator = odd;
    EXPECT_EQ(MemberRefusal(options).find(std::string("--coordinator ") + odd), 0U) << odd;
  }
}

TEST(MemberTest, NameThatFitsNoFileNameOrLabelIsAUsageError) {
  MemberOptions options;
  options.run_folder = "runs/a";
  for (const char* name : {"", "caf\xe9", "a b", "a/b"}) {
    options.name = name;
    try {
      CheckMemberOptions(options);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
    }
  }
}

TEST(MemberTest, FixedAddressBeatsNothing) {
  MemberOptions options;
  options.coordinator = "tcp://127.0.0.1:77";
  options.give_up_s = 3;
  const wire::SessionLink::Config link = LinkConfigOf(options);
  EXPECT_EQ(link.endpoint().endpoint, "tcp://127.0.0.1:77");
  EXPECT_EQ(link.endpoint().run_id, 0U);
  EXPECT_EQ(link.give_up_ns, 3 * kNanosPerSecond);
}

TEST(MemberTest, EndpointIsReadAnewAndEmptyUntilItIsWritten) {
  char pattern[] = "/tmp/tetrion_member_XXXXXX";
  const std::string folder = mkdtemp(pattern);
  MemberOptions options;
  options.run_folder = folder;
  const wire::SessionLink::Config link = LinkConfigOf(options);
  EXPECT_EQ(link.endpoint().endpoint, "");
  EXPECT_NE(link.endpoint().why_unknown.find(folder + "/endpoints.json is missing"),
            std::string::npos);
  const std::string file = RunFolder::At(folder).endpoints_json();
  WriteEndpoints(file, {.control = "tcp://127.0.0.1:1", .pid = 1, .run = "r"});
  EXPECT_EQ(link.endpoint().endpoint, "tcp://127.0.0.1:1");
  WriteEndpoints(file, {.control = "tcp://127.0.0.1:2", .pid = 2, .run = "r", .run_id = 5});
  EXPECT_EQ(link.endpoint().endpoint, "tcp://127.0.0.1:2");
  EXPECT_EQ(link.endpoint().run_id, 5U) << "no other run that listens there is joined";
  EXPECT_EQ(link.endpoint().run, "r");
  std::ofstream(file) << "not json";
  EXPECT_THROW((void)link.endpoint(), Error);  // a foreign file is not waited for
  std::filesystem::remove_all(folder);
}

TEST(MemberTest, RunSettingsOfTheCommandLineTravelToTheCoordinator) {
  MemberOptions options;
  ServiceOptions parser("tetrion-test", "actor", "test");
  AddMemberOptions(parser, options, "wait");
  const char* argv[] = {"tetrion-test", "--run-folder", "r", "--lanes", "8", "--give-up", "5"};
  ASSERT_FALSE(parser.Parse(7, argv).has_value());
  EXPECT_EQ(options.give_up_s, 5);
  const std::vector<wire::GivenSetting> given = GivenOf(options);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].key, "lanes");
  EXPECT_EQ(given[0].value, "8");
}

}  // namespace
}  // namespace tetrion
