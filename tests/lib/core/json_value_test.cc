#include "lib/core/json_value.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tetrion {
namespace {

TEST(JsonValueTest, DepthAndValueCountAreBounded) {
  JsonValue value;
  EXPECT_TRUE(ParseJson(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']'), value));
  constexpr std::size_t kTooDeep = kMaxJsonDepth + 2;  // the innermost holds nothing
  EXPECT_FALSE(ParseJson(std::string(kTooDeep, '[') + std::string(kTooDeep, ']'), value));
  EXPECT_FALSE(ParseJson(std::string(100000, '['), value));
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) many += ",0";
  EXPECT_FALSE(ParseJson(many + "]", value));
}

TEST(JsonValueTest, StringsAndNumbersFollowTheGrammar) {
  JsonValue value;
  ASSERT_TRUE(ParseJson(R"( "a\u0009\\\"\/b" )", value));
  EXPECT_EQ(value.text, "a\t\\\"/b");
  ASSERT_TRUE(ParseJson("-12.5e+3", value));
  EXPECT_EQ(value.text, "-12.5e+3");
  for (const char* bad :
       {"", "-", "1.", "1e", "+1", ".5", "\"", "\"\\x\"", "\"\\u12\"", "\"\\u1234\"", "\"\n\"",
        "true", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "1 2", "[1 2]"}) {
    EXPECT_FALSE(ParseJson(bad, value)) << bad;
  }
  EXPECT_FALSE(ParseJson(std::string_view("\0", 1), value));
}

}  // namespace
}  // namespace tetrion
