// tools/eval: the episodes of an evaluation, their summary, and what users see when a run is
// unusable.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/envs/views/views.h"
#include "lib/policy/random_policy.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"
#include "tools/eval/deaths_notice.h"
#include "tools/eval/episode_player.h"
#include "tools/eval/eval.h"
#include "tools/eval/linear_policy.h"
#include "tools/eval/summary.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

std::vector<EpisodeResult> PlayRandom(const std::string& env_name, int lanes, int episodes,
                                      std::uint32_t max_steps) {
  const auto env = MakeVecEnv({.name = env_name, .lanes = lanes, .seed = 5});
  RandomPolicy policy(5, env->spec().action);
  EpisodePlayer player(*env, policy, episodes, max_steps);
  while (player.Step()) {
  }
  EXPECT_EQ(player.finished(), episodes);
  EXPECT_FALSE(player.Step());
  return player.results();
}

TEST(EpisodePlayerTest, EveryTokenIsPlayedOnceAndTheLaneCountChangesNothing) {
  for (const char* env : {"cartpole", "tetris-placement"}) {
    const auto one = PlayRandom(env, 1, 23, 60), many = PlayRandom(env, 7, 23, 60);
    const auto more_lanes_than_episodes = PlayRandom(env, 40, 23, 60);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].token_id, i);
      EXPECT_GT(one[i].length_steps, 0u);
      for (const auto& other : {many[i], more_lanes_than_episodes[i]}) {
        EXPECT_EQ(one[i].episode_return, other.episode_return);
        EXPECT_EQ(one[i].length_steps, other.length_steps);
      }
    }
  }
}

TEST(EpisodePlayerTest, LongEpisodesAreCutAtMaxSteps) {
  for (const EpisodeResult& result : PlayRandom("cartpole", 3, 9, 4))
    EXPECT_EQ(result.length_steps, 4u);
}

TEST(SpreadTest, KnownNumbers) {
  const Spread spread = SpreadOf({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(spread.mean, 2.5);
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 4);
  EXPECT_NEAR(spread.high - spread.mean, 1.959964 * 1.2909944 / 2, 1e-6);
  EXPECT_DOUBLE_EQ(spread.mean - spread.low, spread.high - spread.mean);
  const Spread single = SpreadOf({7});
  EXPECT_EQ(single.median, 7);
  EXPECT_EQ(single.low, 7);
}

TEST(EpisodePlayerTest, EndlessPlayCountsDeathsAndTellsWhatIsUnfinished) {
  const auto env = MakeVecEnv({.name = "cartpole", .lanes = 4, .seed = 5});
  RandomPolicy policy(5, env->spec().action);
  EpisodePlayer player(*env, policy, EpisodePlayer::kEndless, /*max_steps=*/20);
  while (player.deaths() < 10) ASSERT_TRUE(player.Step());
  const std::vector<EpisodeResult> whole = PlayRandom("cartpole", 1, player.finished() + 4, 20);
  const std::vector<EpisodeResult> unfinished = player.Unfinished();
  ASSERT_EQ(unfinished.size(), 4U);
  EXPECT_EQ(player.results().size(), static_cast<std::size_t>(player.finished()) + 4);
  int short_of_the_cap = 0;
  for (std::size_t token = 0; token < whole.size(); ++token) {
    const auto running = std::find_if(unfinished.begin(), unfinished.end(),
                                      [&](const auto& game) { return game.token_id == token; });
    if (running != unfinished.end()) {
      EXPECT_LT(running->length_steps, whole[token].length_steps);
    } else {
      EXPECT_EQ(player.results()[token].length_steps, whole[token].length_steps);
      short_of_the_cap += whole[token].length_steps < 20 ? 1 : 0;
    }
  }
  EXPECT_GT(player.finished(), player.deaths()) << "some games reach the cap";
  EXPECT_EQ(short_of_the_cap, player.deaths());
}

TEST(PerDeathTest, QuantilesAreTheTables) {
  for (const auto& [probability, half_freedom, quantile] :
       {std::tuple{0.025, 1, 0.0506356}, std::tuple{0.975, 1, 7.3777589},
        std::tuple{0.025, 10, 9.5907774}, std::tuple{0.975, 10, 34.1696069},
        std::tuple{0.025, 50, 74.2219275}, std::tuple{0.975, 50, 129.5611972},
        std::tuple{0.5, 1, 1.3862944}}) {
    EXPECT_NEAR(ChiSquaredQuantile(probability, half_freedom), quantile, 1e-6 * quantile);
  }
  EXPECT_NEAR(ChiSquaredQuantile(0.975, 10'000) / 20'000, 1.0196, 1e-3);
  EXPECT_NEAR(ChiSquaredQuantile(0.975, 4'000'000) / 8'000'000, 1.00098, 1e-5);
}

TEST(PerDeathTest, AllThatWasReachedCountsAndTheIntervalIsThatOfTheDeaths) {
  const PerDeath ten = PerDeathOf(1000, 10, /*stopped_at_death=*/true);
  EXPECT_EQ(ten.estimate, 100);
  EXPECT_NEAR(ten.low, 2000 / 34.1696069, 1e-4);
  EXPECT_NEAR(ten.high, 2000 / 9.5907774, 1e-4);
  const PerDeath cut = PerDeathOf(1000, 10, /*stopped_at_death=*/false);
  EXPECT_LT(cut.low, ten.low);
  EXPECT_EQ(cut.high, ten.high);
  const PerDeath none = PerDeathOf(1000, 0, /*stopped_at_death=*/false);
  EXPECT_TRUE(std::isinf(none.estimate) && std::isinf(none.high));
  EXPECT_NEAR(none.low, 2000 / 7.3777589, 1e-4);
}

// A row of the view afterstates, whose numbers are scaled.
std::vector<float> AfterstateRow(int heights, int holes, int bumpiness, int lines, bool ends) {
  std::vector<float> row(AfterstatesLayout::kRowFloats);
  for (int column = 0; column < 10; ++column) row[column] = static_cast<float>(heights) / 20;
  row[11] = static_cast<float>(holes) / 20;
  row[12] = static_cast<float>(bumpiness) / 50;
  row[13] = static_cast<float>(lines) / 4;
  row[15] = ends ? 1 : 0;
  return row;
}

TEST(LinearPolicyTest, ScoreIsThePublishedRuleInWholeCells) {
  const double expected = 0.760666 * 2 - 0.510066 * 30 - 0.35663 * 4 - 0.184483 * 7;
  EXPECT_NEAR(LinearScore(AfterstateRow(3, 4, 7, 2, false).data()), expected, 1e-5);
  EXPECT_LT(LinearScore(AfterstateRow(0, 0, 0, 4, true).data()),
            LinearScore(AfterstateRow(20, 200, 180, 0, false).data()));
}

TEST(LinearPolicyTest, TakesTheBestLegalPlacementAndPlaysFarBetterThanChance) {
  const auto env = MakeVecEnv({.name = "tetris-placement", .lanes = 5, .seed = 5});
  LinearPolicy policy(env->spec());
  EpisodePlayer player(*env, policy, /*episodes=*/10, /*max_steps=*/400);
  while (player.Step()) {
  }
  double lines = 0;
  for (const EpisodeResult& game : player.results()) lines += game.lines / 10.0;
  EXPECT_GT(lines, 100) << "chance clears 0.01 lines, 400 pieces 160 at most";
  EXPECT_THROW(LinearPolicy(MakeEnvSpec({.name = "tetris"})), Error);
}

TEST(LinearPolicyTest, ColoursOfARecordChangeNothing) {
  std::vector<std::vector<EpisodeResult>> played;
  for (const char* view : {"planes", "flat"}) {
    const auto env = MakeVecEnv({.name = "tetris-placement", .view = view, .lanes = 2, .seed = 5});
    LinearPolicy policy(env->spec());
    EpisodePlayer player(*env, policy, 2, 100);
    while (player.Step()) {
    }
    played.push_back(player.results());
  }
  for (int game : {0, 1}) {
    EXPECT_EQ(played[0][game].episode_return, played[1][game].episode_return);
  }
}

// A policy that remembers the records it was shown.
class WatchingPolicy final : public Policy {
 public:
  WatchingPolicy(ActionSpec action, std::size_t record_bytes)
      : random_(5, action), record_bytes_(record_bytes) {}
  ActResult Act(const PolicyInput& input, const PolicyOutput& output) override {
    const auto* begin = input.records;
    seen.insert(seen.end(), begin, begin + static_cast<std::size_t>(input.n) * record_bytes_);
    return random_.Act(input, output);
  }
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override {
    return random_.LoadWeights(blob, version);
  }
  std::uint32_t version() const override { return random_.version(); }

  std::vector<std::byte> seen;

 private:
  RandomPolicy random_;
  const std::size_t record_bytes_;
};

TEST(EpisodePlayerTest, PolicySeesTheCompactPartOfColourRecords) {
  const auto seen = [](const char* view) {
    const auto env = MakeVecEnv({.name = "tetris-placement", .view = view, .lanes = 3, .seed = 5});
    WatchingPolicy policy(env->spec().action, sizeof(TetrisRecord));
    EpisodePlayer player(*env, policy, 9, 40, sizeof(TetrisRecord));
    while (player.Step()) {
    }
    return policy.seen;
  };
  const auto plain = seen("planes");
  EXPECT_GT(plain.size(), 9 * sizeof(TetrisRecord));
  EXPECT_EQ(seen("flat"), plain);
}

// A run folder with an untrained CartPole policy's checkpoint.
class EvalRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runs_ = fs::path(::testing::TempDir()) / ("eval-runs-" + std::to_string(::getpid()));
    fs::remove_all(runs_);
    fs::create_directories(runs_);
    config_.env = "cartpole";
    config_.lanes = 4;
    Resolve(config_);
    folder_ = RunFolder::Create(runs_, "first").path();
    RunFolder::At(folder_).WriteConfig(config_);
  }
  void TearDown() override { fs::remove_all(runs_); }

  void SaveCheckpoint() {
    const auto trainer = MakeVtraceTrainer({.seed = 2}, EnvSpecOf(config_), RowSpecOf(config_));
    CheckpointStore(folder_ + "/checkpoints", 3)
        .Save(trainer->Save(),
              {.config_hash = RunConfigHash(config_), .run = "first", .updates = 12});
  }
  EvalOptions Options() const {
    return {.command = "eval",
            .run = "first",
            .runs_dir = runs_,
            .episodes = 6,
            .lanes = 3,
            .fps = 1000};
  }
  // What the command printed; `error` receives the sentence of a failure.
  std::string Output(int (*command)(const EvalOptions&, const std::atomic<bool>&, std::FILE*),
                     const EvalOptions& options, std::string* error = nullptr) {
    std::FILE* out = std::tmpfile();
    const std::atomic<bool> stop{stop_};
    try {
      EXPECT_EQ(command(options, stop, out), 0);
    } catch (const Error& failure) {
      if (error == nullptr) throw;
      *error = failure.what();
    }
    std::string text(static_cast<std::size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return text;
  }

  fs::path runs_;
  std::string folder_;
  RunConfig config_;
  bool stop_ = false;
};

TEST_F(EvalRunTest, CheckpointIsEvaluatedReproducibly) {
  SaveCheckpoint();
  EvalOptions options = Options();
  const std::string text = Output(RunEval, options);
  EXPECT_NE(text.find("first (cartpole), greedy policy, 12 updates: 6 episodes"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("lines"), std::string::npos);
  options.json = true;
  const auto without_time = [](std::string json) {
    const std::size_t begin = json.find("\"wall_s\"");
    return json.erase(begin, json.find("\"return\"") - begin);
  };
  const std::string json = without_time(Output(RunEval, options));
  options.lanes = 1;
  EXPECT_EQ(without_time(Output(RunEval, options)), json);
  options.run = "latest";
  EXPECT_EQ(without_time(Output(RunEval, options)), json);
  options.best = true;
  EXPECT_EQ(without_time(Output(RunEval, options)), json);
}

TEST_F(EvalRunTest, RandomPolicyNeedsNoCheckpoint) {
  EvalOptions options = Options();
  options.policy = "random";
  EXPECT_NE(Output(RunEval, options).find("random policy: 6 episodes"), std::string::npos);
}

TEST(SummaryTextTest, TetrisEndsByDeathAndOtherGamesByThemselves) {
  EvalSummary summary;
  summary.episodes = summary.deaths = 3;
  summary.unfinished = 1;
  summary.steps_per_death = {.estimate = 20, .low = 7, .high = 97};
  const std::string other = SummaryText(summary);
  EXPECT_EQ(other.find("death"), std::string::npos) << other;
  EXPECT_NE(other.find("3 ended by themselves, 0 cut"), std::string::npos) << other;
  EXPECT_NE(other.find("steps an end: 20.00; "), std::string::npos) << other;
  summary.has_lines = true;
  const std::string tetris = SummaryText(summary);
  EXPECT_NE(tetris.find("3 ended by death, 0 cut"), std::string::npos) << tetris;
  EXPECT_NE(tetris.find("lines a death: "), std::string::npos) << tetris;
  EXPECT_NE(tetris.find("chi2 of 2 deaths)"), std::string::npos) << tetris;
}

TEST_F(EvalRunTest, UntilDeathsTellsWhatIsReachedADeath) {
  EvalOptions options = Options();
  options.policy = "random";
  options.deaths = 40;
  const std::string text = Output(RunEval, options);
  EXPECT_NE(text.find(" ended by themselves, 0 cut, "), std::string::npos) << text;
  EXPECT_NE(text.find("steps an end: 2"), std::string::npos)
      << "a life is 20 to 30 steps: " << text;
  EXPECT_EQ(text.find("median"), std::string::npos) << "the games that ended are the short ones";
  options.deaths = 1000;
  options.total_steps = 100;
  options.max_steps = 9;  // dying takes longer
  const std::string cut = Output(RunEval, options);
  EXPECT_NE(cut.find("games: 0 ended by themselves, "), std::string::npos) << cut;
  EXPECT_NE(cut.find("no end; 95% interval from "), std::string::npos) << cut;
  options.json = true;
  EXPECT_NE(Output(RunEval, options).find("\"estimate\":null"), std::string::npos);
}

TEST(DeathsNoticeTest, TellsEveryTenSecondsHowFarItHasCome) {
  FakeClock clock;
  DeathsNotice notice(clock, 40);
  EXPECT_EQ(notice.After(0, 0), "");
  clock.AdvanceNs(10 * kNanosPerSecond - 1);
  EXPECT_EQ(notice.After(1, 800), "");
  clock.AdvanceNs(1);
  EXPECT_EQ(notice.After(1, 900),
            "1 of 40 games have ended by themselves after 900 steps; Ctrl-C tells what is "
            "reached\n");
  EXPECT_EQ(notice.After(2, 1000), "") << "once in ten seconds";
  clock.AdvanceNs(25 * kNanosPerSecond);
  EXPECT_EQ(notice.After(3, 2000).substr(0, 7), "3 of 40");
}

TEST_F(EvalRunTest, EpisodesThatWereCutAreCountedAndPlayCanGoOnBeyondTheRunsCap) {
  EvalOptions options = Options();
  options.policy = "random";
  EXPECT_EQ(Output(RunEval, options).find("an end"), std::string::npos) << "none was cut";
  options.max_steps = 9;
  const std::string cut = Output(RunEval, options);
  EXPECT_NE(cut.find("6 episodes, 54 steps"), std::string::npos) << cut;
  EXPECT_NE(cut.find("games: 0 ended by themselves, 6 cut, 0 still in play"), std::string::npos)
      << cut;
  config_.max_steps = 9;
  RunFolder::At(folder_).WriteConfig(config_);
  options.max_steps.reset();
  EXPECT_EQ(Output(RunEval, options).substr(0, 60), cut.substr(0, 60));
  options.max_steps = 0;
  EXPECT_EQ(Output(RunEval, options).find("a death"), std::string::npos) << "never cut";
}

TEST_F(EvalRunTest, AnotherGameIsPlayedWhereThePolicysInputFits) {
  config_ = {.env = "tetris-placement", .lanes = 4};
  Resolve(config_);
  const std::string folder = RunFolder::Create(runs_, "tetris").path();
  RunFolder::At(folder).WriteConfig(config_);
  EvalOptions options = Options();
  options.run = "tetris";
  options.policy = "linear";
  options.max_steps = 50;
  EXPECT_NE(Output(RunEval, options).find("10x20, 7-bag pieces, preview 4, cut after 50 steps"),
            std::string::npos);
  options.queue_size = 2;
  options.iid_pieces = true;
  options.board_rows = 10;
  const std::string text = Output(RunEval, options);
  EXPECT_NE(text.find("10x10, independent pieces, preview 2, cut"), std::string::npos) << text;
  options.spawn_above = true;
  EXPECT_NE(Output(RunEval, options).find("preview 2, from above the field, cut"),
            std::string::npos);
  options.policy = "checkpoint";
  std::string error;
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("only --queue-size 4 fits"), std::string::npos) << error;
  options.run = "first";
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("cartpole has no pieces"), std::string::npos) << error;
}

TEST_F(EvalRunTest, PlayDrawsEveryStepAndStopsWhenAsked) {
  SaveCheckpoint();
  EvalOptions options = Options();
  options.episodes = 1;
  options.fps = 1e6;
  const std::string text = Output(RunPlay, options);
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 2 * 8);
  EXPECT_NE(text.find("episode 1 of 1, step 0, return 0.0"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "no terminal, no cursor movement";
  stop_ = true;
  EXPECT_EQ(Output(RunPlay, options), "");
}

TEST_F(EvalRunTest, PlayEndsWhereNobodySeesIt) {
  SaveCheckpoint();
  EvalOptions options = Options();
  options.steps = 5;
  options.fps = 1e6;
  int tries = 0;
  const cookie_io_functions_t full = {
      .read = nullptr,
      .write = [](void* count, const char*, std::size_t) -> ssize_t {
        ++*static_cast<int*>(count);
        return 0;
      },
      .seek = nullptr,
      .close = nullptr};
  std::FILE* out = fopencookie(&tries, "w", full);
  ASSERT_NE(out, nullptr);
  const std::atomic<bool> stop{false};
  EXPECT_EQ(RunPlay(options, stop, out), 0);
  EXPECT_EQ(tries, 1) << "a frame";
  EXPECT_NE(std::ferror(out), 0) << "of which main makes exit status 74";
  std::fclose(out);
}

TEST_F(EvalRunTest, PlayIsCutAtTheSmallerOfItsTwoLimits) {
  EvalOptions options = Options();
  options.policy = "random";
  options.episodes = 1;
  options.fps = 1e6;
  for (const auto& [steps, max_steps] : {std::pair(3, 7U), {7, 3U}}) {
    options.steps = steps;
    options.max_steps = max_steps;
    const std::string text = Output(RunPlay, options);
    EXPECT_NE(text.find("step 3,"), std::string::npos) << text;
    EXPECT_EQ(text.find("step 4,"), std::string::npos) << text;
  }
}

TEST_F(EvalRunTest, PlayShowsEveryEpisodesEndUnderItsOwnNumber) {
  SaveCheckpoint();
  EvalOptions options = Options();
  options.episodes = 2;
  options.steps = 5;
  options.fps = 1e6;
  const std::string text = Output(RunPlay, options);
  for (const char* shown : {"episode 1 of 2, step 5, return 5.0", "episode 2 of 2, step 0, return",
                            "episode 2 of 2, step 5, return 5.0"}) {
    const std::size_t found = text.find(shown);
    ASSERT_NE(found, std::string::npos) << shown << "\n" << text;
    EXPECT_EQ(text.find(shown, found + 1), std::string::npos) << shown << " comes once";
  }
}

TEST_F(EvalRunTest, PlayWritesAGifOfWholeEpisodesAndSaysSo) {
  SaveCheckpoint();
  EvalOptions options = Options();
  options.episodes = 2;
  options.steps = 5;
  options.gif = (runs_ / "play.gif").string();
  const std::string text = Output(RunPlay, options);
  EXPECT_NE(text.find("first: greedy policy, 2 of 2 episodes, 12 frames in " + options.gif),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the last: 5 steps, return 5.0"), std::string::npos) << text;
  EXPECT_GT(fs::file_size(options.gif), 1000U);
  std::string error;
  options.gif = (runs_ / "no" / "folder.gif").string();
  Output(RunPlay, options, &error);
  EXPECT_NE(error.find("no/folder.gif"), std::string::npos) << error;
  stop_ = true;
  options.gif = (runs_ / "never.gif").string();
  Output(RunPlay, options, &error);
  EXPECT_NE(error.find("before the first frame"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(options.gif));
}

TEST_F(EvalRunTest, TetrisGifIsTheRunsGameInColours) {
  config_ = {.env = "tetris-placement", .lanes = 4};
  Resolve(config_);
  const std::string folder = RunFolder::Create(runs_, "tetris").path();
  RunFolder::At(folder).WriteConfig(config_);
  EvalOptions options = Options();
  options.run = "tetris";
  options.policy = "random";
  options.episodes = 1;
  options.gif = (runs_ / "tetris.gif").string();
  const std::string with_gif = Output(RunPlay, options);
  EXPECT_NE(with_gif.find("1 of 1 episodes"), std::string::npos) << with_gif;
  options.gif.clear();
  const std::string drawn = Output(RunPlay, options);
  // Both end at the same step with the same return: colours change nothing.
  const std::size_t step = drawn.rfind("step ") + 5;
  const std::string steps = drawn.substr(step, drawn.find(',', step) - step);
  EXPECT_NE(with_gif.find("the last: " + steps + " steps"), std::string::npos) << with_gif;
}

TEST_F(EvalRunTest, UnusableRunsGetOneSentenceEach) {
  std::string error;
  EvalOptions options = Options();
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("run first has no checkpoint"), std::string::npos) << error;
  options.run = "nowhere";
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("nowhere"), std::string::npos) << error;
  options.run = "first";
  SaveCheckpoint();
  const std::string file = folder_ + "/checkpoints/" +
                           CheckpointStore(folder_ + "/checkpoints", 1).Manifest().back().file;
  fs::resize_file(file, 1000);
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("corrupt"), std::string::npos) << error;
  stop_ = true;
  options.policy = "random";
  Output(RunEval, options, &error);
  EXPECT_NE(error.find("interrupted after 0 of 6 episodes"), std::string::npos) << error;
}

TEST_F(EvalRunTest, CheckpointOfAnotherNetworkIsRefusedWithBothSizes) {
  const auto env = MakeEnvSpec({.name = "tetris-placement"});
  const auto trainer = MakeVtraceTrainer(
      {}, env, {.record_bytes = env.obs.record_bytes, .lanes = 1, .has_mask = true});
  CheckpointStore(folder_ + "/checkpoints", 3).Save(trainer->Save(), {});
  std::string error;
  Output(RunEval, Options(), &error);
  EXPECT_NE(error.find(std::to_string(trainer->PolicyBlobBytes())), std::string::npos) << error;
}

TEST(EvalOptionsTest, CommandsAndContradictionsAreChecked) {
  const auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), "tetrion-eval");
    EvalOptions options;
    EXPECT_FALSE(
        ParseEvalOptions(static_cast<int>(words.size()), words.data(), options).has_value());
    return options;
  };
  EXPECT_EQ(parse({"eval", "latest"}).episodes, 200);
  EXPECT_EQ(parse({"play", "latest", "--fps", "3"}).episodes, 1);
  EXPECT_EQ(parse({"eval", "x", "--episodes", "7", "--sample", "--seed", "9"}).seed, 9u);
  EXPECT_EQ(parse({"play", "x", "--gif", "a.gif", "--steps", "50"}).gif, "a.gif");
  EXPECT_THROW(parse({"eval", "x", "--gif", "a.gif"}), Error);
  EXPECT_THROW(parse({"eval", "x", "--steps", "5"}), Error);
  EXPECT_THROW(parse({"watch", "latest"}), Error);
  EXPECT_EQ(parse({"dream", "latest"}).steps, 64);
  EXPECT_EQ(parse({"dream", "x", "--context", "9", "--gif", "a.gif"}).context, 9);
  EXPECT_THROW(parse({"dream", "x", "--steps", "4097"}), Error);
  EXPECT_THROW(parse({"dream", "x", "--episodes", "2"}), Error);
  EXPECT_THROW(parse({"dream", "x", "--deaths", "2"}), Error);
  EXPECT_THROW(parse({"play", "x", "--context", "9"}), Error);
  EXPECT_EQ(parse({"eval", "x"}).max_steps, std::nullopt);
  EXPECT_EQ(parse({"eval", "x", "--max-steps", "0"}).max_steps, 0U);
  EXPECT_EQ(parse({"eval", "x", "--iid-pieces=false"}).iid_pieces, false);
  EXPECT_EQ(parse({"eval", "x"}).board_rows, std::nullopt);
  EXPECT_EQ(parse({"eval", "x"}).spawn_above, std::nullopt);
  EXPECT_EQ(parse({"eval", "x", "--spawn-above"}).spawn_above, true);
  EXPECT_EQ(parse({"eval", "x", "--board-rows", "10"}).board_rows, 10);
  EXPECT_THROW(parse({"eval", "x", "--board-rows", "4"}), Error);
  EXPECT_EQ(parse({"eval", "x", "--deaths", "5", "--total-steps", "9"}).deaths, 5);
  EXPECT_THROW(parse({"eval", "x", "--deaths", "5", "--episodes", "5"}), Error);
  EXPECT_THROW(parse({"eval", "x", "--total-steps", "5"}), Error);
  EXPECT_THROW(parse({"play", "x", "--deaths", "5"}), Error);
  EXPECT_THROW(parse({"eval", "latest", "--greedy", "--sample"}), Error);
  EXPECT_THROW(parse({"eval", "latest", "--greedy=false"}), Error) << "it would play greedily";
  EXPECT_TRUE(parse({"eval", "latest", "--greedy=false", "--sample"}).sample);
  EXPECT_THROW(parse({"eval", "latest", "--episodes", "-1"}), Error);
}

}  // namespace
}  // namespace tetrion
