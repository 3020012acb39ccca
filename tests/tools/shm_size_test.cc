// The sizes that are told against files that the services' own functions make.
#include "tools/shm_size/shm_size.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/inference/env_end.h"
#include "lib/inference/stream_layout.h"
#include "lib/rl/trainer.h"
#include "lib/setup/run_setup.h"
#include "lib/shm/region.h"
#include "lib/weights/learner_region.h"
#include "services/learner/trainer_factory.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A name for the test, and the settings that make the weights.
struct Case {
  const char* name;
  std::vector<Setting> given;
};

class ShmSizeTest : public ::testing::TestWithParam<Case> {
 protected:
  ShmSizeTest() {
    char pattern[] = "/dev/shm/tetrion_size_XXXXXX";
    dir_ = mkdtemp(pattern);
    std::vector<Setting> given = GetParam().given;
    given.insert(given.end(), {{"lanes", "12"}, {"max_workers", "3"}});
    run_ = MakeRunConfig(given);
  }
  ~ShmSizeTest() override { fs::remove_all(dir_); }
  StreamLayout Layout() const {
    return {RowLayout(RowSpecOf(run_)), static_cast<std::uint64_t>(run_.ring_rows)};
  }

  std::string dir_;
  RunConfig run_;
};

TEST_P(ShmSizeTest, TheLearnersRegionIsAsLargeAsItsTrainersWeightsMakeIt) {
  const auto trainer = learner::MakeTrainer(run_, RowSpecOf(run_), 1);
  const LearnerRegion region =
      LearnerRegion::CreateOrAdopt(dir_, 7, trainer->PolicyBlobBytes(), RunConfigHash(run_));
  EXPECT_EQ(ShmSizeOf(run_, false).learner_bytes, fs::file_size(region.region().path()));
}

TEST_P(ShmSizeTest, AWorkersRegionIsAsLargeAsItsRing) {
  const RingSpec ring = Layout().obs;
  const Region region =
      Region::Create(dir_, "ring", RegionKind::kRing, RingRegionBytes(ring), 7, ring.spec_hash);
  EXPECT_EQ(ShmSizeOf(run_, false).worker_bytes, fs::file_size(region.path()));
}

TEST_P(ShmSizeTest, AStreamedWorkersRegionHoldsItsAnswersToo) {
  const EnvEnd::Ends ends = EnvEnd::Create(dir_, "stream", 7, Layout(), 2);
  EXPECT_EQ(ShmSizeOf(run_, true).worker_bytes, fs::file_size(dir_ + "/stream"));
}

INSTANTIATE_TEST_SUITE_P(
    Runs, ShmSizeTest,
    ::testing::Values(Case{"Scorer", {{"env", "tetris-placement"}}},
                      Case{"Mlp", {{"env", "cartpole"}}},
                      Case{"Dreamer", {{"env", "cartpole"}, {"algo", "dreamer"}}},
                      Case{"LargerDreamer",
                           {{"env", "catch"}, {"algo", "dreamer"}, {"size", "1m"}}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ShmSizeTextTest, TheVolumeHasAQuarterMoreInWholeMebibytes) {
  const ShmSize size = {.learner_bytes = 1 << 20, .worker_bytes = 1 << 20, .workers = 3};
  EXPECT_EQ(size.TotalBytes(), 4U << 20);
  EXPECT_EQ(size.VolumeMib(), 5U);
  EXPECT_EQ((ShmSize{.learner_bytes = (4 << 20) + 1}.VolumeMib()), 6U);
  EXPECT_THAT(ShmSizeText(size), HasSubstr("4194304 bytes"));
  EXPECT_THAT(ShmSizeText(size), HasSubstr("size=5m"));
}

}  // namespace
}  // namespace tetrion
