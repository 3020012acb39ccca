#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "lib/checkpoint/safetensors.h"
#include "lib/core/error.h"

namespace tetrion::testing {
namespace {

std::string path = TETRION_GOLDEN "/dreamer.safetensors";
bool is_ours = true;

const SafetensorsFile& File() {
  static const SafetensorsFile file = [] {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Error(ExitCode::kConfig, path + ": cannot be read");
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    return DecodeSafetensors(std::as_bytes(std::span(bytes)), path);
  }();
  return file;
}

const TrainerState::Tensor* Find(const std::string& name) {
  for (const TrainerState::Tensor& tensor : File().tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace

const TrainerState::Tensor& Golden(const std::string& name) {
  const TrainerState::Tensor* tensor = Find(name);
  if (tensor == nullptr) throw Error(ExitCode::kConfig, path + " has no tensor " + name);
  return *tensor;
}

bool HasGolden(const std::string& name) {
  return is_ours || Find(name) != nullptr;
}

}  // namespace tetrion::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string_view(argv[1]) == "--golden") {
    tetrion::testing::path = argv[2];
    tetrion::testing::is_ours = false;
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: %s [--golden FILE] [options of GoogleTest]\n", argv[0]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
