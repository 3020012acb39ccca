#include "tools/up/child_processes.h"

#include <gmock/gmock.h>

#include "tests/tools/scripted_run.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChildProcessesTest : public ::testing::Test {
 protected:
  // Blocks until the child has ended.
  ChildExit EndOf(pid_t pid) {
    std::optional<ChildExit> exit;
    EXPECT_TRUE(Eventually([&] { return (exit = processes_.Poll(pid)).has_value(); }));
    return exit.value_or(ChildExit{true, -1});
  }
  pid_t Run(const std::string& body) {
    return processes_.Start("child", {scratch_.Script("child" + std::to_string(++scripts_), body)});
  }

  Scratch scratch_;
  ChildProcesses processes_{scratch_.File("logs")};
  int scripts_ = 0;
};

TEST_F(ChildProcessesTest, ExitCodesAndSignalsAreToldApart) {
  const ChildExit code = EndOf(Run("exit 78"));
  EXPECT_FALSE(code.signalled);
  EXPECT_EQ(code.code, 78);
  const ChildExit signal = EndOf(Run("kill -KILL $$"));
  EXPECT_TRUE(signal.signalled);
  EXPECT_EQ(signal.code, SIGKILL);
}

TEST_F(ChildProcessesTest, ProgramThatCannotRunIsAUsageErrorWithItsPath) {
  const ChildExit exit = EndOf(processes_.Start("child", {"/no/such/program"}));
  EXPECT_EQ(exit.code, 2);
  EXPECT_THAT(processes_.LastLines("child"),
              ElementsAre("cannot execute /no/such/program: No such file or directory"));
}

TEST_F(ChildProcessesTest, OutputGoesToTheLogOnceItsFolderExistsAndTheLastLinesAreKept) {
  const pid_t first =
      Run("i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); done; echo oops >&2; exit 1");
  EndOf(first);
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("logs")));
  const std::vector<std::string> tail = processes_.LastLines("child");
  ASSERT_EQ(tail.size(), ChildProcesses::kTailLines);
  EXPECT_EQ(tail.back(), "oops");
  EXPECT_EQ(tail.front(), "line 13");
  std::filesystem::create_directory(scratch_.File("logs"));
  EndOf(Run("printf 'no newline'"));
  const std::string log = ReadText(scratch_.File("logs/child.log"));
  EXPECT_THAT(log, HasSubstr("line 0\n"));
  EXPECT_THAT(log, HasSubstr("line 19\noops\nno newline"));
  EXPECT_EQ(processes_.LastLines("child").back(), "no newline");
}

TEST_F(ChildProcessesTest, ChildrenLeadGroupsOfTheirOwnAndTakeSigterm) {
  const pid_t pid = Run("trap 'exit 5' TERM; touch $S/ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(scratch_.File("ready")); }));
  EXPECT_EQ(getpgid(pid), pid);
  EXPECT_EQ(processes_.Poll(pid), std::nullopt);
  processes_.Signal(pid, SIGTERM);
  EXPECT_EQ(EndOf(pid).code, 5);
}

TEST_F(ChildProcessesTest, KillAllEndsTheStubbornAndTheirChildren) {
  Run("trap '' TERM; (trap '' TERM; sh -c 'echo $$ >> '$S'/pids; while :; do sleep 0.01; done') & "
      "while :; do sleep 0.01; done");
  ASSERT_TRUE(Eventually([&] { return scratch_.Pids().size() == 2; }));
  processes_.KillAll();
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft(); }));
}

// The parent dies without a chance to clean up: its children are asked to drain, not killed.
class KilledParentTest : public ChildProcessesTest {
 protected:
  // Starts the script below a parent; returns when `ready` is there and that parent is killed.
  void StartAndKillParent(const std::string& script) {
    const pid_t parent = fork();
    if (parent == 0) {
      signal(SIGHUP, SIG_IGN);  // as under nohup
      ChildProcesses processes(scratch_.File("logs"));
      processes.Start("orphan", {script});
      while (true) pause();
    }
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(scratch_.File("ready")); }));
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
  }
};

TEST_F(KilledParentTest, ChildrenDrainByThemselves) {
  StartAndKillParent(scratch_.Script(
      "orphan",
      "trap 'echo saved > $S/drained; exit 0' HUP; touch $S/ready; while :; do sleep 0.01; done"));
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft(); }));
  EXPECT_EQ(ReadText(scratch_.File("drained")), "saved\n");
}

TEST_F(KilledParentTest, ChildThatWatchesNothingDies) {
  StartAndKillParent(
      scratch_.Script("orphan", "touch $S/ready; while :; do sleep 0.01; done", "''"));
  EXPECT_TRUE(Eventually([&] { return scratch_.NobodyLeft(); }));
}

}  // namespace
}  // namespace tetrion
