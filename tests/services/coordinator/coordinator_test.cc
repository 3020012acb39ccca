#include "services/coordinator/coordinator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/shm/region.h"
#include "lib/shm/shm_dir.h"
#include "lib/wire/socket.h"
#include "services/coordinator/store.h"

namespace tetrion::coordinator {
namespace {

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() {
    char pattern[] = "/tmp/tetrion_coordinator_XXXXXX";
    dir_ = mkdtemp(pattern);
    options_.runs_dir = dir_;
    options_.run = "first";
    options_.shm_dir = dir_ + "/shm";
    options_.given = {{"env", "cartpole"}};
  }
  ~CoordinatorTest() override { std::filesystem::remove_all(dir_); }

  // The error of opening and building, as "code: text".
  std::string Refusal() const {
    try {
      MakeCoordinator(options_, OpenRun(options_));
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
    }
    return "";
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::string dir_;
  CoordinatorOptions options_;
};

TEST_F(CoordinatorTest, NewRunWritesItsEffectiveConfiguration) {
  EXPECT_EQ(Refusal(), "");
  const RunConfig config = RunFolder::Open(dir_, "first").ReadConfig();
  EXPECT_EQ(config.env, "cartpole");
  EXPECT_EQ(config.max_steps, 500U);
}

TEST_F(CoordinatorTest, TakenPortIsAUsageErrorAndLeavesNoRunBehind) {
  const wire::ControlServer taken("tcp://127.0.0.1:0");
  options_.bind = taken.endpoint();
  const std::string refusal = Refusal();
  EXPECT_EQ(refusal.substr(0, 2), "2:");
  EXPECT_TRUE(Has(refusal, taken.endpoint().substr(6))) << refusal;
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first"));
}

TEST_F(CoordinatorTest, ExistingRunIsRefusedWithTheLineThatResumesIt) {
  EXPECT_EQ(Refusal(), "");
  const std::string refusal = Refusal();
  EXPECT_EQ(refusal.substr(0, 2), "2:");
  EXPECT_TRUE(Has(refusal, "./tetrion up --resume first")) << refusal;
}

TEST_F(CoordinatorTest, OrResumeBeginsARunAndThenGoesOnWithIt) {
  options_.or_resume = true;
  EXPECT_TRUE(OpenRun(options_).is_new);
  EXPECT_FALSE(OpenRun(options_).is_new);
  options_.given = {{"lanes", "99"}};
  EXPECT_TRUE(Has(Refusal(), "a resumed run keeps"));
}

TEST_F(CoordinatorTest, OrResumeBeginsAnewInWhatADeathLeft) {
  options_.or_resume = true;
  std::filesystem::create_directories(dir_ + "/first/logs");
  std::ofstream(dir_ + "/first/logs/coordinator.log") << "the supervisor's\n";
  std::filesystem::create_directories(dir_ + "/first/initial");
  std::ofstream(dir_ + "/first/initial/000000000001.safetensors") << "in part";
  std::ofstream(dir_ + "/first/changes.jsonl") << "{}\n";
  std::ofstream(dir_ + "/first/config.toml.part") << "in part";
  EXPECT_TRUE(OpenRun(options_).is_new);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first/initial"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first/changes.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first/config.toml.part"));
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/first/logs/coordinator.log"));
  std::filesystem::remove(dir_ + "/first/config.toml");
  std::ofstream(dir_ + "/first/notes") << "a person's";
  EXPECT_TRUE(Has(Refusal(), "exists and is no run")) << "nothing of others is removed";
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/first/notes"));
  std::filesystem::remove(dir_ + "/first/notes");
  std::ofstream(dir_ + "/first/logs/notes") << "a person's";
  EXPECT_TRUE(Has(Refusal(), "exists and is no run"));
}

TEST_F(CoordinatorTest, NewRunBeginsInWhatADeathLeftAndInNothingElse) {
  options_.runs_dir = dir_ + "/runs";  // what lies beside it is this test's, too
  const std::string runs = options_.runs_dir;
  std::filesystem::create_directories(runs + "/first/checkpoints");
  std::ofstream(runs + "/first/config.toml.part") << "in part";
  EXPECT_TRUE(OpenRun(options_).is_new);
  std::filesystem::remove(runs + "/first/config.toml");
  std::ofstream(runs + "/first/notes") << "a person's";
  EXPECT_TRUE(Has(Refusal(), "exists and is no run"));
  EXPECT_TRUE(std::filesystem::exists(runs + "/first/notes"));
  for (const char* name : {"latest", "bad name", "../outside", "."}) {
    options_.run = name;
    std::filesystem::create_directories(runs + "/" + name);
    EXPECT_EQ(Refusal().substr(0, 2), "2:") << name;
  }
}

TEST_F(CoordinatorTest, FolderThatNoMessageCanNameIsRefusedAndNoRunIsLeftBehind) {
  options_.shm_dir = "/" + std::string(150, 's');
  EXPECT_TRUE(Has(Refusal(), "--shm-dir"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first"));
  options_.shm_dir = dir_;
  options_.runs_dir = dir_ + "/\xfc";
  EXPECT_TRUE(Has(Refusal(), "--runs-dir"));
  EXPECT_FALSE(std::filesystem::exists(options_.runs_dir + "/first"));
}

// The property: of coordinators that are started together on one run at most one has it, and the
// run that it has is there, whatever the others do: one of them cannot start and removes what it
// made. Locks of open descriptions keep threads apart as they do processes.
TEST_F(CoordinatorTest, CoordinatorsStartedTogetherBeginARunOnce) {
  const wire::ControlServer taken("tcp://127.0.0.1:0");
  options_.or_resume = true;
  int begun = 0;
  for (int round = 0; round < 50; ++round) {
    options_.run = "run-" + std::to_string(round);
    CoordinatorOptions doomed = options_;
    doomed.bind = taken.endpoint();
    std::vector<std::optional<OpenedRun>> opened(3);
    std::vector<std::string> refusals(4);
    std::barrier start(4);
    const auto guarded = [&](std::size_t who, const auto& act) {
      start.arrive_and_wait();
      try {
        act();
      } catch (const Error& error) {
        refusals[who] = error.what();
      }
    };
    std::vector<std::thread> threads;
    for (std::size_t who = 0; who < opened.size(); ++who) {
      threads.emplace_back([&, who] { guarded(who, [&] { opened[who] = OpenRun(options_); }); });
    }
    threads.emplace_back([&] { guarded(3, [&] { MakeCoordinator(doomed, OpenRun(doomed)); }); });
    for (std::thread& thread : threads) thread.join();
    const auto holds = [](const std::optional<OpenedRun>& run) { return run.has_value(); };
    const auto holders = std::count_if(opened.begin(), opened.end(), holds);
    EXPECT_LE(holders, 1);
    for (const std::string& refusal : refusals) {
      EXPECT_TRUE(refusal.empty() || Has(refusal, "in use by another coordinator") ||
                  Has(refusal, "was just removed") || Has(refusal, taken.endpoint().substr(6)))
          << refusal;
    }
    begun += static_cast<int>(holders);
    if (holders == 0) continue;
    EXPECT_EQ(RunFolder::Open(dir_, options_.run).ReadConfig().env, "cartpole");
    EXPECT_TRUE(Has(Refusal(), "in use by another coordinator"));
    opened.clear();
    EXPECT_FALSE(OpenRun(options_).is_new);
  }
  EXPECT_GT(begun, 0);
}

TEST_F(CoordinatorTest, ResumingWhatIsNoRunSaysWhatIsMissing) {
  std::filesystem::create_directories(dir_ + "/empty");
  options_.resume = "empty";
  EXPECT_TRUE(Has(Refusal(), "config.toml"));
}

TEST_F(CoordinatorTest, ResumingARunThatHasTrainedButLostItsAccountIsRefused) {
  EXPECT_EQ(Refusal(), "");
  const RunFolder folder = RunFolder::At(dir_ + "/first");
  options_.resume = "first";
  std::filesystem::remove(folder.store());
  EXPECT_EQ(Refusal(), "") << "nothing was trained";
  std::filesystem::create_directories(folder.checkpoints());
  std::ofstream(folder.checkpoints() + "/000000000005.safetensors") << "x";
  EXPECT_TRUE(Has(Refusal(), "tetrion.db holds no account")) << "its log was lost";
  EXPECT_EQ(Refusal().substr(0, 3), "78:");
  ASSERT_EQ(Store(folder.store()).Commit({{StoreChange()}}), CommitResult::kOk);
  EXPECT_EQ(Refusal(), "") << "the account is there";
  std::filesystem::resize_file(folder.store(), 0);
  EXPECT_TRUE(Has(Refusal(), "--init-from first"));
  std::filesystem::remove(folder.store());
  EXPECT_EQ(Refusal().substr(0, 3), "78:");
  EXPECT_FALSE(std::filesystem::exists(folder.store())) << "a refusal makes none";
}

TEST_F(CoordinatorTest, ResumingWithASettingThatARunKeepsNamesBothValues) {
  EXPECT_EQ(Refusal(), "");
  options_.resume = "first";
  options_.given = {{"lanes", "99"}};
  const std::string refusal = Refusal();
  EXPECT_EQ(refusal.substr(0, 2), "2:");
  EXPECT_TRUE(Has(refusal, "99")) << refusal;
  EXPECT_TRUE(Has(refusal, "16")) << refusal;
}

TEST_F(CoordinatorTest, ResumingWithAnotherLearningRateChangesAndRecordsItOnce) {
  const RunFolder folder = OpenRun(options_).folder;
  options_.resume = "first";
  options_.given = {{"learning_rate", "0.25"}};
  for (int starts = 0; starts < 2; ++starts) {  // the second with the same flags
    const OpenedRun run = OpenRun(options_);
    EXPECT_EQ(run.config.vtrace.learning_rate, 0.25);
    NoteResumed(run);
    EXPECT_EQ(folder.ReadConfig().vtrace.learning_rate, 0.25);
  }
  std::ifstream file(folder.changes_jsonl());
  const std::string recorded{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(std::count(recorded.begin(), recorded.end(), '\n'), 1);
  EXPECT_TRUE(Has(recorded, "\"key\":\"learning_rate\"")) << recorded;
  EXPECT_TRUE(Has(recorded, "\"after\":\"0.25\",\"update\":0")) << recorded;
}

TEST_F(CoordinatorTest, ChangeWhoseRecordAloneAKillLeftIsRecordedOnce) {
  const RunFolder folder = OpenRun(options_).folder;
  options_.resume = "first";
  options_.given = {{"learning_rate", "0.25"}};
  folder.RecordChanges(OpenRun(options_).changes, /*update=*/0);
  NoteResumed(OpenRun(options_));
  options_.given = {{"learning_rate", "0.5"}};
  NoteResumed(OpenRun(options_));
  options_.given = {{"learning_rate", "0.25"}};
  NoteResumed(OpenRun(options_));
  std::ifstream file(folder.changes_jsonl());
  const std::string recorded{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(std::count(recorded.begin(), recorded.end(), '\n'), 3) << recorded;
}

// ./tetrion up looks whether a run is in use by locking its folder for a moment.
TEST_F(CoordinatorTest, FolderThatIsOnlyLookedAtIsNotInUse) {
  const std::string path = OpenRun(options_).folder.path();
  const FileDescriptor looking(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(looking.get(), LOCK_SH), 0);
  std::thread looks_away([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    flock(looking.get(), LOCK_UN);
  });
  options_.resume = "first";
  EXPECT_EQ(Refusal(), "");
  looks_away.join();
}

TEST_F(CoordinatorTest, ResumeThatCannotStartChangesNothing) {
  const RunFolder folder = OpenRun(options_).folder;
  const wire::ControlServer taken("tcp://127.0.0.1:0");
  options_.resume = "first";
  options_.given = {{"learning_rate", "0.25"}};
  options_.bind = taken.endpoint();
  EXPECT_EQ(Refusal().substr(0, 2), "2:");
  EXPECT_NE(folder.ReadConfig().vtrace.learning_rate, 0.25);
  EXPECT_FALSE(std::filesystem::exists(folder.changes_jsonl()));
}

TEST_F(CoordinatorTest, RunThatIsGoneOnWithIsTheLatest) {
  const RunFolder first = OpenRun(options_).folder;
  options_.run = "second";
  EXPECT_TRUE(OpenRun(options_).is_new);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(first.config_toml(), long_ago);
  EXPECT_EQ(RunFolder::Open(dir_, "latest").name(), "second");
  options_.resume = "first";
  NoteResumed(OpenRun(options_));
  EXPECT_EQ(RunFolder::Open(dir_, "latest").name(), "first");
}

TEST_F(CoordinatorTest, ControlSocketLiesInTheRunFolderOfThisUserOnly) {
  const auto coordinator = MakeCoordinator(options_, OpenRun(options_));
  EXPECT_EQ(coordinator->endpoint(), "ipc://" + dir_ + "/first/control.sock");
  const auto mode = std::filesystem::status(dir_ + "/first").permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
}

TEST_F(CoordinatorTest, PathTooLongForASocketMovesItToTheSharedFolder) {
  const RunFolder deep = RunFolder::At(dir_ + "/" + std::string(90, 'd') + "/run");
  EXPECT_EQ(ControlAddress("", deep, dir_ + "/shm", 7), "ipc://" + dir_ + "/shm/7.sock");
  EXPECT_EQ(ControlAddress("tcp://127.0.0.1:0", deep, dir_, 7), "tcp://127.0.0.1:0");
}

TEST_F(CoordinatorTest, SocketPathOfALivingServerIsNotTaken) {
  const std::string address = "ipc://" + dir_ + "/c.sock";
  const wire::ControlServer first(address);
  EXPECT_THROW(wire::ControlServer{address}, Error);
}

TEST_F(CoordinatorTest, SocketPathOfADeadServerIsTakenOver) {
  const std::string address = "ipc://" + dir_ + "/c.sock";
  {
    const wire::ControlServer first(address);
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/c.sock"));
  std::ofstream(dir_ + "/c.sock.lock");  // what a kill -9 leaves
  EXPECT_NO_THROW(wire::ControlServer{address});
}

TEST_F(CoordinatorTest, RunWhoseConfigCannotBeWrittenLeavesNoFolder) {
  options_.given.push_back({"lanes", "not a number"});
  EXPECT_THROW(OpenRun(options_), Error);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first"));
}

TEST_F(CoordinatorTest, ResumedRunGoesOnAtTheSamePort) {
  options_.bind = "tcp://127.0.0.1:0";
  std::string endpoint;
  {
    const auto coordinator = MakeCoordinator(options_, OpenRun(options_));
    endpoint = coordinator->endpoint();
    WriteEndpoints(RunFolder::Open(dir_, "first").endpoints_json(),
                   {.control = endpoint, .pid = 1, .run = "first"});
  }
  options_.resume = "first";
  EXPECT_EQ(MakeCoordinator(options_, OpenRun(options_))->endpoint(), endpoint);
}

// Everything was killed before; the file is of no use in the folder that the run leaves.
TEST_F(CoordinatorTest, RunThatIsResumedWithAnotherShmDirTakesItsDeadLearnersRegionAlong) {
  MakeCoordinator(options_, OpenRun(options_));
  const std::string before = options_.shm_dir;
  EnsureShmDir(before);
  const std::uint64_t run_id = Store(dir_ + "/first/tetrion.db").Load(0).run_id;
  WriteEndpoints(RunFolder::Open(dir_, "first").endpoints_json(),
                 {.control = "ipc:///x", .run_id = run_id, .shm_dir = before});
  const auto make_region = [&](std::uint64_t run) {
    return Region::Create(before, LearnerName(run), RegionKind::kLearner, 8192, run, 1);
  };
  const std::string dead = make_region(run_id).path(), other_runs = make_region(run_id + 1).path();
  options_.resume = "first";
  MakeCoordinator(options_, OpenRun(options_));
  EXPECT_TRUE(std::filesystem::exists(dead)) << "the folder is the same";
  options_.shm_dir = dir_ + "/shm2";
  MakeCoordinator(options_, OpenRun(options_));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(other_runs));
  const Region alive = make_region(run_id);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  MakeCoordinator(options_, OpenRun(options_));
  const std::string log =
      ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::filesystem::exists(alive.path()));
  EXPECT_TRUE(Has(log, alive.path() + " stays")) << log;
}

TEST_F(CoordinatorTest, ResumedRunOfEveryAddressGoesOnAtThePortThatItTold) {
  options_.bind = "tcp://0.0.0.0:0";
  options_.advertise = "coordinator";
  std::string endpoint;
  {
    const auto coordinator = MakeCoordinator(options_, OpenRun(options_));
    endpoint = coordinator->endpoint();
    WriteEndpoints(RunFolder::Open(dir_, "first").endpoints_json(),
                   {.control = ToldEndpoint("coordinator", endpoint), .pid = 1, .run = "first"});
  }
  options_.resume = "first";
  EXPECT_EQ(MakeCoordinator(options_, OpenRun(options_))->endpoint(), endpoint);
}

TEST_F(CoordinatorTest, AnAddressToTellThatIsNoneLeavesNoRunBehind) {
  options_.http_advertise = "no such host";
  EXPECT_TRUE(Has(Refusal(), "--http-advertise no such host: expected host or host:port"));
  options_.http_advertise = "";
  options_.advertise = "coordinator";  // beside a socket in the run folder
  EXPECT_TRUE(Has(Refusal(), "--advertise coordinator is for a --bind of tcp://"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/first"));
}

TEST(ReadinessTest, EachTroubleIsNamed) {
  EXPECT_TRUE(ReadinessOf({.cycle_age_ns = kMaxLinkCycleNs}).ready);
  const Readiness stuck = ReadinessOf({.cycle_age_ns = kMaxLinkCycleNs + 1});
  EXPECT_FALSE(stuck.ready);
  EXPECT_NE(stuck.reason.find("5 s"), std::string::npos) << stuck.reason;
  const Readiness paused = ReadinessOf({.store_pause = "disk I/O error", .draining = true});
  EXPECT_FALSE(paused.ready);
  EXPECT_NE(paused.reason.find("disk I/O error"), std::string::npos);
  EXPECT_FALSE(ReadinessOf({.files_problem = "cannot write x"}).ready);
  EXPECT_FALSE(ReadinessOf({.draining = true}).ready);
}

TEST_F(CoordinatorTest, OneRunHasOneCoordinator) {
  const auto coordinator = MakeCoordinator(options_, OpenRun(options_));
  options_.resume = "first";
  const std::string refusal = Refusal();
  EXPECT_NE(refusal, "");
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/first/config.toml"));  // the run is untouched
}

}  // namespace
}  // namespace tetrion::coordinator
