#include "tools/eval/deaths_notice.h"

namespace tetrion {
namespace {

constexpr std::int64_t kEveryNs = 10 * kNanosPerSecond;

}  // namespace

DeathsNotice::DeathsNotice(const Clock& clock, int deaths)
    : clock_(clock), deaths_(deaths), next_ns_(clock.NowNs() + kEveryNs) {}

std::string DeathsNotice::After(int deaths, std::uint64_t steps) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_ns_) return "";
  next_ns_ = now_ns + kEveryNs;
  return std::to_string(deaths) + " of " + std::to_string(deaths_) +
         " games have ended by themselves after " + std::to_string(steps) +
         " steps; Ctrl-C tells what is reached\n";
}

}  // namespace tetrion
