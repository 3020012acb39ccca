#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tetrion {

// One named parameter: a piece of the flat buffer.
struct ParameterInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  // floats from the start of the flat buffer
  std::size_t size = 0;    // floats
};

// The pieces of a flat buffer in order, without gaps. Networks on CPU and device are made from the
// same layouts, so that what one publishes the other loads.
using ParameterLayout = std::vector<ParameterInfo>;

// Adds a piece at the end of the layout and returns its offset.
std::size_t AddParameter(ParameterLayout& layout, const std::string& name,
                         std::vector<std::int64_t> shape);
// Adds a linear layer's pieces: `name`.weight [out, in] and `name`.bias [out].
void AddLinear(ParameterLayout& layout, const std::string& name, std::int64_t out, std::int64_t in);

// The piece called `name`; CHECKs that there is one.
const ParameterInfo& ParameterOf(const ParameterLayout& layout, const std::string& name);

// Floats of the whole buffer.
std::size_t FloatsOf(const ParameterLayout& layout);

// Writes the initial values of a network of linear layers and convolutions into `parameters`, a
// pure function of (seed, layout): weights orthogonal, the policy's head small, biases 0, the
// scales of a LayerNorm 1.
void FillInitial(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters);

}  // namespace tetrion
