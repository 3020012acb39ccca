#include <atomic>
#include <cstring>
#include <vector>

#include "lib/core/error.h"
#include "lib/region_v2/compat_layout.h"
#include "lib/shm/mapped_file.h"
#include "tools/stream/commands.h"
#include "tools/stream/inspect.h"
#include "tools/stream/region_doc.h"
#include "tools/stream/truncation_guard.h"

namespace tetrion {
namespace {

// The region's bytes as they are now; both ends may be writing.
std::vector<std::byte> CopyOf(const MappedFile& file) {
  const std::size_t bytes =
      file.bytes() >= kCompatLargeRegionBytes ? kCompatLargeRegionBytes : kCompatRegionBytes;
  std::vector<std::byte> copy(bytes);
  auto* words = reinterpret_cast<std::uint32_t*>(file.data());  // mapped memory is page-aligned
  for (std::size_t i = 0; i < bytes / sizeof(std::uint32_t); ++i) {
    const std::uint32_t word =
        std::atomic_ref<std::uint32_t>(words[i]).load(std::memory_order_relaxed);
    std::memcpy(copy.data() + i * sizeof word, &word, sizeof word);
  }
  return copy;
}

}  // namespace

int RunInspect(const StreamOptions& options, std::FILE* out) {
  const MappedFile file =
      MappedFile::Open(options.region, kCompatRegionBytes,
                       options.size_mib == 2 ? kCompatLargeRegionBytes : kCompatRegionBytes);
  const TruncationGuard guard({file.data(), file.bytes()}, options.region);
  const std::vector<std::byte> copy = CopyOf(file);
  const RegionReport report = InspectRegion(copy, options.last);
  std::fputs(report.text.c_str(), out);
  for (const std::string& problem : report.problems) {
    std::fprintf(out, "problem: %s\n", problem.c_str());
  }
  std::fflush(out);
  if (report.problems.empty()) return 0;
  throw Error(ExitCode::kConfig, options.region + ": " + report.problems.front() +
                                     "; end both programs and remove the file, or let them agree");
}

int RunLayout(std::FILE* out) {
  return std::fputs(RegionDoc().c_str(), out) < 0 ? 1 : 0;
}

}  // namespace tetrion
