#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"

namespace tetrion {

// The safetensors container: u64 header length (little endian), a JSON header, raw tensor bytes.
// Only f32 tensors are written and read; counters and metadata are strings of "__metadata__".
// Reading computes nothing but bounds: a file cannot make it execute anything, nor allocate
// more than its own size and a few MiB for the header.

// Longest header accepted, tensors of one file and dimensions of one tensor.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTensors = 4096;
inline constexpr std::size_t kMaxDimensions = 8;

struct SafetensorsFile {
  std::vector<TrainerState::Tensor> tensors;    // in data order
  std::map<std::string, std::string> metadata;  // without a prefix
};

// A file of these tensors, in this order.
std::vector<std::byte> EncodeSafetensors(std::span<const TrainerState::Tensor> tensors,
                                         const std::map<std::string, std::string>& metadata);

// Throws Error(kConfig) with one sentence naming `origin` when the bytes are truncated, foreign or
// corrupt.
SafetensorsFile DecodeSafetensors(std::span<const std::byte> bytes, const std::string& origin);

}  // namespace tetrion
