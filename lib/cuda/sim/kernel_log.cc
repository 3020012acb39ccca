#include "lib/cuda/sim/kernel_log.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <fstream>
#include <sstream>

#include "lib/core/error.h"

namespace tetrion::cuda::sim {

void KernelLog::Note(const void* function) {
  if (path_.empty() || !noted_.insert(function).second) return;
  Dl_info program = {};
  link_map* loaded = nullptr;  // its l_addr is 0 where the file's addresses are the process's
  std::ostringstream line;
  if (dladdr1(function, &program, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) != 0) {
    line << std::hex << reinterpret_cast<std::uintptr_t>(function) - loaded->l_addr << ' '
         << program.dli_fname << '\n';
  }
  std::ofstream file(path_, std::ios::app);
  file << line.str() << std::flush;
  if (!file || line.str().empty()) {
    throw Error(ExitCode::kTryAgain, "cannot note in " + path_ + " that a kernel ran");
  }
}

}  // namespace tetrion::cuda::sim
