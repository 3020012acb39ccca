#pragma once

// The precompiled header of every file that uses the tensor library; its headers do not pass our
// warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <torch/torch.h>
#pragma GCC diagnostic pop
