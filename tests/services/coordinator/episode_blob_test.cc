#include "services/coordinator/episode_blob.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "lib/core/philox.h"

namespace tetrion::coordinator {
namespace {

using Reports = std::vector<wire::EpisodeReport>;
using Blob = std::vector<std::byte>;

constexpr std::size_t kHeader = 40;

Blob Encoded(const Reports& episodes) {
  Blob blob(7);  // of an earlier report
  EncodeEpisodes(episodes, blob);
  return blob;
}

void ExpectSame(const Reports& have, const Reports& want) {
  ASSERT_EQ(have.size(), want.size());
  if (want.empty()) return;
  EXPECT_EQ(std::memcmp(have.data(), want.data(), want.size() * sizeof(want[0])), 0);
}

// What is stored is what is read again, and never more bytes than an array has.
void ExpectRoundTrip(const Reports& episodes) {
  const Blob blob = Encoded(episodes);
  EXPECT_LE(blob.size(), episodes.size() * sizeof(wire::EpisodeReport));
  Reports read = {{.token_id = 5}};
  ASSERT_TRUE(DecodeEpisodes(blob, episodes.size(), read));
  ExpectSame(read, episodes);
}

// Reports as CartPole's actors send them.
Reports Usual(std::size_t count) {
  Reports episodes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto steps = static_cast<std::uint32_t>(10 + i * 7 % 190);
    episodes.push_back({.token_id = 1'000'000'000'000 + i * 13 % 4096,
                        .attempt = 1,
                        .length_steps = steps,
                        .policy_version = 70'000 + static_cast<std::uint32_t>(i % 3),
                        .episode_return = static_cast<float>(steps),
                        .lane = static_cast<std::uint16_t>(i * 5 % 256),
                        .worker = 1});
  }
  return episodes;
}

// Fields in random bytes, of which each has its own number of free bits, none in some.
Reports Random(std::uint64_t seed) {
  std::uint64_t draws = 0;
  const auto draw = [&] { return PhiloxDraw(seed, draws++, 0, PhiloxPurpose::kSampler).word[0]; };
  Reports episodes(draw() % 4 == 0 ? draw() % 8 : draw() % (wire::kMaxReports + 1));
  std::array<std::uint64_t, 4> base{}, mask{};
  for (std::size_t i = 0; i < 4; ++i) {
    base[i] = std::uint64_t{draw()} << 32 | draw();
    const std::uint32_t high = draw() % 33, low = draw() % 33;
    mask[i] = (std::uint64_t{1} << high) - 1;
    mask[i] = mask[i] << 32 | ((std::uint64_t{1} << low) - 1);
  }
  for (wire::EpisodeReport& episode : episodes) {
    std::array<std::uint64_t, 4> words = base;
    for (std::size_t i = 0; i < 4; ++i) {
      words[i] ^= (std::uint64_t{draw()} << 32 | draw()) & mask[i];
    }
    episode = std::bit_cast<wire::EpisodeReport>(words);
  }
  return episodes;
}

TEST(EpisodeBlobTest, EveryBatchIsReadAsItWasWritten) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    ExpectRoundTrip(Random(seed));
    if (HasFatalFailure()) return;
  }
}

TEST(EpisodeBlobTest, ExtremesAreReadAsTheyWereWritten) {
  constexpr std::uint64_t kMost64 = ~std::uint64_t{0};
  constexpr std::uint32_t kMost32 = ~std::uint32_t{0};
  const wire::EpisodeReport most = {kMost64, kMost32, kMost32,
                                    kMost32, kMost32, std::numeric_limits<float>::quiet_NaN(),
                                    65535,   65535};
  ExpectRoundTrip({});
  ExpectRoundTrip({most});
  ExpectRoundTrip(Reports(wire::kMaxReports, most));
  Reports ends(wire::kMaxReports);
  ends.back() = most;
  ends[1].episode_return = -std::numeric_limits<float>::infinity();
  ends[2].episode_return = -0.0F;
  ExpectRoundTrip(ends);
  for (const std::uint32_t step : {255U, 256U, 65535U, 65536U}) {
    ExpectRoundTrip({{}, {.length_steps = step}, {.lines = step}, {.token_id = step}});
  }
}

// tests/python/test_run.py and tests/tools/check_account_test.py read the same bytes.
TEST(EpisodeBlobTest, BytesOfAReportStayTheSame) {
  const Reports episodes = {{1000, 1, 20, 3, 7, 20.0F, 5, 1},
                            {1002, 1, 21, 0, 7, 21.0F, 4, 1},
                            {1001, 2, 300, 1, 9, -1.0F, 300, 1}};
  std::string text;
  for (const std::byte byte : Encoded(episodes)) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(byte) / 16];
    text += kDigits[static_cast<unsigned>(byte) % 16];
  }
  EXPECT_EQ(text,
            "0101020101040200e803000000000000010000001400000000000000070000000000a04104000100"
            "00020100000100000100180103000100000200000000000008000000e07d010000002801");
}

TEST(EpisodeBlobTest, UsualReportTakesAThirdOfItsBytesAndAFewEpisodesNoMore) {
  EXPECT_LE(Encoded(Usual(1024)).size() * 3, 1024 * sizeof(wire::EpisodeReport));
  EXPECT_EQ(Encoded(Usual(1)).size(), sizeof(wire::EpisodeReport));
}

TEST(EpisodeBlobTest, MoreEpisodesThanAReportHasAreAnArray) {
  const Reports episodes = Usual(wire::kMaxReports + 1);
  EXPECT_EQ(Encoded(episodes).size(), episodes.size() * sizeof(episodes[0]));
  ExpectRoundTrip(episodes);
}

TEST(EpisodeBlobTest, ArrayOfAnEarlierReleaseIsRead) {
  const Reports episodes = Usual(300);
  Blob blob(episodes.size() * sizeof(episodes[0]));
  std::memcpy(blob.data(), episodes.data(), blob.size());
  Reports read;
  ASSERT_TRUE(DecodeEpisodes(blob, episodes.size(), read));
  ExpectSame(read, episodes);
}

TEST(EpisodeBlobTest, BlobOfAnotherLengthIsRefused) {
  const Blob whole = Encoded(Usual(500));
  Reports read;
  for (std::size_t size = 0; size <= whole.size() + 40; ++size) {
    Blob blob = whole;
    blob.resize(size);
    EXPECT_EQ(DecodeEpisodes(blob, 500, read), size == whole.size()) << size;
    EXPECT_EQ(read.size(), size == whole.size() ? 500U : 0U);
  }
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{499}, std::uint64_t{501},
                                    ~std::uint64_t{0}, std::uint64_t{1} << 59}) {
    EXPECT_FALSE(DecodeEpisodes(whole, count, read)) << count;
  }
}

TEST(EpisodeBlobTest, WidthThatItsFieldCannotHaveIsRefused) {
  Reports read;
  for (std::size_t field = 0; field < 8; ++field) {
    for (std::size_t width = 0; width < 256; ++width) {
      Blob blob(kHeader + 3 * width);
      blob[field] = static_cast<std::byte>(width);
      const std::size_t most = field == 0 ? 8 : field < 6 ? 4 : 2;
      const bool possible =
          width <= most && (width == 0 || width == 1 || width == 2 || width == 4 || width == 8);
      EXPECT_EQ(DecodeEpisodes(blob, 3, read), possible) << field << " " << width;
    }
  }
}

// Columns of no bytes would make any number of episodes.
TEST(EpisodeBlobTest, HeaderAloneMakesNoMoreEpisodesThanAReportHas) {
  Reports read;
  EXPECT_TRUE(DecodeEpisodes(Blob(kHeader), wire::kMaxReports, read));
  EXPECT_FALSE(DecodeEpisodes(Blob(kHeader), wire::kMaxReports + 1, read));
  EXPECT_FALSE(DecodeEpisodes(Blob(kHeader), 0, read));
}

}  // namespace
}  // namespace tetrion::coordinator
