#pragma once

#include <string>
#include <vector>

namespace tetrion {

// One control group, as the folder in which its limits are read.
struct ControlGroup {
  std::string folder;
  bool is_v2 = false;
};

// The groups that bound this process in what `controller` ("cpu", "memory") governs: its own first,
// then each above it up to the highest that is mounted, in every hierarchy that has the controller;
// one of version 2 may. `root` stands before every path that is read: a test has a folder there.
// What cannot be read or understood is left out. Reads files; any thread.
std::vector<ControlGroup> ControlGroupsOf(const std::string& controller,
                                          const std::string& root = "");

}  // namespace tetrion
