#include "lib/rl/vtrace/vtrace.h"

#include <algorithm>
#include <cmath>

#include "lib/frame/row_layout.h"

namespace tetrion {

VtraceSummary ComputeVtrace(const VtraceConstants& constants, const VtraceInput& in,
                            const VtraceOutput& out) {
  VtraceSummary summary;
  double rho_sum = 0;
  std::int64_t clipped = 0;
  const std::int64_t lanes = in.lanes;
  for (std::int64_t t = in.steps - 1; t >= 0; --t) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t now = t * lanes + lane;
      const std::int64_t next = now + lanes;
      const double value = in.value[now];
      // v_{t+1}; the recursion reads back what it wrote for the later row.
      const double next_target = t + 1 == in.steps ? in.value[next] : out.target[next];
      if ((in.flags[now] & kIsLast) != 0) {
        out.target[now] = in.value[now];
        out.advantage[now] = out.unweighted[now] = out.rho[now] = 0.0F;
        continue;
      }
      const double ratio = std::exp(static_cast<double>(in.log_prob[now]) -
                                    static_cast<double>(in.behaviour_log_prob[now]));
      const double rho = std::min(constants.rho_clip, ratio);
      const double c = constants.lambda * std::min(constants.c_clip, ratio);
      const double gamma = constants.discount * in.cont[next];
      const double delta = rho * (in.reward[next] + gamma * in.value[next] - value);
      const double unweighted = in.reward[next] + gamma * next_target - value;
      out.target[now] =
          static_cast<float>(value + delta + gamma * c * (next_target - in.value[next]));
      out.unweighted[now] = static_cast<float>(unweighted);
      out.advantage[now] = static_cast<float>(rho * unweighted);
      out.rho[now] = static_cast<float>(rho);
      rho_sum += rho;
      clipped += ratio > constants.rho_clip ? 1 : 0;
      ++summary.valid;
    }
  }
  if (summary.valid > 0) {
    summary.mean_rho = rho_sum / static_cast<double>(summary.valid);
    summary.clipped_fraction = static_cast<double>(clipped) / static_cast<double>(summary.valid);
  }
  return summary;
}

float Symlog(float x) {
  return std::copysign(std::log1p(std::fabs(x)), x);
}

}  // namespace tetrion
