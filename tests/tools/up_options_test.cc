#include "tools/up/up_options.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanRunTest : public ::testing::Test {
 protected:
  PlanRunTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-plan-XXXXXX";
    options_.runs_dir = mkdtemp(pattern.data());
    options_.bin_dir = "/bin-dir";
  }
  ~PlanRunTest() override { std::filesystem::remove_all(options_.runs_dir); }

  RunPlan Plan(int cores = 4) { return PlanRun(options_, "generated", cores); }
  std::string Complaint() {
    try {
      (void)Plan();
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), 2);
      return error.what();
    }
    return "";
  }

  UpOptions options_;
};

std::string Joined(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command) text += (text.empty() ? "" : " ") + argument;
  return text;
}

int WorkersOf(const ChildSpec& actor) {
  const auto flag = std::ranges::find(actor.command, "--workers");
  return flag == actor.command.end() ? 0 : std::stoi(*std::next(flag));
}

// Flags beat the sections that a config file has for services.
TEST_F(PlanRunTest, ServicesAreToldOfLoggingWhatUpWasToldAlone) {
  for (const ChildSpec& child : Plan().children) {
    EXPECT_THAT(Joined(child.command), Not(HasSubstr("--log-")));
  }
  options_.log.level = "debug";
  options_.log_level_given = true;
  for (const ChildSpec& child : Plan().children) {
    EXPECT_THAT(Joined(child.command), HasSubstr("--log-level debug"));
    EXPECT_THAT(Joined(child.command), Not(HasSubstr("--log-format")));
  }
}

TEST_F(PlanRunTest, NewRunStartsCoordinatorLearnerAndActors) {
  options_.actors = 2;
  options_.stop_after = "2m";
  options_.given = {{"env", "cartpole"}, {"commit_stride", "4"}};
  const RunPlan plan = Plan();
  ASSERT_EQ(plan.children.size(), 4U);
  EXPECT_EQ(plan.name, "generated");
  const std::string coordinator = Joined(plan.children[0].command);
  EXPECT_THAT(coordinator, HasSubstr("/bin-dir/tetrion-coordinator --run generated --runs-dir "));
  EXPECT_THAT(coordinator, AllOf(HasSubstr("--stop-after 2m"), HasSubstr("--env=cartpole"),
                                 HasSubstr("--commit-stride=4")));
  EXPECT_THAT(Joined(plan.children[0].restart_command),
              AllOf(HasSubstr("--run generated --or-resume"), Not(HasSubstr("--resume")),
                    HasSubstr("--stop-after 2m")));
  EXPECT_EQ(plan.children[0].stop_after_s, 0) << "the run counts its time";
  options_.stop_after = "500steps";
  const ChildSpec by_steps = Plan().children[0];
  EXPECT_THAT(Joined(by_steps.restart_command), HasSubstr("--stop-after 500steps"));
  EXPECT_EQ(by_steps.stop_after_s, 0);
  EXPECT_THAT(
      Joined(plan.children[1].command),
      AllOf(HasSubstr("tetrion-learner --run-folder " + plan.folder), Not(HasSubstr("--resume"))));
  EXPECT_THAT(plan.children[1].restart_command, Contains("--resume"));
  EXPECT_THAT(Joined(plan.children[3].command),
              AllOf(HasSubstr("--name actor-1 --workers 1"), Not(HasSubstr("--env"))));
}

TEST_F(PlanRunTest, LearnerThatPlaysItsLanesItselfNeedsNoActors) {
  options_.replay = {.device = "sim", .resident_lanes = 128, .trainer = "device"};
  const RunPlan plan = Plan();
  ASSERT_EQ(plan.children.size(), 2U);
  for (const auto& command : {plan.children[1].command, plan.children[1].restart_command}) {
    EXPECT_THAT(Joined(command),
                HasSubstr("--device sim --resident-lanes 128 --trainer-device device"));
  }
}

TEST_F(PlanRunTest, ResidentLanesNeedASlotForEachGroupOfTheRunsLanes) {
  options_.given = {{"lanes", "4"}};
  options_.replay = {.device = "sim", .resident_lanes = 64};
  options_.workers = 64;  // of actors that are not started
  const RunPlan grown = Plan();
  EXPECT_EQ(grown.config.max_workers, 16);
  EXPECT_THAT(grown.children[0].command, Contains("--max-workers=16"));
  options_.replay.resident_lanes = 8;
  EXPECT_EQ(Plan().config.max_workers, RunConfig().max_workers);
}

TEST_F(PlanRunTest, ResidentLanesThatTheLearnerWouldRefuseAreRefusedBeforeAnythingIsMade) {
  options_.given = {{"lanes", "8"}};
  options_.replay = {.device = "sim", .resident_lanes = 12};
  EXPECT_THAT(Complaint(), HasSubstr("--resident-lanes 12: not a multiple of the run's 8 lanes"));
  options_.replay.resident_lanes = 8 * 257;
  EXPECT_THAT(Complaint(), AllOf(HasSubstr("are 257 groups of the run's 8 lanes and need 257"),
                                 HasSubstr("at most 256; give fewer, or more --lanes")));
  options_.replay.resident_lanes = 128;
  options_.given.push_back({"max_workers", "15"});
  EXPECT_THAT(Complaint(), AllOf(HasSubstr("need 16 replay slots, the run has 15"),
                                 HasSubstr("--max-workers 16")));
  EXPECT_TRUE(std::filesystem::is_empty(options_.runs_dir));
  RunFolder::Create(options_.runs_dir, "old").WriteConfig(MakeRunConfig({{"lanes", "8"}}));
  options_.given = {};
  options_.resume = "old";
  EXPECT_THAT(Complaint(), HasSubstr("need 16 replay slots, the run has 8"));
  options_.replay.resident_lanes = 64;
  EXPECT_EQ(Plan().children.size(), 2U);
}

TEST_F(PlanRunTest, ResumedRunStartsFromWhatItHas) {
  RunFolder::Create(options_.runs_dir, "old").WriteConfig(MakeRunConfig({{"env", "tetris"}}));
  options_.resume = "latest";
  const RunPlan plan = Plan();
  EXPECT_EQ(plan.name, "old");
  EXPECT_EQ(plan.config.env, "tetris");
  EXPECT_THAT(Joined(plan.children[0].command), HasSubstr("--resume old"));
  EXPECT_THAT(plan.children[1].command, Contains("--resume"));
}

// Its logs would be appended to, and its coordinator refuses another one anyway.
TEST_F(PlanRunTest, RunThatACoordinatorHasIsNotResumed) {
  const RunFolder folder = RunFolder::Create(options_.runs_dir, "old");
  folder.WriteConfig(MakeRunConfig({{"env", "tetris"}}));
  options_.resume = "old";
  {
    const FileDescriptor lock(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_THAT(Complaint(), AllOf(HasSubstr("run old"), HasSubstr("in use by a coordinator")));
  }
  EXPECT_EQ(Plan().name, "old");
}

TEST_F(PlanRunTest, RunThatIsNamedByAPathIsResumedAndNotItsNamesakeInTheFolderOfRuns) {
  const std::string elsewhere = options_.runs_dir + "/backup";
  std::filesystem::create_directory(elsewhere);
  RunFolder::Create(options_.runs_dir, "same").WriteConfig(MakeRunConfig({{"env", "tetris"}}));
  RunFolder::Create(elsewhere, "same").WriteConfig(MakeRunConfig({{"env", "cartpole"}}));
  options_.resume = elsewhere + "/same";
  const RunPlan plan = Plan();
  EXPECT_EQ(plan.config.env, "cartpole");
  EXPECT_THAT(Joined(plan.children[0].command), HasSubstr("--resume same --runs-dir " + elsewhere));
  EXPECT_THAT(Joined(plan.children[1].command), HasSubstr(elsewhere + "/same"));
}

TEST_F(PlanRunTest, SettingsThatOnlyAServiceCouldJudgeAreJudgedBeforeAnythingIsMade) {
  options_.given = {{"env", "chess"}, {"max_steps", "40"}};
  EXPECT_THAT(Complaint(), HasSubstr("choose one of tetris, tetris-placement, cartpole"));
  options_.given = {{"env", "cartpole"}, {"view", "planes"}};
  EXPECT_THAT(Complaint(), HasSubstr("view of cartpole 'planes': choose one of vector"));
  options_.given = {{"env", "cartpole"}, {"network", "conv"}};
  EXPECT_THAT(Complaint(), HasSubstr("network conv"));
  options_.given = {{"minibatches", "3"}};
  EXPECT_THAT(Complaint(), HasSubstr("minibatches"));
  EXPECT_TRUE(std::filesystem::is_empty(options_.runs_dir));
}

TEST_F(PlanRunTest, ResumeChangesSettingsOfLearningAndRefusesOthersBeforeAnythingStarts) {
  RunFolder::Create(options_.runs_dir, "old").WriteConfig(MakeRunConfig({{"env", "tetris"}}));
  options_.resume = "old";
  options_.given = {{"learning_rate", "0.5"}};
  const RunPlan plan = Plan();
  EXPECT_EQ(plan.config.vtrace.learning_rate, 0.5);
  EXPECT_THAT(Joined(plan.children[0].command),
              AllOf(HasSubstr("--resume old"), HasSubstr("--learning-rate=0.5")));
  options_.given = {{"lanes", "3"}};
  EXPECT_THAT(Complaint(), HasSubstr("lanes: here 3, the run has 64"));
}

TEST_F(PlanRunTest, WeightsOfAnotherRunAreForARunThatBeginsAndMustFit) {
  options_.init_from = "old";
  EXPECT_THAT(Complaint(), HasSubstr("no run at"));
  const RunFolder old = RunFolder::Create(options_.runs_dir, "old");
  old.WriteConfig(MakeRunConfig({{"env", "cartpole"}}));
  CheckpointStore(old.checkpoints(), 1).Save({.tensors = {{"policy.w", {1}, {1}}}}, {});
  EXPECT_THAT(Complaint(), HasSubstr("over view vector"));
  options_.given = {{"env", "cartpole"}};
  const ChildSpec coordinator = Plan().children[0];
  EXPECT_THAT(Joined(coordinator.command), HasSubstr("--init-from old"));
  // The first one may have died before it had begun the run.
  EXPECT_THAT(Joined(coordinator.restart_command),
              AllOf(HasSubstr("--or-resume"), HasSubstr("--init-from old")));
}

TEST_F(PlanRunTest, ExistingNameIsRefusedWithTheLineThatResumesIt) {
  const RunFolder old = RunFolder::Create(options_.runs_dir, "old");
  options_.run = "old";
  EXPECT_EQ(Plan().name, "old") << "a death before the run was configured is no run";
  old.WriteConfig(MakeRunConfig({}));
  EXPECT_THAT(Complaint(), HasSubstr("./tetrion up --resume old --runs-dir " + options_.runs_dir));
  options_.run = "";
  options_.resume = "older";
  EXPECT_THAT(Complaint(), HasSubstr("no run at"));
}

// A path that is made of it would lead out of --runs-dir.
TEST_F(PlanRunTest, NameThatIsNoFileNameIsRefusedBeforeAnythingIsMade) {
  for (const std::string& name : {std::string("../x"), std::string("a/b"), std::string(300, 'x')}) {
    options_.run = name;
    EXPECT_THAT(Complaint(), HasSubstr("run name '" + name + "'"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(options_.runs_dir));
}

TEST_F(PlanRunTest, FolderOfRunsHasAName) {
  const std::string runs_dir = std::exchange(options_.runs_dir, "");
  EXPECT_THAT(Complaint(), HasSubstr("--runs-dir is empty"));
  options_.resume = "old";
  EXPECT_THAT(Complaint(), HasSubstr("--runs-dir is empty"));
  options_.runs_dir = runs_dir;
}

TEST_F(PlanRunTest, WorkersFollowTheCoresAndTheThreadsThatTrainOnTheirRows) {
  const auto workers = [&](int cores) { return WorkersOf(Plan(cores).children[2]); };
  EXPECT_EQ(workers(1), 1);
  EXPECT_EQ(workers(2), 1);
  EXPECT_EQ(workers(6), 1);
  EXPECT_EQ(workers(7), 2);
  EXPECT_EQ(workers(12), 2);
  EXPECT_EQ(workers(96), 2) << "the learner trains with 8 threads";
  options_.threads = 16;
  EXPECT_EQ(workers(96), 4);
  EXPECT_EQ(workers(12), 2);
  options_.threads = 5;
  EXPECT_EQ(workers(96), 1);
  options_.threads = 0;
  options_.given = {{"env", "cartpole"}};
  EXPECT_EQ(workers(96), 1) << "the learner trains with one thread";
}

TEST_F(PlanRunTest, BeforeThreadsAreMeasuredThePlanIsTheUsualOne) {
  options_.config_file = "/t.toml";  // so that the learner is told its threads
  options_.threads = std::nullopt;
  const RunPlan plan = Plan(96);
  EXPECT_EQ(plan.workers, 2);
  EXPECT_EQ(plan.most_slots, kMaxWorkersOfRun);
  EXPECT_THAT(Joined(plan.children[1].command), HasSubstr("--threads 0"));
  options_.given = {{"max_workers", "3"}};
  EXPECT_EQ(Plan(96).most_slots, 3);
}

TEST_F(PlanRunTest, ActorsShareTheWorkersThatTheCoresAllowAndHaveOneEach) {
  options_.threads = 40;
  options_.actors = 4;
  EXPECT_EQ(WorkersOf(Plan(/*cores=*/16).children[2]), 1);
  const RunPlan plan = Plan(/*cores=*/96);
  ASSERT_EQ(plan.children.size(), 6U);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(WorkersOf(plan.children[i]), 2);
}

TEST_F(PlanRunTest, SlotsOfANewRunFollowTheWorkers) {
  options_.actors = 4;
  options_.workers = 5;
  const RunPlan plan = Plan();
  EXPECT_EQ(plan.config.max_workers, 20);
  EXPECT_THAT(plan.children[0].command, Contains("--max-workers=20"));
  options_.given = {{"max_workers", "19"}};
  EXPECT_THAT(Complaint(), HasSubstr("--max-workers 20"));
}

TEST_F(PlanRunTest, WorkersOfTheCoresAreNoMoreThanTheRunHasSlotsFor) {
  options_.threads = 32;
  options_.given = {{"max_workers", "2"}};
  EXPECT_EQ(WorkersOf(Plan(/*cores=*/96).children[2]), 2);
  options_.given = {};
  RunFolder::Create(options_.runs_dir, "old").WriteConfig(MakeRunConfig({{"max_workers", "1"}}));
  options_.resume = "old";
  EXPECT_EQ(WorkersOf(Plan(/*cores=*/96).children[2]), 1);
  options_.workers = 2;
  EXPECT_THAT(Complaint(), HasSubstr("need 2 replay slots, the run has 1"));
}

TEST_F(PlanRunTest, MoreSlotsThanAnyRunHasAreRefusedWithBothNumbers) {
  options_.inference = "streamed";
  options_.workers = 64;
  options_.groups = 16;
  const auto refusal = AllOf(HasSubstr("1 actors of 64 workers of 16 groups need 1024"),
                             HasSubstr("at most 256; give fewer"), Not(HasSubstr("--max-workers")));
  EXPECT_THAT(Complaint(), refusal);
  options_.given = {{"max_workers", "256"}};
  EXPECT_THAT(Complaint(), refusal);
  options_.groups = 4;
  EXPECT_EQ(Plan().config.max_workers, 256);
}

TEST_F(PlanRunTest, WorkersOfManyCoresStayWithinTheSlotsOfARun) {
  options_.inference = "streamed";
  options_.groups = 16;
  options_.threads = 128;
  EXPECT_EQ(WorkersOf(Plan(/*cores=*/128).children[2]), 16);
}

TEST_F(PlanRunTest, WithAConfigFileEveryServiceGetsTheFlagsThatBeatIt) {
  options_.config_file = "/etc/t.toml";
  options_.given = {{"lanes", "32"}};
  for (const ChildSpec& child : Plan().children) {
    EXPECT_THAT(Joined(child.command),
                AllOf(HasSubstr("--config /etc/t.toml"), HasSubstr("--lanes=32")));
  }
  EXPECT_THAT(Joined(Plan().children[1].command),
              HasSubstr("--threads 0 --device cpu --trainer-device auto"));
}

TEST_F(PlanRunTest, StreamedActorsAreToldAndEachGroupNeedsASlot) {
  options_.inference = "streamed";
  options_.groups = 3;
  options_.workers = 2;
  EXPECT_THAT(Joined(Plan().children[2].command), HasSubstr("--inference streamed --groups 3"));
  options_.given = {{"max_workers", "5"}};
  EXPECT_THAT(Complaint(), AllOf(HasSubstr("3 groups"), HasSubstr("need 6")));
  options_.inference = "local";
  EXPECT_THAT(Joined(Plan().children[2].command), Not(HasSubstr("--inference")));
}

TEST(ParseUpOptionsTest, RunAndResumeExcludeEachOther) {
  UpOptions options;
  const char* both[] = {"tetrion-up", "--run", "a", "--resume", "b"};
  EXPECT_THROW((void)ParseUpOptions(5, both, options), Error);
  const char* begun[] = {"tetrion-up", "--init-from", "a", "--resume", "b"};
  EXPECT_THROW((void)ParseUpOptions(5, begun, options), Error);
}

TEST(ParseUpOptionsTest, EndThatTheCoordinatorWouldNotUnderstandIsRefusedHere) {
  UpOptions options;
  const char* words[] = {"tetrion-up", "--stop-after", "3d"};
  EXPECT_THROW((void)ParseUpOptions(3, words, options), Error);
}

TEST(ParseUpOptionsTest, ReadsTheDocumentedFlags) {
  UpOptions options;
  const char* argv[] = {
      "tetrion-up",    "--env",  "cartpole", "--actors", "2",     "--workers", "3",
      "--lanes",       "8",      "--algo",   "vtrace",   "--run", "x",         "--stop-after",
      "50000000steps", "--seed", "7"};
  EXPECT_EQ(ParseUpOptions(static_cast<int>(std::size(argv)), argv, options), std::nullopt);
  EXPECT_EQ(options.actors, 2);
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.stop_after, "50000000steps");
  const RunConfig config = MakeRunConfig(options.given);
  EXPECT_EQ(config.env, "cartpole");
  EXPECT_EQ(config.lanes, 8);
  EXPECT_EQ(config.seed, 7U);
}

}  // namespace
}  // namespace tetrion
