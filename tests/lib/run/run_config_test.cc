#include "lib/run/run_config.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "lib/core/error.h"
#include "lib/run/run_config_fields.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  config.illegal = "noop";
  config.lanes = 17;
  config.max_workers = 3;
  config.replay_rows = 4096;
  config.ring_rows = 512;
  config.commit_stride = 16;
  config.network = "conv";
  config.window = 20;
  config.batch_windows = 3;
  config.discount = 0.1;
  config.lambda = 1.0 / 3.0;
  config.rho_clip = 2.5;
  config.c_clip = 1e-7;
  config.value_coef = 123.456;
  config.entropy_coef = 5e-324;
  config.learning_rate = 3.1e-4;
  config.decay_updates = 1'000'000'007;
  config.grad_clip = 40;
  config.reuse = 5;
  config.minibatches = 2;
  config.max_lag = 9;
  config.normalise_advantage = true;
  config.ppo_clip = 0.2;
  config.reward_scale = "symlog";
  return config;
}

// Counts fields and their bytes, so that a field missing in VisitRunConfig shows.
struct FieldCounter {
  int fields = 0;
  std::set<std::string> keys;
  template <typename... Args>
  void Number(const char* key, Args&&...) {
    Count(key);
  }
  template <typename... Args>
  void Flag(const char* key, Args&&...) {
    Count(key);
  }
  template <typename... Args>
  void Choice(const char* key, Args&&...) {
    Count(key);
  }
  template <typename... Args>
  void Text(const char* key, Args&&...) {
    Count(key);
  }
  void Count(const char* key) {
    ++fields;
    keys.insert(key);
  }
};

TEST(RunConfigTest, TextRoundTripsEveryFieldExactly) {
  const RunConfig config = Unusual();
  EXPECT_EQ(RunConfigFromText(ToText(config)), config);
  EXPECT_EQ(RunConfigFromText(ToText(RunConfig())), RunConfig());
}

TEST(RunConfigTest, EveryFieldOfTheStructIsVisitedOnce) {
  FieldCounter counter;
  const RunConfig config;
  VisitRunConfig(config, counter);
  EXPECT_EQ(counter.keys.size(), static_cast<std::size_t>(counter.fields));
  // Unusual() sets every field but algo, which has one value only; each must change the text.
  const std::string usual = ToText(config), unusual = ToText(Unusual());
  std::istringstream usual_lines(usual), unusual_lines(unusual);
  int same = 0;
  for (std::string a, b; std::getline(usual_lines, a) && std::getline(unusual_lines, b);) {
    if (a == b) ++same;
  }
  EXPECT_EQ(same, 1);
  // Structured bindings fail to compile when a field is added without this test being looked at.
  const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
               f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31] = config;
  (void)f1, (void)f2, (void)f3, (void)f4, (void)f5, (void)f6, (void)f7, (void)f8, (void)f9;
  (void)f10, (void)f11, (void)f12, (void)f13, (void)f14, (void)f15, (void)f16, (void)f17, (void)f18;
  (void)f19, (void)f20, (void)f21, (void)f22, (void)f23, (void)f24, (void)f25, (void)f26, (void)f27;
  (void)f28, (void)f29, (void)f30, (void)f31;
  EXPECT_EQ(counter.fields, 31);
}

TEST(RunConfigTest, TextMayBeReorderedAndIncomplete) {
  const RunConfig config =
      RunConfigFromText("# comment\n\nwindow = 8\n  lanes=5\nenv = \"tetris\"\n");
  EXPECT_EQ(config.window, 8);
  EXPECT_EQ(config.lanes, 5);
  EXPECT_EQ(config.env, "tetris");
  EXPECT_EQ(config.discount, RunConfig().discount);
}

TEST(RunConfigTest, TextErrorsNameTheKey) {
  const auto parse = [](const char* text) {
    return ErrorOf(ExitCode::kConfig, [&] { RunConfigFromText(text); });
  };
  EXPECT_THAT(parse("wombat = 3"), HasSubstr("'wombat'"));
  EXPECT_THAT(parse("lanes = 12x"), HasSubstr("lanes"));
  EXPECT_THAT(parse("lanes = 0"), HasSubstr("1 to 4096"));
  EXPECT_THAT(parse("just words"), HasSubstr("just words"));
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
  const RunConfig unusual = Unusual();
  FieldCounter counter;
  VisitRunConfig(unusual, counter);
  std::set<std::uint64_t> hashes = {RunConfigHash(RunConfig())};
  for (const std::string& key : counter.keys) {
    RunConfig config;
    Apply({key, ValueOf(key, unusual)}, config);
    const bool is_new = hashes.insert(RunConfigHash(config)).second;
    // algo has one value only.
    EXPECT_EQ(is_new, !MayChangeOnResume(key) && key != "algo") << key;
  }
}

TEST(RunConfigTest, ResumeMayChangeLearningAndNeitherEnvironmentNorShapes) {
  for (const char* key : {"learning_rate", "entropy_coef", "value_coef", "grad_clip", "discount",
                          "lambda", "rho_clip", "c_clip", "reuse", "max_lag", "ppo_clip",
                          "minibatches", "normalise_advantage", "max_steps", "decay_updates"}) {
    EXPECT_TRUE(MayChangeOnResume(key)) << key;
  }
  for (const char* key : {"env", "view", "network", "algo", "lanes", "window", "batch_windows",
                          "seed", "queue_size", "iid_pieces", "illegal", "max_workers",
                          "replay_rows", "ring_rows", "commit_stride", "reward_scale"}) {
    EXPECT_FALSE(MayChangeOnResume(key)) << key;
  }
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
  const auto changes =
      ApplyOnResume({{"learning_rate", "1e-4"}, {"lanes", "64"}, {"max_steps", "200"}}, config);
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
  config.discount = 0.99;
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

TEST(RunConfigDeathTest, AskingForAnUnknownKeyIsABug) {
  EXPECT_DEATH(ValueOf("wombat", RunConfig()), "no such run setting");
}

}  // namespace
}  // namespace tetrion
