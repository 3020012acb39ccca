#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/device.h"

namespace tetrion::cuda {

// What the Error says that `call` throws.
template <typename Call>
std::string MessageOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A device and a stream, of the backend that the test was linked with. Skips where none is.
class DeviceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Device::Count() == 0) GTEST_SKIP() << "no CUDA device: nothing ran on one";
    device = std::make_unique<Device>(0);
    stream = std::make_unique<Stream>(*device, "test");
  }

  template <typename T>
  DeviceBuffer Upload(const std::vector<T>& values) {
    DeviceBuffer buffer(*device, values.size() * sizeof(T), "a test's values");
    CopyToDevice(buffer.data<T>(), values.data(), buffer.bytes(), CopyPurpose::kSetUp, *stream);
    return buffer;
  }
  // Waits for the stream.
  template <typename T>
  std::vector<T> Download(const DeviceBuffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    CopyToHost(values.data(), buffer.data<T>(), buffer.bytes(), CopyPurpose::kSetUp, *stream);
    stream->Synchronize();
    return values;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

}  // namespace tetrion::cuda
