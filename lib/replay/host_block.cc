#include "lib/replay/host_block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "lib/core/align.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::size_t kBaseAlignBytes = 256;
// A window lies on hundreds of ordinary pages, each a walk through the page tables.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::byte* Allocate(std::size_t wanted, const std::string& what) {
  const bool huge = wanted >= kHugePageBytes;
  const std::size_t align = huge ? kHugePageBytes : kBaseAlignBytes;
  const std::size_t bytes = AlignUp(wanted, align);
  void* memory = std::aligned_alloc(align, bytes);
  if (memory == nullptr) {
    throw Error(ExitCode::kTryAgain,
                "no memory for " + what + " of " + std::to_string(bytes) +
                    " bytes; lower --max-workers, --replay-rows or --lanes, "
                    "which a resumed run keeps: --init-from RUN begins another");
  }
  if (huge) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));  // or does without
  std::memset(memory, 0, bytes);  // pages are there before the first row arrives
  return static_cast<std::byte*>(memory);
}

}  // namespace

HostBlock::HostBlock(std::size_t bytes, const std::string& what) : data_(Allocate(bytes, what)) {}

HostBlock::~HostBlock() {
  std::free(data_);
}

}  // namespace tetrion
