#include "lib/core/random.h"

#include <sys/random.h>

#include "lib/core/check.h"

namespace tetrion {

std::uint64_t RandomBits() {
  std::uint64_t bits = 0;
  TETRION_CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits, "getrandom gives 8 bytes at once");
  return bits;
}

}  // namespace tetrion
