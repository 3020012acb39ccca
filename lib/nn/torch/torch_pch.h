#pragma once

// The precompiled header of every file that uses the tensor library: tensors, their functions and
// differentiation. <torch/torch.h> would add modules, optimisers and data loaders, which nothing
// here uses and every such file would take twice as long to read. Its headers do not pass our
// warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>
#pragma GCC diagnostic pop
