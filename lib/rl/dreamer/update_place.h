#pragma once

#include <functional>

#include "lib/nn/dreamer/update_kernels.h"

namespace tetrion {

// A device on which DreamerV3's updates are computed. One thread at a time. Calls throw
// Error(kTryAgain) when the device fails, Error(kConfig) when its memory does not hold an update.
class UpdatePlace {
 public:
  virtual ~UpdatePlace() = default;

  // The device's number; kSimulated: its memory, and the tensors in it, are the host's.
  static constexpr int kSimulated = -1;
  virtual int ordinal() const = 0;
  virtual UpdateKernels& kernels() = 0;

  // Does what `work` asks of the tensor library and the kernels on the place's stream, and waits
  // until it is done.
  virtual void Once(const std::function<void()>& work) = 0;
  // The same for work that is always the same: operations, shapes and addresses, and nothing read
  // on the host. It may be recorded once and repeated from the record; `work` is then not called.
  virtual void Repeat(const std::function<void()>& work) = 0;
};

}  // namespace tetrion
