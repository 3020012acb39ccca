#pragma once

#include <string>

#include "lib/checkpoint/state.h"

namespace tetrion::testing {

// Reference data of a test program: tests/golden/dreamer.safetensors, or the file of the program's
// option --golden FILE, which may hold some of the cases only.

// The tensor called `name`; throws Error when the file or the tensor is not there.
const TrainerState::Tensor& Golden(const std::string& name);

// Whether a test of tensor `name` should run: false when another file lacks it. Of the tree's own
// file it is always true, so that a case that is lost there fails.
bool HasGolden(const std::string& name);
inline constexpr const char* kNoCase = "the file given with --golden lacks this case";

}  // namespace tetrion::testing
