#pragma once

#include <set>
#include <string>

namespace tetrion::cuda::sim {

// Names a file in the environment, to which the program appends a line for each kernel that it
// runs: where its code lies. So a test (tests/tidy/executed_kernels.py) sees that every kernel of
// lib/ runs somewhere.
inline constexpr char kKernelLogVariable[] = "TETRION_SIM_KERNELS";

// Not thread-safe; the simulator's mutex guards it.
class KernelLog {
 public:
  // An empty path: notes nothing.
  explicit KernelLog(const std::string& path) : path_(path) {}

  // A kernel begins. Its first time appends "<address> <program>": where the function lies in the
  // program's file, as addr2line takes it. Throws Error(kTryAgain) when the file does not take it.
  void Note(const void* function);

 private:
  const std::string path_;
  std::set<const void*> noted_;
};

}  // namespace tetrion::cuda::sim
