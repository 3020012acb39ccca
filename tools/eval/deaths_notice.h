#pragma once

#include <cstdint>
#include <string>

#include "lib/core/clock.h"

namespace tetrion {

// Tells a person how far the games of `eval --deaths` have come, since a policy whose games are
// all cut never ends it. One thread; asked at every row.
class DeathsNotice {
 public:
  DeathsNotice(const Clock& clock, int deaths);

  // A line for stderr when the last one, or the beginning, is 10 seconds ago; empty before.
  std::string After(int deaths, std::uint64_t steps);

 private:
  const Clock& clock_;
  const int deaths_;  // that end it
  std::int64_t next_ns_;
};

}  // namespace tetrion
