#include "lib/core/setting_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

namespace tetrion {
namespace {

struct TestSettings {
  double rate = 0.5;
  int count = 4;
  std::uint64_t any = 7;
  bool flag = false;
  std::string kind = "plain";
  std::string name = "run-1";

  template <typename Visitor>
  void Visit(Visitor&& v) {
    v.Number("rate", rate, 0.0, 1.0, "", "a rate");
    v.Number("count", count, 1, 64, "lanes", MayChange("a count"));
    v.Number("any", any, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), "", "any");
    v.Flag("flag", flag, "a flag");
    v.Choice("kind", kind, "plain|fancy", "a choice");
    v.Text("name", name, "a text");
  }
};

std::string ProblemOf(const std::function<void(TestSettings&)>& change) {
  TestSettings settings;
  change(settings);
  SettingCheck check;
  settings.Visit(check);
  return check.problem();
}

TEST(SettingCheckTest, BoundsBelongToTheRange) {
  EXPECT_EQ(ProblemOf([](TestSettings&) {}), "");
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.rate = 0, s.count = 64, s.kind = "fancy"; }), "");
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.rate = 1, s.count = 1, s.any = 0; }), "");
}

TEST(SettingCheckTest, NumberOutOfItsRangeIsNamedWithBoth) {
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.rate = 1.5; }), "rate: expected 0 to 1, is 1.5");
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.count = 0; }), "count: expected 1 to 64, is 0");
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.rate = NAN; }), "rate: expected 0 to 1, is nan");
}

TEST(SettingCheckTest, ChoiceIsOneOfTheAlternativesAsAWhole) {
  for (const char* text : {"", "plai", "plain|fancy", "fancy "}) {
    EXPECT_EQ(ProblemOf([&](TestSettings& s) { s.kind = text; }),
              std::string("kind: expected one of plain|fancy, is '") + text + "'");
  }
}

TEST(SettingCheckTest, TextIsAPlainName) {
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.name = "a b"; }),
            "name: expected 1 to 64 letters, digits, '.', '_' or '-'");
}

TEST(SettingCheckTest, TheFirstOfTwoIsNamed) {
  EXPECT_EQ(ProblemOf([](TestSettings& s) { s.count = 65, s.rate = -1; }),
            "rate: expected 0 to 1, is -1");
}

}  // namespace
}  // namespace tetrion
