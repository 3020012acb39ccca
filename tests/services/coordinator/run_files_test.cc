#include "services/coordinator/run_files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class RunFilesTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    fs::create_directory(run_.path());
    const ToldPlaces told = {.control = control_->endpoint(), .http = "127.0.0.1:1"};
    files_ = std::make_unique<RunFiles>(run_, 7, told, *control_, *registry_, clock_);
  }
  std::string Http(const std::string& member) const {
    const Endpoints endpoints = ReadEndpoints(run_.endpoints_json());
    const auto found = endpoints.http.find(member);
    return found == endpoints.http.end() ? "" : found->second;
  }
  int Lines() const {
    std::ifstream file(run_.metrics_jsonl());
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  void JoinAs(const std::string& name, const std::string& http) {
    Join(*Connect(), {.name = name, .http_endpoint = http});
    clock_.AdvanceMs(1000);
    Cycle();
  }

  const RunFolder run_ = RunFolder::At(folder_ / "run");
  std::unique_ptr<RunFiles> files_;
};

TEST_F(RunFilesTest, MembersAppearWithinASecondOfJoining) {
  files_->Tick();
  EXPECT_EQ(ReadEndpoints(run_.endpoints_json()).control, control_->endpoint());
  EXPECT_EQ(Http("coordinator"), "127.0.0.1:1");
  JoinAs("actor-0", "127.0.0.1:2");
  files_->Tick();
  EXPECT_EQ(Http("actor-0"), "127.0.0.1:2");
  JoinAs("actor-1", "127.0.0.1:3");
  files_->Tick();
  EXPECT_EQ(Http("actor-1"), "127.0.0.1:3");
}

TEST_F(RunFilesTest, WhatIsToldOfTheControlChannelFollowsWishAndAddress) {
  EXPECT_EQ(ToldEndpoint("", "tcp://127.0.0.1:7"), "tcp://127.0.0.1:7");
  EXPECT_EQ(ToldEndpoint("host", "tcp://0.0.0.0:7"), "tcp://host:7");
  EXPECT_EQ(ToldEndpoint("gateway:9", "tcp://0.0.0.0:7"), "tcp://gateway:9");
  EXPECT_EQ(ToldEndpoint("", "tcp://0.0.0.0:7").find("0.0.0.0"), std::string::npos);
  EXPECT_EQ(ToldEndpoint("", "ipc:///run/control.sock"), "ipc:///run/control.sock");
}

TEST_F(RunFilesTest, FolderThatCannotBeWrittenIsAProblemUntilItCan) {
  files_->Tick();
  fs::remove_all(run_.path());
  JoinAs("actor-0", "127.0.0.1:2");
  files_->Tick();
  EXPECT_THAT(files_->Problem(), HasSubstr("endpoints.json"));
  EXPECT_THAT(files_->Problem(), Not(HasSubstr("metrics.jsonl"))) << "no line is due";
  clock_.AdvanceMs(10'000);
  files_->Tick();  // also the line of metrics.jsonl fails, and nothing ends
  EXPECT_NE(registry_->SerializeText().find(
                "tetrion_coordinator_file_errors_total{file=\"endpoints\"} 2"),
            std::string::npos);
  EXPECT_THAT(files_->Problem(), AllOf(HasSubstr("endpoints.json"), HasSubstr("metrics.jsonl")));
  files_->Finish();
  fs::create_directory(run_.path());
  clock_.AdvanceMs(5000);
  files_->Tick();
  EXPECT_EQ(files_->Problem(), "");
  EXPECT_EQ(Http("actor-0"), "127.0.0.1:2");
}

TEST_F(RunFilesTest, OneFileThatCannotBeWrittenIsNamedWithItsReasonUntilItsNextLine) {
  files_->Tick();
  fs::create_directory(run_.metrics_jsonl());
  clock_.AdvanceMs(5000);
  files_->Tick();
  EXPECT_EQ(files_->Problem(), "cannot open " + run_.metrics_jsonl() + ": Is a directory");
  JoinAs("actor-0", "127.0.0.1:2");
  files_->Tick();
  EXPECT_EQ(Http("actor-0"), "127.0.0.1:2");
  EXPECT_NE(files_->Problem(), "") << "endpoints.json says nothing of the other";
  fs::remove(run_.metrics_jsonl());
  clock_.AdvanceMs(5000);
  files_->Tick();
  EXPECT_EQ(files_->Problem(), "");
  EXPECT_EQ(Lines(), 1);
}

TEST_F(RunFilesTest, PrometheusIsToldWhatAMemberIsWhateverItIsCalled) {
  auto learner = Connect();
  Join(*learner, {.role = wire::Role::kLearner, .name = "gpu0", .http_endpoint = "127.0.0.1:2"});
  JoinAs("coordinator", "127.0.0.1:3");
  files_->Tick();
  std::ifstream file(run_.path() + "/file_sd.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr(R"("service":"coordinator","job":"coordinator")"));
  EXPECT_THAT(text, HasSubstr(R"("service":"gpu0","job":"learner")"));
  EXPECT_THAT(text, ContainsRegex(R"("service":"coordinator\.session-[0-9]+","job":"actor")"));
  files_->Finish();
  std::ifstream ended(run_.path() + "/file_sd.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ended), {}), "[\n]\n");
}

TEST_F(RunFilesTest, StatusIsALineEachFiveSecondsAndASummaryAtTheEnd) {
  for (int i = 0; i < 20; ++i) {
    clock_.AdvanceMs(1000);
    files_->Tick();
  }
  EXPECT_EQ(Lines(), 4);
  files_->Finish();
  EXPECT_EQ(Lines(), 5);
  EXPECT_TRUE(fs::exists(run_.path() + "/summary.json"));
}

// What a death or a full disk in the middle of a line leaves.
TEST_F(RunFilesTest, HalfALineIsCutBeforeTheNext) {
  for (const std::string left : {"", "{\"half", "{}\n", "{}\n{\"half", "\n{\"half"}) {
    std::ofstream(run_.metrics_jsonl()) << left;
    clock_.AdvanceMs(5000);
    files_->Tick();
    std::ifstream file(run_.metrics_jsonl());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string whole = left.substr(0, left.rfind('\n') + 1);
    EXPECT_EQ(text.substr(0, whole.size()), whole) << left;
    EXPECT_EQ(text.substr(whole.size(), 8), "{\"time\":") << left;
    EXPECT_EQ(text.back(), '\n') << left;
  }
}

// A limit of the file's size fails a write half way, as a full disk does.
TEST_F(RunFilesTest, FullDiskCostsALineAndLeavesNoHalf) {
  clock_.AdvanceMs(5000);
  files_->Tick();
  const auto size = fs::file_size(run_.metrics_jsonl());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = size + 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  clock_.AdvanceMs(5000);
  files_->Tick();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(fs::file_size(run_.metrics_jsonl()), size);
  EXPECT_EQ(files_->Problem(),
            "cannot append to " + run_.metrics_jsonl() + ": No space left on device");
  EXPECT_NE(
      registry_->SerializeText().find("tetrion_coordinator_file_errors_total{file=\"metrics\"} 1"),
      std::string::npos);
  clock_.AdvanceMs(5000);
  files_->Tick();
  EXPECT_EQ(Lines(), 2);
}

}  // namespace
}  // namespace tetrion::coordinator
