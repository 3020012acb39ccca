#include "lib/core/control_group.h"

#include <gmock/gmock.h>

#include "tests/lib/core/stand_in_root.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ControlGroupTest : public testing::StandInRoot {
 protected:
  // Without the root.
  std::vector<std::string> Folders(const std::string& controller) const {
    std::vector<std::string> folders;
    for (const ControlGroup& group : ControlGroupsOf(controller, root_)) {
      folders.push_back(group.folder.substr(root_.size()));
      is_v2_ = group.is_v2;
    }
    return folders;
  }
  mutable bool is_v2_ = false;
};

TEST_F(ControlGroupTest, OwnGroupComesFirstAndTheHighestMountedLast) {
  EXPECT_THAT(Folders("cpu"), IsEmpty());
  MountV2("/", "/a/b");
  EXPECT_THAT(Folders("cpu"),
              ElementsAre("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"));
  EXPECT_TRUE(is_v2_);
  MountV2("/docker/1f", "/docker/1f/inner");
  EXPECT_THAT(Folders("memory"), ElementsAre("/sys/fs/cgroup/inner", "/sys/fs/cgroup"));
}

TEST_F(ControlGroupTest, VersionOneHasAHierarchyForEachController) {
  MountV1("/", "/jobs/7");
  EXPECT_THAT(Folders("memory"),
              ElementsAre("/sys/fs/cgroup/memory/jobs/7", "/sys/fs/cgroup/memory/jobs",
                          "/sys/fs/cgroup/memory"));
  EXPECT_FALSE(is_v2_);
  EXPECT_THAT(Folders("cpuset"),
              ElementsAre("/sys/fs/cgroup/cpuset/elsewhere", "/sys/fs/cgroup/cpuset"));
  EXPECT_THAT(Folders("pids"), IsEmpty());
}

}  // namespace
}  // namespace tetrion
