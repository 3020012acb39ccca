#pragma once

#include <string>

namespace tetrion {

// How many CPUs this process can keep busy, at least 1: those that its affinity allows, or fewer
// where a control group (a container's `--cpus`, Kubernetes' limits) grants less time, rounded up.
// Asked at start, when threads are counted: reads files, any thread.
int UsableCpus();

// The part of the control groups: the smallest quota on the way from the process's group up to the
// highest that is mounted, in CPUs, rounded up; 0 without any. Version 2 says it in cpu.max,
// version 1 in cpu.cfs_quota_us and cpu.cfs_period_us. `root` stands before every path that is
// read: a test has a folder there. What cannot be read or understood sets no bound.
int QuotaCpus(const std::string& root = "");

}  // namespace tetrion
