#include "lib/cuda/device.h"

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::cuda {
namespace {

// Captures of the calling thread, and one: not 0, see tests/tidy/rules.py, thread_local.
thread_local int captures_and_one = 1;

void CheckThreadNotCapturing(const char* what) {
  if (captures_and_one == 1) return;
  throw Error(ExitCode::kInternal, std::string(what) + " during a capture of the same thread");
}

Activity OneWait() {
  Activity activity;
  activity.waits = 1;
  return activity;
}

template <typename Allocate>
void* NewMemory(std::size_t bytes, const Allocate& allocate) {
  if (bytes == 0) return nullptr;
  CheckThreadNotCapturing("memory is allocated");
  return allocate();
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
  backend::CopyBytes(to, from, bytes, direction, kind, stream.state());
  Activity activity;
  activity.Of(direction, kind, purpose) = {1, bytes};
  stream.Count(activity);
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
  CheckThreadNotCapturing("an event is queried");
  return backend::EventPassed(state_.get());
}

void Event::Synchronize() {
  CheckThreadNotCapturing("the host waits for an event");
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

void Stream::Launch(const Graph& graph) {
  CheckNotCapturing("a graph is launched");
  backend::LaunchGraph(graph.state_.get(), state_.get());
  ProcessActivity().Add(graph.activity_);
}

void Stream::Count(const Activity& activity) {
  if (captured_) {
    captured_->Add(activity);
  } else {
    ProcessActivity().Add(activity);
  }
}

Capture::Capture(Stream& stream) : stream_(stream) {
  stream.CheckNotCapturing("a capture begins");
  auto activity = std::make_unique<Activity>();
  backend::BeginCapture(stream.state());
  stream.captured_ = std::move(activity);
  ++captures_and_one;
}

Capture::~Capture() {
  if (!stream_.captured_) return;
  try {
    backend::ReleaseGraph(Stop());
  } catch (const Error&) {  // the next call throws it again
  }
}

Graph Capture::End() {
  TETRION_CHECK(stream_.captured_ != nullptr, "a capture ends once");
  const Activity activity = *stream_.captured_;
  return Graph(Stop(), activity);
}

backend::GraphState* Capture::Stop() {
  stream_.captured_.reset();
  --captures_and_one;
  return backend::EndCapture(stream_.state());
}

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes, const char* what)
    : data_(Allocated(
          NewMemory(bytes, [&] { return backend::AllocateDevice(device.ordinal(), bytes); }), bytes,
          what,
          "memory of device " + std::to_string(device.ordinal()) + " (" + device.name() +
              "), of which " + std::to_string(device.Memory().free_bytes) + " are free")),
      bytes_(bytes) {}

PinnedBuffer::PinnedBuffer(std::size_t bytes, const char* what)
    : data_(Allocated(NewMemory(bytes, [&] { return backend::AllocatePinned(bytes); }), bytes, what,
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
  if (bytes != 0) backend::SetBytes(to, value, bytes, stream.state());
}

}  // namespace tetrion::cuda
