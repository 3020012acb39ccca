#include "lib/cuda/device.h"

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::cuda {
namespace {

Activity OneWait() {
  Activity activity;
  activity.waits = 1;
  return activity;
}

void* Allocated(void* data, std::size_t bytes, const char* what, const std::string& free) {
  if (data != nullptr || bytes == 0) return data;
  throw Error(ExitCode::kTryAgain, std::string(what) + " needs " + std::to_string(bytes) +
                                       " bytes of " + free +
                                       "; ask for less, or free what others hold");
}

void Copy(void* to, const void* from, std::size_t bytes, CopyDirection direction, MemoryKind kind,
          CopyPurpose purpose, Stream& stream) {
  if (bytes == 0) return;
  if (kind == MemoryKind::kPageable) stream.CheckNotCapturing("pageable memory is copied");
  Activity activity;
  activity.Of(direction, kind, purpose) = {1, bytes};
  backend::CopyBytes(to, from, bytes, direction, kind, stream.Count(activity));
}

MemoryKind HostKind(const void* host) {
  const MemoryKind kind = backend::KindOf(host);
  if (kind == MemoryKind::kDevice) {
    throw Error(ExitCode::kInternal, "a copy names device memory as its host end");
  }
  return kind;
}

}  // namespace

int Device::Count() {
  return backend::DeviceCount();
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  if (ordinal < 0 || ordinal >= Count()) {
    throw Error(ExitCode::kTryAgain, "there is no CUDA device " + std::to_string(ordinal) +
                                         ", only " + std::to_string(Count()) +
                                         "; is its driver loaded and new enough?");
  }
  name_ = backend::DeviceName(ordinal);
}

Event::Event(const Device& device) : state_(backend::OpenEvent(device.ordinal())) {}

bool Event::Passed() const {
  return backend::EventPassed(state_.get());
}

void Event::Synchronize() {
  ProcessActivity().Add(OneWait());
  backend::SynchronizeEvent(state_.get());
}

Stream::Stream(const Device& device, const std::string& name)
    : state_(backend::OpenStream(device.ordinal(), name)) {}

void Stream::CheckNotCapturing(const char* what) const {
  if (captured_) {
    throw Error(ExitCode::kInternal, std::string(what) + " during a stream's capture");
  }
}

void Stream::Record(Event& event) {
  CheckNotCapturing("an event is recorded");
  backend::RecordEvent(event.state_.get(), state_.get());
}

void Stream::Wait(const Event& event) {
  CheckNotCapturing("an event is waited for");
  backend::WaitForEvent(state_.get(), event.state_.get());
}

bool Stream::Idle() const {
  CheckNotCapturing("a stream is queried");
  return backend::StreamIdle(state_.get());
}

void Stream::Synchronize() {
  CheckNotCapturing("the host waits");
  ProcessActivity().Add(OneWait());
  backend::SynchronizeStream(state_.get());
}

void Stream::BeginCapture() {
  CheckNotCapturing("a capture begins");
  backend::BeginCapture(state_.get());
  captured_ = std::make_unique<Activity>();
}

Graph Stream::EndCapture() {
  TETRION_CHECK(captured_ != nullptr, "a capture ends that has not begun");
  const std::unique_ptr<Activity> activity = std::move(captured_);
  return Graph(backend::EndCapture(state_.get()), *activity);
}

void Stream::Launch(const Graph& graph) {
  CheckNotCapturing("a graph is launched");
  ProcessActivity().Add(graph.activity_);
  backend::LaunchGraph(graph.state_.get(), state_.get());
}

backend::StreamState* Stream::Count(const Activity& activity) {
  if (captured_) {
    captured_->Add(activity);
  } else {
    ProcessActivity().Add(activity);
  }
  return state_.get();
}

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes, const char* what)
    : data_(Allocated(
          bytes == 0 ? nullptr : backend::AllocateDevice(device.ordinal(), bytes), bytes, what,
          "memory of device " + std::to_string(device.ordinal()) + " (" + device.name() +
              "), of which " + std::to_string(device.Memory().free_bytes) + " are free")),
      bytes_(bytes) {}

PinnedBuffer::PinnedBuffer(std::size_t bytes, const char* what)
    : data_(Allocated(bytes == 0 ? nullptr : backend::AllocatePinned(bytes), bytes, what,
                      "pinned host memory, which there are not")),
      bytes_(bytes) {}

void CopyToDevice(void* to, const void* host, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream) {
  Copy(to, host, bytes, CopyDirection::kHostToDevice, HostKind(host), purpose, stream);
}

void CopyToHost(void* host, const void* from, std::size_t bytes, CopyPurpose purpose,
                Stream& stream) {
  Copy(host, from, bytes, CopyDirection::kDeviceToHost, HostKind(host), purpose, stream);
}

void CopyOnDevice(void* to, const void* from, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream) {
  Copy(to, from, bytes, CopyDirection::kOnDevice, MemoryKind::kDevice, purpose, stream);
}

void SetBytes(void* to, int value, std::size_t bytes, Stream& stream) {
  if (bytes != 0) backend::SetBytes(to, value, bytes, stream.Count({}));
}

}  // namespace tetrion::cuda
