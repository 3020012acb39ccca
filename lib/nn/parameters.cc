#include "lib/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/core/check.h"
#include "lib/nn/init.h"

namespace tetrion {
namespace {

double GainOf(const std::string& name) {
  if (name == "policy.head.weight") return kPolicyHeadGain;
  return name == "value.head.weight" ? 1.0 : std::sqrt(2.0);
}

}  // namespace

std::size_t AddParameter(ParameterLayout& layout, const std::string& name,
                         std::vector<std::int64_t> shape) {
  ParameterInfo info;
  info.name = name;
  info.offset = FloatsOf(layout);
  info.size = 1;
  for (std::int64_t extent : shape) info.size *= static_cast<std::size_t>(extent);
  info.shape = std::move(shape);
  layout.push_back(info);
  return info.offset;
}

void AddLinear(ParameterLayout& layout, const std::string& name, std::int64_t out,
               std::int64_t in) {
  AddParameter(layout, name + ".weight", {out, in});
  AddParameter(layout, name + ".bias", {out});
}

const ParameterInfo& ParameterOf(const ParameterLayout& layout, const std::string& name) {
  const auto found = std::find_if(layout.begin(), layout.end(),
                                  [&](const ParameterInfo& info) { return info.name == name; });
  TETRION_CHECK(found != layout.end(), "no such parameter");
  return *found;
}

std::size_t FloatsOf(const ParameterLayout& layout) {
  return layout.empty() ? 0 : layout.back().offset + layout.back().size;
}

void FillInitial(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters) {
  TETRION_CHECK(parameters.size() == FloatsOf(layout), "one value a parameter");
  std::uint64_t stream = 0;
  for (const ParameterInfo& info : layout) {
    const std::span<float> piece = parameters.subspan(info.offset, info.size);
    if (info.shape.size() == 1) {
      std::fill(piece.begin(), piece.end(), info.name.ends_with("scale") ? 1.0F : 0.0F);
      continue;
    }
    const std::int64_t columns = static_cast<std::int64_t>(info.size) / info.shape[0];
    OrthogonalInit(piece, info.shape[0], columns, GainOf(info.name), seed, ++stream);
  }
}

}  // namespace tetrion
