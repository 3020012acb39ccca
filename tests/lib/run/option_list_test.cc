// Options of a run that may choose between two algorithms (tests/support/made_up_algorithm.h).
#include "lib/run/option_list.h"

#include <gmock/gmock.h>

#include "lib/core/error.h"
#include "tests/support/made_up_algorithm.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MadeUpRun;

class OptionListTest : public ::testing::Test {
 protected:
  void SetUp() override {
    list_.given = &given_;
    list_.AddSettings(run_.Fields(), {});
  }
  // What was given, "key=value" in order.
  std::string Given() const {
    std::string text;
    for (const Setting& setting : given_) {
      text += (text.empty() ? "" : " ") + setting.key + "=" + setting.value;
    }
    return text;
  }
  std::string Refusal(const std::vector<Setting>& section) {
    try {
      list_.SetSection("x.toml", "run", section);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  MadeUpRun run_;
  std::vector<Setting> given_;
  OptionList list_{.program = "p", .description = "d"};
};

TEST_F(OptionListTest, AnOptionThatTwoAlgorithmsShareTakesWhatOneOfThemTakes) {
  list_.Set("rate", "8", "--rate 8");  // first's end at 1
  EXPECT_EQ(Given(), "rate=8");
  list_.Set("rate", "0.25", "--rate 0.25");
  EXPECT_EQ(Given(), "rate=0.25");
  try {
    list_.Set("rate", "11", "--rate 11");
    FAIL() << "no algorithm takes it";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--rate 11: expected 0 to 1 or 0 to 10");
  }
}

TEST(OptionListRangesTest, ARangeThatAlgorithmsHaveInCommonIsSaidOnce) {
  double first = 0, second = 0;
  std::vector<SettingField> fields;
  FieldCollector("first", &fields).Number("rate", first, 0.0, 1.0, "", "step size");
  FieldCollector("second", &fields).Number("rate", second, 0.0, 1.0, "", "step size of the model");
  std::vector<Setting> given;
  OptionList list{.program = "p", .description = "d"};
  list.given = &given;
  list.AddSettings(fields, {});
  try {
    list.Set("rate", "2", "--rate 2");
    FAIL() << "no algorithm takes it";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--rate 2: expected 0 to 1");
  }
}

TEST_F(OptionListTest, AnOptionIsGivenWhicheverAlgorithmTookIt) {
  EXPECT_FALSE(list_.Given("rate"));
  list_.Set("rate", "8", "--rate 8");  // the second's alone
  EXPECT_TRUE(list_.Given("rate"));
  EXPECT_FALSE(list_.Given("horizon"));
}

TEST_F(OptionListTest, SettingThatAFileHasTwiceIsRefusedWithBothPlaces) {
  EXPECT_EQ(Refusal({{"rate", "0.5"}, {"first.rate", "0.75"}}),
            "x.toml: [run] rate = '0.5': is also set in [run.first], to '0.75'; keep one");
  EXPECT_EQ(Refusal({{"second.rate", "8"}, {"first.rate", "1"}}), "");
}

TEST_F(OptionListTest, ASectionKeepsWhoseSettingItIsUntilTheCommandLineBeatsIt) {
  EXPECT_EQ(Refusal({{"lanes", "2"}, {"second.rate", "8"}, {"first.rate", "1"}}), "");
  EXPECT_EQ(Given(), "lanes=2 second.rate=8 first.rate=1");
  list_.Set("rate", "0.5", "--rate 0.5");
  EXPECT_EQ(Given(), "lanes=2 rate=0.5");
}

TEST_F(OptionListTest, ASectionRefusesKeysThatAreNotItsAlgorithms) {
  EXPECT_THAT(Refusal({{"first.horizon", "3"}}),
              HasSubstr("x.toml: [run.first] horizon: unknown key"));
  EXPECT_THAT(Refusal({{"second.horizn", "3"}}), HasSubstr("did you mean horizon?"));
  EXPECT_THAT(Refusal({{"second.lanes", "3"}}), HasSubstr("[run.second] lanes: unknown key"));
  EXPECT_THAT(Refusal({{"third.rate", "3"}}), HasSubstr("[run.third] rate: unknown key"));
  EXPECT_THAT(Refusal({{"first.rate", "8"}}), HasSubstr("[run.first] rate = '8': expected 0 to 1"));
  EXPECT_THAT(Refusal({{"second.rate", "11"}}), HasSubstr("rate = '11': expected 0 to 10"));
}

TEST_F(OptionListTest, HelpAndDocsHaveAPartForEachAlgorithm) {
  EXPECT_THAT(HelpText(list_), AllOf(HasSubstr("Settings of algorithm first (section [run.first])"),
                                     HasSubstr("step size of the model (0 to 10, default 4)")));
  EXPECT_THAT(RunMarkdownText(list_), AllOf(HasSubstr("### Settings of second\n"),
                                            HasSubstr("| `--horizon` | 1 to 100 |")));
}

TEST(OptionListTextTest, NearestNameForgivesTyposOnly) {
  const std::vector<std::string> names = {"lanes", "workers", "commit-stride"};
  EXPECT_EQ(NearestName("lane", names), "lanes");
  EXPECT_EQ(NearestName("comit-strid", names), "commit-stride");
  EXPECT_EQ(NearestName("temperature", names), "");
  EXPECT_EQ(NearestName("", {}), "");
}

TEST(OptionListDeathTest, OnlySettingsOfAlgorithmsMayShareAName) {
  MadeUpRun run;
  OptionList list;
  list.AddSettings(run.Fields(), {});
  EXPECT_DEATH(list.Add({.name = "rate"}), "twice");
  EXPECT_DEATH(list.Add({.name = "rate", .algorithm = "first"}), "twice");
  EXPECT_DEATH(list.Add({.name = "rate", .kind = OptionKind::kFlag, .algorithm = "third"}),
               "agree in its kind");
  EXPECT_DEATH((void)list.Given("rates"), "no such option");
}

}  // namespace
}  // namespace tetrion
