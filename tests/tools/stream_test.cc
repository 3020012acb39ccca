// tools/stream: options, the linear policy, the environment behind a host, round-trip quantiles,
// what inspect says of regions, and docs/formats/region_v2.md.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/region_v2/compat_host.h"
#include "lib/region_v2/compat_kernel.h"
#include "lib/region_v2/compat_region.h"
#include "tests/support/source_file.h"
#include "tools/stream/cartpole_env.h"
#include "tools/stream/inspect.h"
#include "tools/stream/latency.h"
#include "tools/stream/region_doc.h"
#include "tools/stream/stream_end.h"
#include "tools/stream/stream_options.h"
#include "tools/stream/stream_policy.h"

namespace tetrion {
namespace {

StreamOptions Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tetrion-stream");
  StreamOptions options;
  EXPECT_FALSE(ParseStreamOptions(static_cast<int>(words.size()), words.data(), options));
  return options;
}

TEST(StreamOptionsTest, ValuesArriveAndWrongOnesAreRefused) {
  const StreamOptions options =
      Parse({"kernel", "--region", "/r", "--size", "2", "--weights", "-1,2.5,0,1e-3"});
  EXPECT_EQ(options.size_mib, 2);
  EXPECT_TRUE(options.weights_given);
  EXPECT_EQ(options.weights, (std::array<float, 4>{-1.0F, 2.5F, 0.0F, 1e-3F}));
  EXPECT_FALSE(Parse({"host", "--region", "/r"}).weights_given);
  EXPECT_EQ(Parse({"kernel", "--region", "/r", "--policy", "checkpoint:x"}).policy, "checkpoint:x");
  EXPECT_EQ(Parse({"layout"}).command, "layout");
  EXPECT_THROW(Parse({"listen", "--region", "/r"}), Error);
  EXPECT_THROW(Parse({"inspect"}), Error);
  EXPECT_THROW(Parse({"kernel", "--region", "/r", "--policy", "checkpoint:"}), Error);
  for (const char* weights :
       {"1,2,3", "1,2,3,4,5", "1,2,3,4,", "1,,2,3", "1,2,3,x", "", "1,2,3,inf"}) {
    EXPECT_THROW(Parse({"host", "--region", "/r", "--weights", weights}), Error) << weights;
  }
}

TEST(LatencyHistogramTest, QuantilesAreWithinASixteenth) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  for (std::int64_t time_ns = 1; time_ns <= 100'000; ++time_ns) histogram.Add(time_ns);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const double exact = share * 100'000;
    const auto found = static_cast<double>(histogram.Quantile(share));
    EXPECT_GE(found, exact) << share;
    EXPECT_LE(found, exact * 17 / 16 + 1) << share;
  }
}

TEST(LatencyHistogramTest, ExtremeTimesHaveABucket) {
  LatencyHistogram histogram;
  histogram.Add(-5);
  EXPECT_EQ(histogram.Quantile(1), 0);
  histogram.Add(INT64_MAX);
  EXPECT_EQ(histogram.Quantile(1), INT64_MAX);
  for (std::int64_t time_ns = 0; time_ns < 16; ++time_ns) {
    LatencyHistogram one;
    one.Add(time_ns);
    EXPECT_EQ(one.Quantile(0.5), time_ns);
  }
}

TEST(CartPoleCompatEnvTest, EpisodesFollowTheRulesFromTheTokensStart) {
  constexpr std::uint64_t kSeed = 11;
  CartPoleCompatEnv env(kSeed, 500);
  for (std::uint64_t token = 0; token < 20; ++token) {
    CartPoleState state = CartPoleReset(kSeed, token);
    std::array<float, 4> obs = env.Reset();
    bool ended = false;
    for (std::uint32_t step = 0; !ended; ++step) {
      const CartPoleRecord record = RecordOf(state);
      ASSERT_EQ(std::memcmp(&record, obs.data(), sizeof record), 0) << token << " " << step;
      EXPECT_TRUE(env.running());
      const auto action = static_cast<std::uint16_t>(
          PhiloxDraw(kSeed, token, step, PhiloxPurpose::kActions).word[0] & 1U);
      const bool fell = CartPoleStep(state, action);
      const CompatStep next = env.Step(action);
      EXPECT_EQ(next.terminated, fell);
      EXPECT_EQ(next.reward, 1.0F);
      EXPECT_FALSE(next.truncated);
      obs = next.obs;
      ended = fell;
    }
    EXPECT_FALSE(env.running());
  }
}

TEST(CartPoleCompatEnvTest, TheStepLimitTruncates) {
  CartPoleCompatEnv env(1, 3);
  EXPECT_EQ(env.steps_per_s(), 0.0);
  for (int episode = 1; episode <= 2; ++episode) {
    (void)env.Reset();
    EXPECT_FALSE(env.Step(0).truncated);
    EXPECT_FALSE(env.Step(1).truncated);
    const CompatStep last = env.Step(0);
    EXPECT_TRUE(last.truncated);
    EXPECT_FALSE(last.terminated);
    EXPECT_EQ(env.return_sum(), 3.0 * episode);
    EXPECT_GT(env.steps_per_s(), 0.0);
  }
  EXPECT_EQ(env.metadata().obs_dim, 4U);
  EXPECT_EQ(env.metadata().action_count, 2U);
}

// A region in memory with a host that serves it on a thread of its own.
class StreamPairTest : public ::testing::Test {
 protected:
  StreamPairTest()
      : words_(kCompatRegionBytes / sizeof(std::uint64_t)),
        memory_(std::as_writable_bytes(std::span(words_))) {
    options_.command = "kernel";
    kernel_.emplace(memory_, EndConfigOf(options_, stop_));
  }
  ~StreamPairTest() override { StopHost(); }

  void StartHost(std::optional<std::array<float, 4>> weights) {
    host_ = std::thread([this, weights] {
      CartPoleCompatEnv env(4, 500);
      CompatHost host(memory_, env, EndConfigOf(options_, stop_), kNanosPerSecond);
      if (weights) host.SetWeights(*weights);
      while (host.Serve(kNanosPerSecond) == CompatResult::kOk) {
      }
    });
  }
  void StopHost() {
    stop_ = true;
    if (host_.joinable()) host_.join();
  }
  RegionReport Inspect() const { return InspectRegion(memory_, 4); }
  template <typename T>
  T& At(std::size_t offset) {
    return *reinterpret_cast<T*>(memory_.data() + offset);  // words_ are aligned for every struct
  }

  StreamOptions options_;
  std::atomic<bool> stop_{false};
  std::vector<std::uint64_t> words_;
  std::span<std::byte> memory_;
  std::optional<CompatKernel> kernel_;
  std::thread host_;
};

TEST_F(StreamPairTest, TheLinearPolicyTakesTheUploadedWeights) {
  StartHost(std::array<float, 4>{0.1F, 0.5F, 2.0F, 2.0F});
  LinearStreamPolicy policy(*kernel_, {-1.0F, -1.0F, -1.0F, -1.0F});
  CompatObs obs;
  ASSERT_EQ(kernel_->Reset(obs), CompatResult::kOk);
  EXPECT_GT(obs.model_id, 0.0F);
  std::uint32_t steps = 0;
  for (; obs.done <= 0.5F; ++steps) {
    ASSERT_EQ(kernel_->Step(policy.Act(obs, 0).value(), obs), CompatResult::kOk);
  }
  EXPECT_EQ(steps, 500U) << "the uploaded weights balance, the others do not";
}

TEST_F(StreamPairTest, TheLinearPolicyFallsBackToItsOwnWeights) {
  StartHost(std::nullopt);
  LinearStreamPolicy policy(*kernel_, {1.0F, 0.0F, 0.0F, 0.0F});
  CompatObs obs;
  ASSERT_EQ(kernel_->Reset(obs), CompatResult::kOk);
  EXPECT_EQ(obs.model_id, 0.0F);
  obs.obs[0] = 0.25F;
  EXPECT_EQ(policy.Act(obs, 0), 1);
  obs.obs[0] = -0.25F;
  EXPECT_EQ(policy.Act(obs, 0), 0);
  obs.model_id = 9.0F;
  EXPECT_FALSE(policy.Act(obs, 0)) << "no such blob";
}

TEST_F(StreamPairTest, InspectShowsASessionAndFindsItSound) {
  StartHost(std::array<float, 4>{0.1F, 0.5F, 2.0F, 2.0F});
  CompatObs obs;
  ASSERT_EQ(kernel_->Reset(obs), CompatResult::kOk);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(kernel_->Step(1, obs), CompatResult::kOk);
  StopHost();
  const RegionReport report = Inspect();
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
  for (const char* part : {"command ring", "response ring", "obs ring", "action ring",
                           "[5] seq 5 obs", "[4] seq 4 action 1", "epoch 1", "doorbells",
                           "type 1 at 0x11000: 16 bytes in 1 blocks 0.1 0.5 2 2", "sound"}) {
    EXPECT_NE(report.text.find(part), std::string::npos) << part << " in\n" << report.text;
  }
}

TEST_F(StreamPairTest, InspectNamesEverythingThatIsWrongAtOnce) {
  At<CompatRingHeader>(kCompatCommandRing).magic = 7;
  At<CompatRingHeader>(kCompatResponseRing).size = 1000;
  At<CompatRingHeader>(kCompatObsRing).head = 64;
  At<CompatHeapControl>(kCompatHeapControl).bitmap[3] = 1;
  const RegionReport report = Inspect();
  std::string all;
  for (const std::string& problem : report.problems) all += problem + "\n";
  for (const char* part :
       {"command ring", "1000", "OBS ring", "free_blocks is", "no blob starts"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
  EXPECT_EQ(report.text.find("sound"), std::string::npos);
}

TEST_F(StreamPairTest, InspectNamesASpoiltStreamRing) {
  for (const std::uint32_t magic : {0U, 0xBADU}) {
    At<CompatRingHeader>(kCompatObsRing).magic = magic;
    const RegionReport report = Inspect();
    ASSERT_EQ(report.problems.size(), 1U);
    EXPECT_NE(report.problems.front().find("OBS ring at 0xfe000: magic is"), std::string::npos);
    EXPECT_EQ(report.text.find("sound"), std::string::npos);
    EXPECT_EQ(report.text.find("no stream rings"), std::string::npos);
  }
}

TEST_F(StreamPairTest, InspectSurvivesAnyContent) {
  const auto report_is_bounded = [this] {
    const RegionReport report = Inspect();
    EXPECT_LT(report.problems.size(), 100U);
    EXPECT_LT(report.text.size(), std::size_t{4} << 20);
  };
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const PhiloxBlock draw = PhiloxDraw(3, round, i, PhiloxPurpose::kSampler);
      words_[i] = std::uint64_t{draw.word[0]} << 32 | draw.word[1];
    }
    // The later rounds keep some magics, so that garbage is followed further.
    if (round > 1) At<CompatHeapControl>(kCompatHeapControl).magic = kCompatHeapMagic;
    if (round > 2) At<CompatRingHeader>(kCompatObsRing).magic = kCompatStreamMagic;
    if (round > 3) At<CompatRingHeader>(kCompatActionRing).magic = kCompatStreamMagic;
    for (std::uint32_t block = 0; round > 4 && block < kCompatHeapBlocks; ++block) {
      auto& blob = At<CompatBlobHeader>(kCompatHeapData + block * kCompatBlockBytes);
      blob.magic = kCompatBlobMagic;
      blob.offset = block * kCompatBlockBytes;
    }
    report_is_bounded();
  }
}

TEST(StreamOutcomeTest, EachBadEndHasItsCodeAndSaysWhere) {
  const StreamOptions options = {.command = "kernel", .region = "/r"};
  ThrowUnlessGood({.result = CompatResult::kOk}, options);
  ThrowUnlessGood({.result = CompatResult::kStopped}, options);
  const auto code_of = [&](CompatResult result) {
    try {
      ThrowUnlessGood({.result = result, .problem = "for a reason"}, options);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("/r"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(CompatResultName(result)), std::string::npos)
          << error.what();
      return error.code();
    }
    return ExitCode::kOk;
  };
  for (const CompatResult result :
       {CompatResult::kPeerLost, CompatResult::kTimeout, CompatResult::kBusy}) {
    EXPECT_EQ(code_of(result), ExitCode::kTryAgain);
  }
  for (const CompatResult result :
       {CompatResult::kCorrupt, CompatResult::kSeqError, CompatResult::kRefused}) {
    EXPECT_EQ(code_of(result), ExitCode::kConfig);
  }
  try {
    ThrowUnlessGood({CompatResult::kRefused, "", kCompatErrorRestart}, options);
    FAIL() << "a new host is no good end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find("a new host"), std::string::npos) << error.what();
  }
}

TEST(StreamOutcomeTest, SilenceOfTheOtherEndHasAReasonToo) {
  const StreamOptions kernel = {.command = "kernel", .peer_timeout_ms = 300};
  EXPECT_EQ(ReasonOf({CompatResult::kPeerLost, "of an earlier refusal"}, kernel),
            "the host has shown no sign of life for 300 ms");
  EXPECT_EQ(ReasonOf({CompatResult::kPeerLost}, {.command = "host", .peer_timeout_ms = 9}),
            "the kernel has shown no sign of life for 9 ms");
  EXPECT_EQ(ReasonOf({CompatResult::kTimeout}, kernel), "the host did not answer");
  EXPECT_EQ(ReasonOf({CompatResult::kRefused, "for a reason"}, kernel), "for a reason");
}

TEST(RetryPauseTest, DoublesToASecondUntilSomethingIsAchieved) {
  RetryPause pause;
  for (std::int64_t time_ms = 1; time_ms < 1000; time_ms *= 2)
    EXPECT_EQ(pause.NextNs(), time_ms * kNanosPerMilli);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pause.NextNs(), kNanosPerSecond);
  pause.Reset();
  EXPECT_EQ(pause.NextNs(), kNanosPerMilli);
}

TEST(EndLineTest, NumbersHaveSixDigitsAndCountersTheirOrder) {
  JsonObject line;
  AddNumber(line, "x", 1.0 / 3);
  AddNumber(line, "nan", __builtin_nan(""));
  AddStats(line, {.steps = 1, .sleeps = 2});
  EXPECT_EQ(line.Text(),
            "{\"x\":0.333333,\"nan\":0,\"steps\":1,\"episodes\":0,\"truncated\":0,\"resets\":0,"
            "\"commands\":0,\"errors\":0,\"seq_errors\":0,\"dropped\":0,\"doorbells\":0,"
            "\"wakes\":0,\"waits\":0,\"sleeps\":2}");
}

TEST(RegionDocTest, TheDocumentIsUpToDate) {
  std::ifstream file(testing::SourceFile("docs/formats/region_v2.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), RegionDoc()) << "run tetrion-stream layout > docs/formats/region_v2.md";
}

TEST(RegionDocTest, TheExampleIsWhatTheFormatSays) {
  // Written down by hand from the format: little-endian, the fields in their order.
  for (const char* line : {"000000: 9e ca de 51 01 00 00 00 00 00 00 00 00 04 00 00",
                           "000020: 00 01 00 00 01 00 00 00 01 00 00 00 00 00 00 00",
                           "008020: 00 80 00 01 00 00 00 00 02 00 00 00 00 00 00 00",
                           "0ff020: 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00",
                           "0fe000: 4d 52 54 53 02 00 00 00 02 00 00 00 40 00 00 00"}) {
    EXPECT_NE(RegionDoc().find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace tetrion
