#include "lib/core/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace tetrion {
namespace {

TEST(JsonQuotedTest, EveryByteBelowTheTopHalfReadsBack) {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text += static_cast<char>(c);
  text += "\xc3\xa9";
  EXPECT_EQ(nlohmann::json::parse(JsonQuoted(text)).get<std::string>(), text);
  EXPECT_EQ(JsonQuoted("a \"b\"\n\\"), R"("a \"b\"\u000a\\")");
}

TEST(JsonObjectTest, FieldsStandInTheirOrderWithoutSpaces) {
  JsonObject inner;
  EXPECT_EQ(inner.Text(), "{}");
  inner.Add("n", std::uint64_t{18446744073709551615U}).Add("m", std::int64_t{-3});
  JsonObject object;
  object.Add("text", "a \"b\"").Add("string", std::string("c")).Add("flag", true);
  object.Add("half", 0.5).AddJson("inner", inner.Text());
  EXPECT_EQ(object.Text(), R"({"text":"a \"b\"","string":"c","flag":true,"half":0.5,)"
                           R"("inner":{"n":18446744073709551615,"m":-3}})");
}

TEST(JsonObjectTest, NumbersReadBackExactlyAndOddOnesAreNull) {
  JsonObject object;
  object.Add("tenth", 0.1).Add("whole", 3.0).Add("huge", 1e300);
  object.Add("nan", std::numeric_limits<double>::quiet_NaN());
  object.Add("infinity", -std::numeric_limits<double>::infinity());
  EXPECT_EQ(object.Text(), R"({"tenth":0.1,"whole":3,"huge":1e+300,"nan":null,"infinity":null})");
}

}  // namespace
}  // namespace tetrion
