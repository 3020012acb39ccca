#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/frame/specs.h"
#include "lib/nn/parameters.h"

namespace tetrion {

// DreamerV3's model (Hafner et al., 2023): what its parameters are and where they lie. Needs no
// tensor library. Letters: D deter, U units, S stoch groups, C classes, F floats of a view, A
// actions.

// Widths that a size's name stands for.
struct DreamerSize {
  std::int64_t deter = 0;    // D, the recurrent state
  std::int64_t units = 0;    // U, of every hidden layer
  std::int64_t stoch = 0;    // S, groups of the sampled state
  std::int64_t classes = 0;  // C, of each group
  std::int64_t depth = 0;    // channels of a convolution are a multiple of it
  std::int64_t blocks = 0;   // G, of block-diagonal layers
  bool operator==(const DreamerSize&) const = default;
};

// nano, 1m, 12m, 25m, 50m, 100m, 200m, 400m. Throws Error(kUsage) for another name.
DreamerSize DreamerSizeOf(const std::string& name);

// How encoder and decoder take a view.
enum class DreamerInput : std::uint8_t {
  kVector,  // numbers: symlog, squared error
  kPlanes,  // 0 or 1 each: as they are, cross-entropy
  kPixels,  // 72 x 80 grey values 0..1: convolutions, squared error
};

struct DreamerShape {
  DreamerSize size;
  DreamerInput input = DreamerInput::kVector;
  std::int64_t floats = 0;   // F
  std::int64_t actions = 0;  // A
  bool layer_norm = false;   // LayerNorm (scale and shift) instead of RMSNorm (scale)
  double unimix = 0.01;      // share of the uniform distribution in prior and posterior
  double actor_unimix = 0.01;

  std::int64_t stoch_floats() const { return size.stoch * size.classes; }      // Z
  std::int64_t feature_floats() const { return size.deter + stoch_floats(); }  // D + Z
  std::int64_t embed_floats() const;                                           // E
};

inline constexpr std::int64_t kDreamerBins = 255;  // of the two-hot distributions
inline constexpr float kNormEpsilon = 1e-4F;       // added to the mean square, or to the variance
inline constexpr std::int64_t kMlpLayers = 3;      // encoder, decoder, actor and critic
inline constexpr std::int64_t kPriorLayers = 2;
inline constexpr std::int64_t kHeadLayers = 1;  // posterior, reward and continue

// Pictures: four stages of convolution and 2x2 pool, 72x80 -> 36x40 -> 18x20 -> 9x10 -> 5x5.
inline constexpr std::int64_t kPictureRows = 72, kPictureColumns = 80;
inline constexpr std::int64_t kLastMap = 5;
inline constexpr std::int64_t kConvKernel = 5;
inline constexpr std::int64_t kConvMults[] = {2, 3, 4, 4};  // channels over depth, stage by stage
inline constexpr std::int64_t kConvStages = 4;

// The shape for an environment's view and actions.
DreamerShape DreamerShapeOf(const EnvSpec& env, const std::string& size);

// The flat buffer's pieces, module by module, each called `module.layer.part`:
//   encoder, core, posterior, actor    what acting needs: a prefix of the buffer
//   prior, decoder, reward, continue
//   value                              last, so that the slow critic's parameters are one slice
ParameterLayout DreamerLayout(const DreamerShape& shape);

// Floats of the prefix that acting needs.
std::size_t ActingFloats(const DreamerShape& shape);

// The floats of one module.
struct DreamerSlice {
  std::size_t offset = 0;
  std::size_t size = 0;
};
DreamerSlice DreamerModule(const ParameterLayout& layout, const std::string& module);
// In the order of the buffer.
const std::vector<std::string>& DreamerModules();

// Initial values, a pure function of (seed, shape): weights normal, cut at two deviations and
// scaled by their inputs; biases 0; scales 1. The last layers of reward and value are 0, so that
// both predict exactly 0 at first. `parameters` is the whole buffer, or its first ActingFloats.
void FillDreamerInitial(const DreamerShape& shape, std::uint64_t seed, std::span<float> parameters);

}  // namespace tetrion
