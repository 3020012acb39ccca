#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tetrion::testing {

// A folder that stands in for the machine's root, with control groups below /sys/fs/cgroup.
class StandInRoot : public ::testing::Test {
 protected:
  StandInRoot() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-root-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~StandInRoot() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // One hierarchy whose group `mounted` lies in /sys/fs/cgroup; the process is in `group`.
  void MountV2(const std::string& mounted, const std::string& group) const {
    Write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
          "30 22 0:26 " +
              mounted + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("/proc/self/cgroup", "0::" + group + "\n");
  }
  // A hierarchy each for cpuset, cpu and memory.
  void MountV1(const std::string& mounted, const std::string& group) const {
    const auto mount = [&](const std::string& folder, const std::string& controllers) {
      return "32 22 0:28 " + mounted + " /sys/fs/cgroup/" + folder + " rw - cgroup cgroup rw," +
             controllers + "\n";
    };
    Write("/proc/self/mountinfo",
          mount("cpuset", "cpuset") + mount("cpu", "cpu,cpuacct") + mount("memory", "memory"));
    Write("/proc/self/cgroup",
          "5:cpuset:/elsewhere\n4:cpu,cpuacct:" + group + "\n3:memory:" + group + "\n0::/\n");
  }

  std::string root_;
};

}  // namespace tetrion::testing
