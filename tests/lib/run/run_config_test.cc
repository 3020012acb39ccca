#include "lib/run/run_config.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "lib/core/error.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// The message of the Error that `fn` throws with `code`; "" when it throws none.
template <typename F>
std::string ErrorOf(ExitCode code, F fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code));
    return error.what();
  }
  return "";
}

// A configuration with every field different from its default.
RunConfig Unusual() {
  RunConfig config;
  config.env = "cartpole";
  config.view = "vector";
  config.seed = 18446744073709551615U;
  config.queue_size = 7;
  config.max_steps = 1U << 30;
  config.iid_pieces = true;
  config.board_rows = 10;
  config.spawn_above = true;
  config.reward = "lines";
  config.illegal = "noop";
  config.lanes = 17;
  config.max_workers = 3;
  config.replay_rows = 4096;
  config.ring_rows = 512;
  config.commit_stride = 16;
  config.network = "conv";
  config.scorer_units = 32;
  config.precision = "bf16";
  config.window = 20;
  config.batch_windows = 3;
  config.vtrace.discount = 0.1;
  config.vtrace.lambda = 1.0 / 3.0;
  config.vtrace.rho_clip = 2.5;
  config.vtrace.c_clip = 1e-7;
  config.vtrace.value_coef = 123.456;
  config.vtrace.entropy_coef = 5e-324;
  config.vtrace.learning_rate = 3.1e-4;
  config.vtrace.decay = "harmonic";
  config.vtrace.decay_updates = 1'000'000'007;
  config.vtrace.weight_decay = 0.125;
  config.vtrace.grad_clip = 40;
  config.vtrace.average_updates = 300;
  config.vtrace.reuse = 5;
  config.vtrace.minibatches = 2;
  config.vtrace.max_lag = 9;
  config.vtrace.normalise_advantage = true;
  config.vtrace.ppo_clip = 0.2;
  config.vtrace.reward_scale = "symlog";
  return config;
}

// What stands for a value of any member.
struct Anything {
  template <typename T>
  operator T() const;
};

// How many members an aggregate has: with how many values, and no more, it can be made.
template <typename T, typename... Values>
constexpr std::size_t MemberCount() {
  if constexpr (requires { T{Values()..., Anything()}; }) {
    return MemberCount<T, Values..., Anything>();
  } else {
    return sizeof...(Values);
  }
}

// What `config` has for a key, and whether a resume may change it.
std::string ValueOf(const std::string& key, RunConfig config) {
  const std::vector<SettingField> fields = FieldsOf(config);
  return FindField(fields, key, config.algo).value();
}
bool MayChangeOnResume(const std::string& key) {
  RunConfig config;
  const std::vector<SettingField> fields = FieldsOf(config);
  return FindField(fields, key, config.algo).may_change;
}

TEST(RunConfigTest, TextRoundTripsEveryFieldExactly) {
  const RunConfig config = Unusual();
  EXPECT_EQ(RunConfigFromText(ToText(config)), config);
  EXPECT_EQ(RunConfigFromText(ToText(RunConfig())), RunConfig());
}

TEST(RunConfigTest, EveryFieldOfTheStructIsVisitedOnce) {
  RunConfig config;
  const std::vector<SettingField> fields = FieldsOf(config);
  std::set<std::string> keys;
  for (const SettingField& field : fields) keys.insert(field.algorithm + '.' + field.name);
  EXPECT_EQ(keys.size(), fields.size());
  // Unusual() sets every field of V-trace's runs but algo; each must change the text.
  const std::string usual = ToText(config), unusual = ToText(Unusual());
  std::istringstream usual_lines(usual), unusual_lines(unusual);
  std::vector<std::string> same;
  for (std::string a, b; std::getline(usual_lines, a) && std::getline(unusual_lines, b);) {
    if (a == b && !a.starts_with("[run.")) same.push_back(a);
  }
  EXPECT_THAT(same, ElementsAre(StartsWith("algo = "))) << "set the others in Unusual()";
  // `vtrace` and `dreamer` are no settings themselves.
  EXPECT_EQ(fields.size(), MemberCount<RunConfig>() - 2 + MemberCount<VtraceSettings>() +
                               MemberCount<DreamerSettings>());
}

TEST(RunConfigTest, TextMayBeReorderedAndIncomplete) {
  const RunConfig config =
      RunConfigFromText("# comment\n\nwindow = 8\n  lanes=5\nenv = \"tetris\"\n");
  EXPECT_EQ(config.window, 8);
  EXPECT_EQ(config.lanes, 5);
  EXPECT_EQ(config.env, "tetris");
  EXPECT_EQ(config.vtrace.discount, RunConfig().vtrace.discount);
}

TEST(RunConfigTest, KeysOfTheAlgorithmStandInItsSectionOrAsInOlderRunsAmongTheOthers) {
  EXPECT_THAT(ToText(RunConfig()),
              HasSubstr("batch_windows = 0\n[run.vtrace]\ndiscount = 0.997\n"));
  const char* own = "[run.vtrace]\nreuse = 7\n";
  const char* older = "reuse = 7\nalgo = \"vtrace\"\nlanes = 3\n";
  EXPECT_EQ(RunConfigFromText(own).vtrace.reuse, 7);
  EXPECT_EQ(RunConfigFromText(older).vtrace.reuse, 7);
  EXPECT_EQ(RunConfigFromText(older).lanes, 3);
}

TEST(RunConfigTest, TextErrorsNameTheKey) {
  const auto parse = [](const char* text) {
    return ErrorOf(ExitCode::kConfig, [&] { RunConfigFromText(text); });
  };
  EXPECT_THAT(parse("wombat = 3"), HasSubstr("'wombat'"));
  EXPECT_THAT(parse("lanes = 12x"), HasSubstr("lanes"));
  EXPECT_THAT(parse("lanes = 0"), HasSubstr("1 to 4096"));
  EXPECT_THAT(parse("just words"), HasSubstr("just words"));
  EXPECT_THAT(parse("[run.vtrace]\nlanes = 3"), HasSubstr("'vtrace.lanes'"));
  EXPECT_THAT(parse("[run.other]\nreuse = 3"), HasSubstr("'other.reuse'"));
}

TEST(RunConfigTest, RangesHoldAtTheirEdges) {
  RunConfig config;
  Apply({"lanes", "1"}, config);
  Apply({"lanes", "4096"}, config);
  Apply({"discount", "0"}, config);
  Apply({"discount", "1"}, config);
  Apply({"seed", "0"}, config);
  for (const Setting& bad : std::vector<Setting>{{"lanes", "4097"},
                                                 {"lanes", "-1"},
                                                 {"lanes", ""},
                                                 {"lanes", "1.5"},
                                                 {"lanes", "99999999999999999999"},
                                                 {"discount", "1.0000001"},
                                                 {"discount", "nan"},
                                                 {"discount", "inf"},
                                                 {"seed", "18446744073709551616"},
                                                 {"seed", "-1"},
                                                 {"iid_pieces", "maybe"},
                                                 {"board_rows", "4"},
                                                 {"board_rows", "21"},
                                                 {"spawn_above", "yes?"},
                                                 {"illegal", ""},
                                                 {"illegal", "term"},
                                                 {"env", "two words"},
                                                 {"env", "quote\"d"},
                                                 {"env", ""}}) {
    const RunConfig before = config;
    EXPECT_THAT(ErrorOf(ExitCode::kUsage, [&] { Apply(bad, config); }), HasSubstr(bad.key))
        << bad.value;
    EXPECT_EQ(config, before);
  }
}

TEST(RunConfigTest, HashFollowsEveryFieldThatStaysForTheRunsLife) {
  EXPECT_EQ(RunConfigHash(RunConfig()), RunConfigHash(RunConfig()));
  RunConfig unusual = Unusual();
  std::set<std::uint64_t> hashes = {RunConfigHash(RunConfig())};
  for (const SettingField& field : FieldsOf(unusual)) {
    if (!Concerns(field, unusual.algo)) continue;
    const std::string& key = field.name;
    RunConfig config;
    Apply({key, ValueOf(key, unusual)}, config);
    const bool is_new = hashes.insert(RunConfigHash(config)).second;
    // Both have the same algo.
    EXPECT_EQ(is_new, !MayChangeOnResume(key) && key != "algo") << key;
  }
  RunConfig dreamer;
  dreamer.algo = "dreamer";
  EXPECT_TRUE(hashes.insert(RunConfigHash(dreamer)).second);
  dreamer.dreamer.size = "1m";
  EXPECT_TRUE(hashes.insert(RunConfigHash(dreamer)).second);
  dreamer.dreamer.train_ratio = 1;
  EXPECT_FALSE(hashes.insert(RunConfigHash(dreamer)).second) << "a resume may change it";
}

// Checkpoints and regions of runs that exist carry these.
TEST(RunConfigTest, HashIsThatOfOlderVersions) {
  EXPECT_EQ(RunConfigHash(RunConfig()), 13913558974143016020U);
  RunConfig config;
  ApplyAll({{"env", "cartpole"}, {"lanes", "17"}, {"reward_scale", "symlog"}, {"discount", "0.5"}},
           config);
  EXPECT_EQ(RunConfigHash(config), 6645132279847765641U);
  config.board_rows = 19;  // joined later
  EXPECT_NE(RunConfigHash(config), 6645132279847765641U);
}

TEST(RunConfigTest, ResumeMayChangeLearningAndNeitherEnvironmentNorShapes) {
  RunConfig config;
  std::vector<std::string> kept;
  for (const SettingField& field : FieldsOf(config)) {
    if (Concerns(field, "vtrace") && !field.may_change) kept.push_back(field.name);
  }
  EXPECT_THAT(
      kept, UnorderedElementsAre("env", "view", "network", "algo", "lanes", "window",
                                 "batch_windows", "seed", "queue_size", "iid_pieces", "board_rows",
                                 "spawn_above", "reward", "illegal", "max_workers", "replay_rows",
                                 "ring_rows", "commit_stride", "scorer_units", "reward_scale"));
}

// The defaults with these settings, their shapes resolved.
RunConfig Shaped(const std::vector<Setting>& given) {
  RunConfig config;
  for (const Setting& setting : given) Apply(setting, config);
  ResolveShapes(config);
  return config;
}

std::string RefusalOf(const std::vector<Setting>& given) {
  return ErrorOf(ExitCode::kUsage, [&] { static_cast<void>(Shaped(given)); });
}

TEST(RunConfigTest, ChangesOfAResumeAreAppliedAndToldAndOthersRefusedTogether) {
  RunConfig before;
  before.network = "mlp";
  before.max_steps = 500;
  RunConfig config = before;
  EXPECT_TRUE(
      ApplyOnResume({{"lanes", "64"}, {"view", "auto"}, {"max_steps", "0"}}, config).empty());
  EXPECT_EQ(config, before);
  const auto changes = ApplyOnResume(
      {{"vtrace.learning_rate", "1e-4"}, {"lanes", "64"}, {"max_steps", "200"}}, config);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].key + " " + changes[0].before + " " + changes[0].after,
            "learning_rate 3e-04 1e-04");
  EXPECT_EQ(config.max_steps, 200U);
  EXPECT_EQ(RunConfigHash(config), RunConfigHash(before));
  const std::string refused = ErrorOf(ExitCode::kUsage, [&] {
    RunConfig changed = before;
    static_cast<void>(
        ApplyOnResume({{"lanes", "3"}, {"learning_rate", "0.5"}, {"network", "conv"}}, changed));
  });
  EXPECT_THAT(refused, HasSubstr("lanes: here 3, the run has 64"));
  EXPECT_THAT(refused, HasSubstr("network: here conv, the run has mlp"));
  EXPECT_THAT(refused, Not(HasSubstr("learning_rate")));
}

TEST(RunConfigTest, ContradictionsNameBothValuesAndForgiveSpelling) {
  RunConfig config;
  config.env = "cartpole";
  config.vtrace.discount = 0.99;
  config.replay_rows = 128;
  EXPECT_THAT(Contradictions({{"discount", "9.9e-1"}, {"env", "cartpole"}}, config), IsEmpty());
  EXPECT_THAT(Contradictions({{"replay_rows", "0"}, {"view", "auto"}, {"max_steps", "0"}}, config),
              IsEmpty());
  EXPECT_THAT(
      Contradictions({{"lanes", "32"}, {"discount", "0.5"}}, config),
      ElementsAre("lanes: here 32, the run has 64", "discount: here 0.5, the run has 0.99"));
}

TEST(RunConfigTest, WhatNoTrainerTakesIsRefusedBeforeThereIsOne) {
  EXPECT_THAT(RefusalOf({{"lanes", "6"}, {"minibatches", "4"}}), HasSubstr("= 6"));
  EXPECT_EQ(RefusalOf({{"lanes", "6"}, {"minibatches", "4"}, {"batch_windows", "2"}}), "");
  EXPECT_THAT(RefusalOf({{"rho_clip", "0"}}), HasSubstr("rho_clip"));
  EXPECT_THAT(RefusalOf({{"c_clip", "0"}}), HasSubstr("c_clip"));
}

TEST(RunConfigTest, ReplayRowsAreTheSmallestLegalMultipleOfTheStride) {
  const RunConfig config =
      Shaped({{"window", "5"}, {"batch_windows", "1"}, {"commit_stride", "8"}});
  EXPECT_EQ(config.replay_rows, 24);  // (2 * 1 + 2) * 5 = 20, rounded up to 8
  const auto with_rows = [](const char* rows) {
    return RefusalOf({{"window", "5"}, {"commit_stride", "8"}, {"replay_rows", rows}});
  };
  EXPECT_EQ(with_rows("24"), "");
  EXPECT_EQ(with_rows("32"), "");
  EXPECT_THAT(with_rows("16"), HasSubstr("24 or more"));
  EXPECT_THAT(with_rows("25"), HasSubstr("multiple of commit_stride"));
}

TEST(RunConfigTest, WindowsOfABatchAreTheAlgorithmsUnlessTheyAreGiven) {
  const RunConfig vtrace = Shaped({});
  EXPECT_EQ(vtrace.window, 32);
  EXPECT_EQ(vtrace.batch_windows, 1);
  EXPECT_EQ(RunConfigHash(RunConfig()), [&] {
    RunConfig config = vtrace;
    config.replay_rows = 0;
    return RunConfigHash(config);
  }());
  const RunConfig dreamer = Shaped({{"algo", "dreamer"}});
  EXPECT_EQ(dreamer.window, 64);
  EXPECT_EQ(dreamer.batch_windows, 16);
  EXPECT_EQ(dreamer.replay_rows * dreamer.lanes * dreamer.max_workers, 1 << 18);
  const RunConfig given =
      Shaped({{"algo", "dreamer"}, {"window", "32"}, {"batch_windows", "8"}, {"lanes", "4"}});
  EXPECT_EQ(given.window, 32);
  EXPECT_EQ(given.batch_windows, 8);
  EXPECT_THAT(Contradictions({{"window", "0"}, {"batch_windows", "0"}}, given), IsEmpty());
}

TEST(RunConfigTest, WindowOrBatchLongerThanTheReplayIsRefused) {
  const auto with_rows = [](const char* window, const char* batch, const char* rows) {
    return RefusalOf({{"algo", "dreamer"},
                      {"lanes", "1"},
                      {"window", window},
                      {"batch_windows", batch},
                      {"replay_rows", rows}});
  };
  EXPECT_EQ(with_rows("64", "2", "200"), "");  // 2 * 64 starts, 64 rows behind the last, a chunk
  EXPECT_THAT(with_rows("64", "2", "192"), HasSubstr("200 or more"));
  EXPECT_THAT(with_rows("64", "3", "200"), HasSubstr("264 or more"));
  EXPECT_THAT(with_rows("65", "2", "200"), HasSubstr("replay_rows = 200"));
  EXPECT_THAT(with_rows("64", "2", "201"), HasSubstr("multiple of commit_stride"));
  EXPECT_THAT(with_rows("1", "2", "200"), HasSubstr("window = 1"));
}

TEST(RunConfigTest, SettingsThatTwoAlgorithmsHaveAreTheRunsOwn) {
  const RunConfig dreamer = Shaped({{"algo", "dreamer"}, {"lambda", "0.5"}});
  EXPECT_EQ(dreamer.dreamer.lambda, 0.5);
  EXPECT_EQ(dreamer.vtrace.lambda, RunConfig().vtrace.lambda);
  EXPECT_THAT(ToText(dreamer), HasSubstr("[run.dreamer]\nsize = \"nano\"\n"));
  EXPECT_EQ(RunConfigFromText(ToText(dreamer)), dreamer);
  EXPECT_THAT(RefusalOf({{"algo", "dreamer"}, {"discount", "0.5"}}), HasSubstr("--algo vtrace"));
}

// The first aborted the learner, the second overwrote windows that nobody had taken.
TEST(RunConfigTest, ReplayRowsLeaveRoomForTheChunkThatIsWritten) {
  EXPECT_EQ(Shaped({{"commit_stride", "128"}, {"ring_rows", "256"}}).replay_rows, 256);
  const std::vector<Setting> many = {
      {"window", "4"}, {"batch_windows", "15"}, {"commit_stride", "64"}, {"ring_rows", "128"}};
  EXPECT_EQ(Shaped(many).replay_rows, 192);
  std::vector<Setting> fewer = many;
  fewer.push_back({"replay_rows", "128"});
  EXPECT_THAT(RefusalOf(fewer), HasSubstr("192 or more"));
}

TEST(RunConfigTest, RingRowsAreAPowerOfTwoOfAtLeastTwoStrides) {
  const auto with = [](const char* ring, const char* stride) {
    return RefusalOf({{"ring_rows", ring}, {"commit_stride", stride}});
  };
  EXPECT_EQ(with("16", "8"), "");
  EXPECT_THAT(with("8", "8"), HasSubstr("ring_rows"));
  EXPECT_THAT(with("48", "8"), HasSubstr("power of two"));
  EXPECT_THAT(with("64", "12"), HasSubstr("commit_stride"));
}

}  // namespace
}  // namespace tetrion
