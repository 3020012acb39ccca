#include "lib/core/text_forms.h"

#include <gtest/gtest.h>

#include <string>

namespace tetrion {
namespace {

TEST(TextFormsTest, NamesAreLettersDigitsAndThreeMarks) {
  for (const char* good : {"a", "actor-0", "A.b_c-9", ".", "-x"}) EXPECT_TRUE(IsName(good)) << good;
  for (const char* bad : {"", "caf\xe9", "caf\xc3\xa9", "a b", "a/b", "a\"b", "a\n"}) {
    EXPECT_FALSE(IsName(bad)) << bad;
  }
  EXPECT_TRUE(IsName(std::string(64, 'n')));
  EXPECT_FALSE(IsName(std::string(65, 'n')));
  EXPECT_FALSE(IsName(std::string("a\0b", 3)));
}

TEST(TextFormsTest, EndpointsAreHostAndPort) {
  for (const char* good :
       {"127.0.0.1:80", "localhost:65535", "actor-3.svc.local:1", "[::1]:9000", "[fe80::1]:1"}) {
    EXPECT_TRUE(IsHostPort(good)) << good;
  }
  for (const char* bad :
       {"", ":80", "host", "host:", "host:0", "host:65536", "host:+1", "host:80 ", "a b:80",
        "a\",\"b:80", "[::1]", "[]:80", "[::1:80", "::1]:80", "http://host:80", "host:80/x"}) {
    EXPECT_FALSE(IsHostPort(bad)) << bad;
  }
}

TEST(TextFormsTest, PlainTextIsUtf8WithoutControlCharacters) {
  for (const char* good : {"", "a b", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsPlainText(good)) << good;
  }
  for (const char* bad :
       {"caf\xe9", "a\nb", "\x7f", "\x1b[2J", "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf",
        "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(IsPlainText(bad)) << bad;
  }
}

TEST(TextFormsTest, CutTextsKeepWholeCharacters) {
  EXPECT_EQ(CutText("abc", 3), "abc");
  EXPECT_EQ(CutText("abcd", 3), "abc");
  EXPECT_EQ(CutText("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(CutText("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_EQ(CutText("\xe2\x82\xac", 1), "");
}

}  // namespace
}  // namespace tetrion
