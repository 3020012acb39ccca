// tetrion-up as a process, over shell scripts in place of the three services.
#include <gmock/gmock.h>

#include <fcntl.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "lib/checkpoint/manifest.h"
#include "lib/core/cpu_count.h"
#include "tests/tools/scripted_run.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A coordinator that makes the run folder and ends when asked to or when `stop` appears.
constexpr const char* kCoordinator = R"sh(
mkdir -p $S/runs/r/logs $S/runs/r/checkpoints
echo '[run]' > $S/runs/r/config.toml
echo '{"env_steps":4711,"episodes":12,"learner":{"updates":3}}' > $S/runs/r/metrics.jsonl
cp $S/manifest.json $S/runs/r/checkpoints/
touch $S/runs/r/checkpoints/000000000003.safetensors
while [ ! -e $S/stop ]; do sleep 0.01; done)sh";
constexpr const char* kForEver = "while :; do sleep 0.01; done";
constexpr const char* kObey = "'exit 0'";

class UpTest : public ::testing::Test {
 protected:
  UpTest() {
    std::ofstream(scratch_.File("manifest.json"))
        << EncodeManifest({{.file = "000000000003.safetensors"}});
    scratch_.Script("tetrion-coordinator", kCoordinator, kObey);
    scratch_.Script("tetrion-learner", kForEver, kObey);
    scratch_.Script("tetrion-actor", kForEver, kObey);
  }

  // Starts tetrion-up with output and errors in files.
  pid_t Start() {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const auto redirect = [this](const char* name, int to) {
      dup2(open(scratch_.File(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), to);
    };
    if (out_fd_ >= 0) {
      dup2(out_fd_, STDOUT_FILENO);
      dup2(out_fd_, STDERR_FILENO);
    } else {
      redirect("out", STDOUT_FILENO);
      redirect("err", STDERR_FILENO);
    }
    const std::string runs = scratch_.File("runs"), bin = scratch_.File(""),
                      shm = scratch_.File("shm");
    execl(TETRION_UP, "tetrion-up", which_, "r", "--runs-dir", runs.c_str(), "--bin-dir",
          bin.c_str(), "--shm-dir", shm.c_str(), "--actors", "2", "--workers", "1", "--env",
          "cartpole", "--stop-after", stop_after_, "--threads", threads_, nullptr);
    _exit(99);
  }
  // Exit code, or minus the signal.
  static int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  bool AllUp() {
    return Eventually([&] {
      return scratch_.Pids().size() == 4 && Exists("runs/r/checkpoints/000000000003.safetensors");
    });
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(scratch_.File(name)); }
  std::string Out() { return ReadText(scratch_.File("out")); }
  std::string Err() { return ReadText(scratch_.File("err")); }

  Scratch scratch_;
  const char* which_ = "--run";
  const char* stop_after_ = "1000000steps";
  const char* threads_ = "0";
  int out_fd_ = -1;  // where output and errors go instead of files
};

TEST_F(UpTest, SigtermDrainsAndTheSummaryTellsHowToGoOn) {
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("4711 env steps"), HasSubstr("checkpoints/000000000003.safetensors"),
                    HasSubstr("./tetrion up --resume r")));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, LearnerThatWentOnFromAnEarlierCheckpointIsTold) {
  const std::string said = "training goes on from an earlier one, and ";
  for (const char* figure : {"0", "1"}) {
    std::filesystem::remove_all(scratch_.File("runs"));
    scratch_.Script("tetrion-coordinator",
                    std::string(kCoordinator) +
                        "\necho '{\"env_steps\":4712,\"learner\":{\"updates\":4,"
                        "\"older_checkpoint\":" +
                        figure + "}}' >> $S/runs/r/metrics.jsonl",
                    kObey);
    std::ofstream(scratch_.File("stop")) << "now";
    EXPECT_EQ(Wait(Start()), 0);
    EXPECT_EQ(Err().find(said) != std::string::npos, *figure == '1') << Err();
  }
  EXPECT_THAT(Err(), HasSubstr("logs/learner.log says why"));
}

TEST_F(UpTest, EarlierCheckpointOfAnEarlierStartIsNotToldAgain) {
  std::filesystem::create_directories(scratch_.File("runs/r"));
  std::ofstream(scratch_.File("runs/r/config.toml")) << "[run]\nenv = \"cartpole\"\n";
  std::ofstream(scratch_.File("runs/r/metrics.jsonl"))
      << "{\"env_steps\":4711,\"learner\":{\"updates\":3,\"older_checkpoint\":1}}\n";
  scratch_.Script("tetrion-coordinator", "echo '{\"env_steps\":4712}' >> $S/runs/r/metrics.jsonl",
                  kObey);
  which_ = "--resume";
  EXPECT_EQ(Wait(Start()), 0) << Err();
  EXPECT_THAT(Err(), Not(HasSubstr("training goes on from an earlier one")));
}

TEST_F(UpTest, ClosedTerminalDrainsTheRunHoweverOftenItIsTold) {
  scratch_.Script("tetrion-learner", kForEver, "'sleep 0.3; echo saved > $S/saved; exit 0'");
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  kill(up, SIGHUP);
  ASSERT_TRUE(Eventually([&] { return Err().find("draining") != std::string::npos; }));
  kill(up, SIGHUP);
  kill(up, SIGHUP);
  EXPECT_EQ(Wait(up), 0);
  EXPECT_TRUE(Exists("saved"));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

// Output and errors in one pipe that is full from the beginning.
TEST_F(UpTest, ReaderThatStandsStillHoldsNothingUp) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
  while (write(fds[1], "x", 1) == 1) continue;
  fcntl(fds[1], F_SETFL, 0);
  out_fd_ = fds[1];
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  kill(up, SIGTERM);
  ASSERT_TRUE(Eventually([&] { return !Alive(up); }));
  EXPECT_EQ(Wait(up), 0);
  EXPECT_TRUE(scratch_.NobodyLeft());
  close(fds[0]);
  close(fds[1]);
}

TEST_F(UpTest, StartRemovesWhatAKillOfEverythingLeft) {
  std::filesystem::create_directory(scratch_.File("shm"));
  chmod(scratch_.File("shm").c_str(), 0700);
  const std::string left = "shm/00000000000000aa.ring.1-00000001.0";
  std::ofstream(scratch_.File(left)) << "rows";
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  EXPECT_FALSE(Exists(left));
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0);
}

TEST_F(UpTest, VariablesAreForUpWhichTellsTheServicesByFlags) {
  // Two actors do this: the move keeps a reader from a file that is half written.
  scratch_.Script(
      "tetrion-actor",
      std::string("{ echo \"$@\"; env; } > $S/saw.$$\nmv $S/saw.$$ $S/actor-saw\n") + kForEver,
      kObey);
  const std::vector<std::pair<const char*, const char*>> variables = {{"TETRION_LANES", "3"},
                                                                      {"TETRION_WORKERS", "2"},
                                                                      {"TETRION_HEARTBEAT", "0.5"},
                                                                      {"TETRION_JOBS", "1"}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  const pid_t up = Start();
  for (const auto& [name, value] : variables) unsetenv(name);
  ASSERT_TRUE(AllUp() && Eventually([&] { return Exists("actor-saw"); }));
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0) << Err();
  EXPECT_THAT(
      ReadText(scratch_.File("actor-saw")),
      AllOf(HasSubstr("--workers 1"), HasSubstr("TETRION_JOBS=1"), Not(HasSubstr("TETRION_LANES")),
            Not(HasSubstr("TETRION_WORKERS")), Not(HasSubstr("TETRION_HEARTBEAT"))));
  EXPECT_THAT(Out(), HasSubstr("3 lanes a worker"));
  EXPECT_THAT(Err(), AllOf(HasSubstr("TETRION_HEARTBEAT is an option of services"),
                           Not(HasSubstr("TETRION_LANES"))));
}

TEST_F(UpTest, EndOfTheCoordinatorEndsTheRun) {
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  std::ofstream(scratch_.File("stop")) << "now";
  EXPECT_EQ(Wait(up), 0);
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, LearnerThatDiesTwiceIsStartedAgainWithResume) {
  scratch_.Script("tetrion-learner",
                  std::string("echo \"$@\" >> $S/learner-starts\n") +
                      "[ $(wc -l < $S/learner-starts) -lt 3 ] && kill -SEGV $$\n" + kForEver,
                  kObey);
  const pid_t up = Start();
  const auto starts = [&] {
    const std::string text = ReadText(scratch_.File("learner-starts"));
    return std::count(text.begin(), text.end(), '\n');
  };
  ASSERT_TRUE(Eventually(
      [&] { return starts() == 3 && Exists("runs/r/checkpoints/000000000003.safetensors"); }));
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0) << Err();
  std::istringstream lines(ReadText(scratch_.File("learner-starts")));
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_THAT(first, Not(HasSubstr("--resume")));
  EXPECT_THAT(second, HasSubstr("--resume"));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, RunInWhichNothingWasPlayedIsNoSuccess) {
  scratch_.Script("tetrion-coordinator",
                  std::string("rm -f $S/runs/r/metrics.jsonl\n") + "mkdir -p $S/runs/r/logs\n" +
                      "echo '[run]' > $S/runs/r/config.toml\n" +
                      "while [ ! -e $S/stop ]; do sleep 0.01; done",
                  kObey);
  scratch_.Script("tetrion-actor", "echo broken >&2; exit 1", kObey);
  const pid_t up = Start();
  for (const char* actor : {"actor-0: died", "actor-1: died"}) {
    ASSERT_TRUE(Eventually([&] { return Err().find(actor) != std::string::npos; }));
  }
  std::ofstream(scratch_.File("stop")) << "now";
  EXPECT_EQ(Wait(up), 75);
  EXPECT_THAT(Err(), AllOf(HasSubstr("nothing was done"), HasSubstr("  broken")));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, RunWhoseTimeIsOverBeforeAnythingWasPlayedSaysSo) {
  scratch_.Script("tetrion-coordinator", "mkdir -p $S/runs/r; echo '[run]' > $S/runs/r/config.toml",
                  kObey);
  stop_after_ = "1s";
  EXPECT_EQ(Wait(Start()), 75);
  EXPECT_THAT(Err(), HasSubstr("--stop-after was over before anything was played"));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, ConfigurationErrorOfAServiceEndsTheRunWithItsLastLines) {
  scratch_.Script(
      "tetrion-actor",
      std::string(
          "while [ ! -e $S/runs/r/checkpoints/000000000003.safetensors ]; do sleep 0.01; done\n") +
          "case \"$*\" in *actor-0*) echo 'tetrion-actor: error: lanes: here 3, the run "
          "has 4' >&2; exit 78;; esac\n" +
          kForEver,
      kObey);
  const pid_t up = Start();
  EXPECT_EQ(Wait(up), 78);
  EXPECT_THAT(Err(), AllOf(HasSubstr("actor-0 failed; its last lines:"),
                           HasSubstr("  tetrion-actor: error: lanes: here 3, the run has 4")));
  EXPECT_THAT(Out(), HasSubstr("(exit status 78): actor-0 ended; see "));
  EXPECT_THAT(ReadText(scratch_.File("runs/r/logs/actor-0.log")), HasSubstr("the run has 4"));
  EXPECT_TRUE(scratch_.NobodyLeft());
}

TEST_F(UpTest, SecondSignalEndsAtOnceAndLeavesNobody) {
  scratch_.Script("tetrion-actor", kForEver, "''");
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  kill(up, SIGINT);
  ASSERT_TRUE(Eventually([&] { return Err().find("draining") != std::string::npos; }));
  kill(up, SIGINT);
  EXPECT_EQ(Wait(up), 143);
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft(); }));
}

TEST_F(UpTest, KilledUpLetsTheServicesDrain) {
  scratch_.Script("tetrion-learner",
                  std::string("trap 'sleep 0.3; echo saved > $S/saved; exit 0' HUP\n") +
                      "touch $S/armed\n" + kForEver,
                  kObey);
  const pid_t up = Start();
  ASSERT_TRUE(AllUp());
  ASSERT_TRUE(Eventually([&] { return Exists("armed"); }));
  kill(up, SIGKILL);
  EXPECT_EQ(Wait(up), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft() && Exists("saved"); }));
}

// With --threads auto, where trials come before the run. These never train, so that none ends.
class UpTrialsTest : public UpTest {
 protected:
  UpTrialsTest() {
    threads_ = "auto";
    std::filesystem::create_directory(scratch_.File("tmp"));
    setenv("TMPDIR", scratch_.File("tmp").c_str(), 1);
    setenv("XDG_CACHE_HOME", scratch_.File("cache").c_str(), 1);
    setenv("TETRION_MAX_STEPS", "77", 1);
  }
  ~UpTrialsTest() override {
    for (const char* name : {"TMPDIR", "XDG_CACHE_HOME", "TETRION_MAX_STEPS"}) unsetenv(name);
  }
  void SetUp() override {
    if (UsableCpus() == 1) GTEST_SKIP() << "one core leaves no choice, so there are no trials";
  }
  // What the newest service of that name was told, once it was started.
  std::string Told(const std::string& program) {
    EXPECT_TRUE(Eventually([&] { return Exists("told-" + program); }));
    return ReadText(scratch_.File("told-" + program));
  }
  void LetTell(const std::string& program) {
    scratch_.Script(program,
                    "echo \"$@\" > $S/told.$$; mv $S/told.$$ $S/told-" + program + "\n" + kForEver,
                    kObey);
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(scratch_.NobodyLeft());
    EXPECT_TRUE(std::filesystem::is_empty(scratch_.File("tmp")));
    EXPECT_FALSE(Exists("cache"));
  }
};

TEST_F(UpTrialsTest, RunsSettingsArePlayedWithTheSplitInATemporaryFolder) {
  for (const char* program : {"tetrion-coordinator", "tetrion-learner", "tetrion-actor"}) {
    LetTell(program);
  }
  const pid_t up = Start();
  const std::string coordinator = Told("tetrion-coordinator");
  EXPECT_THAT(coordinator,
              AllOf(HasSubstr("--run trial"), HasSubstr("--runs-dir " + scratch_.File("tmp/")),
                    HasSubstr("--env=cartpole"), HasSubstr("--max-steps=77"),
                    Not(HasSubstr("1000000steps"))));
  EXPECT_THAT(Told("tetrion-learner"), HasSubstr("--threads 1"));  // cartpole's usual number
  EXPECT_THAT(Told("tetrion-actor"), HasSubstr("--workers 1"));
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("the run was not begun"), Not(HasSubstr("takes"))));
  EXPECT_FALSE(Exists("runs"));
  ExpectNothingLeft();
}

TEST_F(UpTrialsTest, TrialOfARunThatGoesOnIsANewRunOfItsSettings) {
  std::filesystem::create_directories(scratch_.File("runs/r"));
  std::ofstream(scratch_.File("runs/r/config.toml"))
      << "[run]\nenv = \"cartpole\"\nlanes = 3\nmax_workers = 2\n[run.vtrace]\nreuse = 5\n";
  which_ = "--resume";
  LetTell("tetrion-coordinator");
  const pid_t up = Start();
  EXPECT_THAT(
      Told("tetrion-coordinator"),
      AllOf(HasSubstr("--run trial"), HasSubstr("--env=cartpole"), HasSubstr("--lanes=3"),
            HasSubstr("--reuse=5"), HasSubstr("--max-steps=77"), Not(HasSubstr("--resume"))));
  kill(up, SIGTERM);
  EXPECT_EQ(Wait(up), 0) << Err();
  ExpectNothingLeft();
}

TEST_F(UpTrialsTest, ServiceThatWouldFailTheRunFailsItsTrialWithTheSameStatusAndLines) {
  scratch_.Script("tetrion-learner", "echo 'tetrion-learner: error: no room' >&2; exit 78", kObey);
  EXPECT_EQ(Wait(Start()), 78);
  EXPECT_THAT(Err(), AllOf(HasSubstr("learner failed; its last lines:"),
                           HasSubstr("  tetrion-learner: error: no room")));
  EXPECT_THAT(Out(), HasSubstr("FAILED (exit status 78): learner ended"));
  ExpectNothingLeft();
}

TEST_F(UpTrialsTest, SecondSignalLeavesNothingEither) {
  LetTell("tetrion-actor");
  const pid_t up = Start();
  (void)Told("tetrion-actor");
  kill(up, SIGINT);
  kill(up, SIGTERM);
  EXPECT_THAT(Wait(up), ::testing::AnyOf(0, 143));  // the first one may have been enough
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft(); }));
  ExpectNothingLeft();
}

TEST_F(UpTest, ExistingRunStartsNothing) {
  std::filesystem::create_directories(scratch_.File("runs/r"));
  std::ofstream(scratch_.File("runs/r/config.toml")) << "[run]\n";
  EXPECT_EQ(Wait(Start()), 2);
  EXPECT_THAT(Err(), HasSubstr("./tetrion up --resume r"));
  EXPECT_TRUE(scratch_.Pids().empty());
}

}  // namespace
}  // namespace tetrion
