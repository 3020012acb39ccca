#include "lib/core/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "lib/core/error.h"

namespace tetrion {

void RaiseFileLimit(std::uint64_t needed, const std::string& what) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t all = std::max<rlim_t>(needed, limit.rlim_max);
  const rlimit raised = {all, all};  // beyond the hard limit only for root
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  const rlimit allowed = {limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &allowed) == 0 && limit.rlim_max >= needed) return;
  throw Error(ExitCode::kUsage, what + " needs " + std::to_string(needed) +
                                    " open files, the hard limit is " +
                                    std::to_string(limit.rlim_max) + ": raise it (ulimit -Hn)");
}

}  // namespace tetrion
