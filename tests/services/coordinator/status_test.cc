#include "services/coordinator/status.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lib/core/error.h"
#include "services/coordinator/run_files.h"
#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

std::vector<wire::EpisodeReport> Report(const wire::EpisodeReport& episode) {
  return {episode};
}

TEST(EpisodeWindowTest, MeansCoverTheLastHundredFiniteReturns) {
  EpisodeWindow window;
  EXPECT_EQ(window.MeanReturn(), 0);
  window.Add(Report({.episode_return = std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_EQ(window.size(), 0U);
  for (int i = 0; i < 150; ++i) {
    window.Add(Report({.length_steps = 7, .lines = 3, .episode_return = i < 50 ? 1000.0F : 2.0F}));
  }
  EXPECT_EQ(window.size(), 100U);
  EXPECT_EQ(window.MeanReturn(), 2);
  EXPECT_EQ(window.MeanLines(), 3);
  EXPECT_EQ(window.MeanLength(), 7);
}

TEST(EpisodeWindowTest, BatchEntersAsItsEpisodesOneByOne) {
  for (const int size : {0, 1, 99, 100, 101, 250}) {
    EpisodeWindow window, plain;
    for (int batch = 0; batch < 3; ++batch) {
      std::vector<wire::EpisodeReport> episodes;
      for (int i = 0; i < size; ++i) {
        const auto value = static_cast<float>(1000 * batch + i);
        episodes.push_back({.episode_return = i % 7 == batch ? INFINITY : value});
        plain.Add(Report(episodes.back()));
      }
      window.Add(episodes);
      EXPECT_EQ(window.size(), plain.size()) << size;
      EXPECT_EQ(window.MeanReturn(), plain.MeanReturn()) << size;
    }
  }
}

TEST(RunStateTest, RatesBestAndProgressFollowTheClock) {
  FakeClock clock;
  StoredRun stored;
  RunState state(clock, {.steps = 1000}, false, stored);
  state.AddEpisodes(Report({.episode_return = -5}));
  EXPECT_EQ(state.return_best(), -5);
  clock.AdvanceMs(2000);
  state.AddSteps(500);
  state.AddEpisodes(Report({.episode_return = -7}));
  state.Sample();
  EXPECT_EQ(state.return_best(), -5);
  EXPECT_DOUBLE_EQ(state.StepsPerSecond(), 250);
  EXPECT_DOUBLE_EQ(state.EpisodesPerSecond(), 1);
  EXPECT_DOUBLE_EQ(state.Progress(), 0.5);
  EXPECT_FALSE(state.StopReached());
  state.AddSteps(500);
  EXPECT_TRUE(state.StopReached());
}

// Whether a run that was served for 100 s before ends after `seconds` of this start, no earlier.
void ExpectEndAfter(const StopAfter& stop_after, bool whole_run, double seconds) {
  FakeClock clock;
  StoredRun stored;
  stored.counts.served_s = 100;
  RunState state(clock, stop_after, whole_run, stored);
  clock.AdvanceMs(static_cast<std::int64_t>(seconds * 1000) - 1);
  EXPECT_FALSE(state.StopReached());
  EXPECT_NEAR(state.Progress(), 1 - 0.001 / stop_after.seconds, 1e-9);
  clock.AdvanceMs(1);
  EXPECT_TRUE(state.StopReached());
  EXPECT_DOUBLE_EQ(state.ElapsedSeconds(), seconds);
  EXPECT_DOUBLE_EQ(state.ServedSeconds(), 100 + seconds);
}

TEST(RunStateTest, TimeOfThisStartEndsTheRun) {
  ExpectEndAfter({.seconds = 3}, /*whole_run=*/false, 3);
}

TEST(RunStateTest, TimeOfTheWholeRunEndsItWhereThatIsAskedFor) {
  ExpectEndAfter({.seconds = 103}, /*whole_run=*/true, 3);
}

TEST(StatusTest, FiguresOfMembersAreSummedAndOddNumbersBecomeNull) {
  FakeClock clock;
  SessionTable sessions(clock, kNanosPerSecond, 1, 7);
  sessions.Open(
      {.role = wire::Role::kActor, .process = 1, .stats = {{"rows", 1}, {"x", 0.0 / 1.0}}});
  sessions.Open({.role = wire::Role::kActor, .process = 2, .stats = {{"rows", 2}}});
  sessions.Open({.role = wire::Role::kLearner,
                 .process = 3,
                 .stats = {{"loss", std::numeric_limits<double>::infinity()}}});
  RunState state(clock, {}, false, {});
  const std::string text = StatusJson({.run = "a \"b\"",
                                       .env = "cartpole",
                                       .phase = "running",
                                       .state = state,
                                       .sessions = sessions,
                                       .tokens = {.issued = 512, .done = 2}});
  EXPECT_NE(text.find(R"("run":"a \"b\"")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("actors":2,"learner_up":true)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("actor":{"rows":3,"x":0})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("learner":{"loss":null})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("outstanding":510)"), std::string::npos) << text;
}

TEST(EndpointsTest, FileSdNamesEveryServiceAndWhatItIs) {
  const std::string text =
      FileSdText("r", {{"coordinator", "coordinator", "127.0.0.1:1"}, {"b", "actor", "host:2"}});
  EXPECT_EQ(text,
            "[\n"
            R"( {"targets":["127.0.0.1:1"],"labels":{"service":"coordinator",)"
            R"("job":"coordinator","run":"r"}},)"
            "\n"
            R"( {"targets":["host:2"],"labels":{"service":"b","job":"actor","run":"r"}})"
            "\n]\n");
}

TEST(EndpointsTest, MembersOfOneNameAndAMemberCalledCoordinatorHideNothing) {
  TestFolder dir;
  const RunFolder folder = RunFolder::At(dir.path());
  const EndpointsWriter writer(folder, 7, {"ipc:///x", "127.0.0.1:1", "/dev/shm/x"});
  writer.Write({{"actor-0", "127.0.0.1:2", 5},
                {"actor-0", "127.0.0.1:3", 6},
                {"coordinator", "127.0.0.1:4", 7}});
  const Endpoints read = ReadEndpoints(folder.endpoints_json());
  EXPECT_EQ(read.run_id, 7U);
  EXPECT_EQ(read.shm_dir, "/dev/shm/x");
  EXPECT_EQ(read.http.at("coordinator"), "127.0.0.1:1");
  EXPECT_EQ(read.http.at("actor-0"), "127.0.0.1:2");
  EXPECT_EQ(read.http.at("actor-0.session-6"), "127.0.0.1:3");
  EXPECT_EQ(read.http.at("coordinator.session-7"), "127.0.0.1:4");
}

}  // namespace
}  // namespace tetrion::coordinator
