#include "lib/nn/dreamer/dreamer_shape.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/philox.h"

namespace tetrion {
namespace {

struct NamedSize {
  const char* name;
  DreamerSize size;
};

constexpr NamedSize kSizes[] = {
    {"nano", {256, 64, 16, 8, 4, 8}},      {"1m", {512, 64, 32, 4, 4, 8}},
    {"12m", {2048, 256, 32, 16, 16, 8}},   {"25m", {3072, 384, 32, 24, 24, 8}},
    {"50m", {4096, 512, 32, 32, 32, 8}},   {"100m", {6144, 768, 32, 48, 48, 8}},
    {"200m", {8192, 1024, 32, 64, 64, 8}}, {"400m", {12288, 1536, 32, 96, 96, 8}},
};

// Adds the pieces of layers, in the order in which they compute.
class LayoutBuilder {
 public:
  LayoutBuilder(const DreamerShape& shape, ParameterLayout& layout)
      : shape_(shape), layout_(layout) {}

  void Norm(const std::string& name, std::int64_t width) {
    AddParameter(layout_, name + ".scale", {width});
    if (shape_.layer_norm) AddParameter(layout_, name + ".shift", {width});
  }

  // A hidden layer: linear, norm, activation.
  void Dense(const std::string& name, std::int64_t out, std::int64_t in) {
    AddLinear(layout_, name, out, in);
    Norm(name, out);
  }

  void Block(const std::string& name, std::int64_t out, std::int64_t in) {
    const std::int64_t blocks = shape_.size.blocks;
    AddParameter(layout_, name + ".weight", {blocks, in / blocks, out / blocks});
    AddParameter(layout_, name + ".bias", {out});
  }

  void Conv(const std::string& name, std::int64_t out, std::int64_t in) {
    AddParameter(layout_, name + ".weight", {out, in, kConvKernel, kConvKernel});
    AddParameter(layout_, name + ".bias", {out});
  }

  // `layers` hidden layers called `module`.0, .1, ...
  void Mlp(const std::string& module, std::int64_t layers, std::int64_t in) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      Dense(module + "." + std::to_string(layer), shape_.size.units,
            layer == 0 ? in : shape_.size.units);
    }
  }

  // Hidden layers and the last layer, `module`.out.
  void Head(const std::string& module, std::int64_t layers, std::int64_t out, std::int64_t in) {
    Mlp(module, layers, in);
    AddLinear(layout_, module + ".out", out, shape_.size.units);
  }

  void Encoder() {
    if (shape_.input != DreamerInput::kPixels) return Mlp("encoder", kMlpLayers, shape_.floats);
    std::int64_t channels = 1;
    for (std::int64_t stage = 0; stage < kConvStages; ++stage) {
      const std::string name = "encoder." + std::to_string(stage);
      const std::int64_t out = kConvMults[stage] * shape_.size.depth;
      Conv(name, out, channels);
      Norm(name, out);
      channels = out;
    }
  }

  void Core() {
    const DreamerSize& size = shape_.size;
    Dense("core.deter", size.units, size.deter);
    Dense("core.stoch", size.units, shape_.stoch_floats());
    Dense("core.action", size.units, shape_.actions);
    Block("core.hidden", size.deter, size.deter + 3 * size.units * size.blocks);
    Norm("core.hidden", size.deter);
    Block("core.gates", 3 * size.deter, size.deter);
  }

  void Decoder() {
    const DreamerSize& size = shape_.size;
    if (shape_.input != DreamerInput::kPixels) {
      return Head("decoder", kMlpLayers, shape_.floats, shape_.feature_floats());
    }
    std::int64_t channels = kConvMults[kConvStages - 1] * size.depth;
    const std::int64_t map = kLastMap * kLastMap * channels;
    Block("decoder.deter", map, size.deter);
    Dense("decoder.stoch", 2 * size.units, shape_.stoch_floats());
    AddLinear(layout_, "decoder.map", map, 2 * size.units);
    Norm("decoder.map", channels);
    for (std::int64_t stage = kConvStages - 2; stage >= 0; --stage) {
      const std::string name = "decoder." + std::to_string(stage);
      const std::int64_t out = kConvMults[stage] * size.depth;
      Conv(name, out, channels);
      Norm(name, out);
      channels = out;
    }
    Conv("decoder.out", 1, channels);
  }

 private:
  const DreamerShape& shape_;
  ParameterLayout& layout_;
};

// Standard normal numbers of one piece, those beyond two deviations left out.
class CutNormals {
 public:
  CutNormals(std::uint64_t seed, std::uint64_t piece) : seed_(seed), piece_(piece) {}

  double Next() {
    for (;;) {
      const double number = Normal();
      if (std::abs(number) <= 2.0) return number;
    }
  }

 private:
  // Box-Muller: a block gives two numbers of one radius.
  double Normal() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    // The highest bit keeps the draws apart from those of tokens, which count from 0.
    const std::uint64_t stream = std::uint64_t{1} << 63 | piece_;
    const PhiloxBlock draw = PhiloxDraw(seed_, stream, block_++, PhiloxPurpose::kLatents);
    const double radius = std::sqrt(-2.0 * std::log1p(-UnitDraw(draw.word[0])));
    const double angle = 2.0 * std::numbers::pi * UnitDraw(draw.word[1]);
    second_ = radius * std::sin(angle);
    has_second_ = true;
    return radius * std::cos(angle);
  }

  const std::uint64_t seed_, piece_;
  std::uint32_t block_ = 0;
  double second_ = 0;
  bool has_second_ = false;
};

// Inputs of one output. Of a block-diagonal layer all its inputs count, as in the published code,
// though an output sees those of its block alone.
double FanIn(const ParameterInfo& info) {
  const bool blocks = info.shape.size() == 3;
  return blocks ? static_cast<double>(info.shape[0] * info.shape[1])
                : static_cast<double>(info.size) / static_cast<double>(info.shape[0]);
}

double OutScale(const std::string& name) {
  if (name == "reward.out.weight" || name == "value.out.weight") return 0.0;
  return name == "actor.out.weight" ? 0.01 : 1.0;
}

}  // namespace

DreamerSize DreamerSizeOf(const std::string& name) {
  std::string known;
  for (const NamedSize& entry : kSizes) {
    if (name == entry.name) return entry.size;
    known += std::string(known.empty() ? "" : ", ") + entry.name;
  }
  throw Error(ExitCode::kUsage,
              "unknown size of the Dreamer model '" + name + "': choose one of " + known);
}

std::int64_t DreamerShape::embed_floats() const {
  if (input != DreamerInput::kPixels) return size.units;
  return kLastMap * kLastMap * kConvMults[kConvStages - 1] * size.depth;
}

DreamerShape DreamerShapeOf(const EnvSpec& env, const std::string& size) {
  DreamerShape shape;
  shape.size = DreamerSizeOf(size);
  shape.floats = env.obs.view_floats;
  shape.actions = env.action.count;
  if (env.obs.view == "planes") shape.input = DreamerInput::kPlanes;
  if (env.obs.view == "pixels") shape.input = DreamerInput::kPixels;
  TETRION_CHECK(
      shape.input != DreamerInput::kPixels || shape.floats == kPictureRows * kPictureColumns,
      "a picture has 72 x 80 pixels");
  return shape;
}

ParameterLayout DreamerLayout(const DreamerShape& shape) {
  ParameterLayout layout;
  LayoutBuilder builder(shape, layout);
  const std::int64_t logits = shape.stoch_floats(), feature = shape.feature_floats();
  builder.Encoder();
  builder.Core();
  builder.Head("posterior", kHeadLayers, logits, shape.size.deter + shape.embed_floats());
  builder.Head("actor", kMlpLayers, shape.actions, feature);
  builder.Head("prior", kPriorLayers, logits, shape.size.deter);
  builder.Decoder();
  builder.Head("reward", kHeadLayers, kDreamerBins, feature);
  builder.Head("continue", kHeadLayers, 1, feature);
  builder.Head("value", kMlpLayers, kDreamerBins, feature);
  return layout;
}

const std::vector<std::string>& DreamerModules() {
  static const std::vector<std::string> modules = {
      "encoder", "core", "posterior", "actor", "prior", "decoder", "reward", "continue", "value"};
  return modules;
}

DreamerSlice DreamerModule(const ParameterLayout& layout, const std::string& module) {
  DreamerSlice slice;
  for (const ParameterInfo& info : layout) {
    if (!info.name.starts_with(module + ".")) continue;
    if (slice.size == 0) slice.offset = info.offset;
    slice.size += info.size;
  }
  TETRION_CHECK(slice.size > 0, "no such module");
  return slice;
}

std::size_t ActingFloats(const DreamerShape& shape) {
  return DreamerModule(DreamerLayout(shape), "prior").offset;
}

void FillDreamerInitial(const DreamerShape& shape, std::uint64_t seed,
                        std::span<float> parameters) {
  // A normal distribution cut at two deviations has a deviation of 1 / 1.1368.
  constexpr double kCutDeviation = 1.1368;
  const ParameterLayout layout = DreamerLayout(shape);
  TETRION_CHECK(parameters.size() == FloatsOf(layout) || parameters.size() == ActingFloats(shape),
                "one value a parameter");
  std::uint64_t piece = 0;
  for (const ParameterInfo& info : layout) {
    if (info.offset >= parameters.size()) break;
    const std::span<float> values = parameters.subspan(info.offset, info.size);
    CutNormals normals(seed, ++piece);
    if (!info.name.ends_with(".weight")) {
      std::fill(values.begin(), values.end(), info.name.ends_with(".scale") ? 1.0F : 0.0F);
      continue;
    }
    const double deviation = kCutDeviation * OutScale(info.name) / std::sqrt(FanIn(info));
    for (float& value : values) {
      value = deviation == 0.0 ? 0.0F : static_cast<float>(deviation * normals.Next());
    }
  }
}

}  // namespace tetrion
