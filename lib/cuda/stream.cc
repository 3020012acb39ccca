#include "lib/cuda/stream.h"

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion::cuda {
namespace {

// Captures of the calling thread, and one: not 0, see tests/tidy/rules.py, thread_local.
thread_local int captures_and_one = 1;

Activity OneWait() {
  Activity activity;
  activity.waits = 1;
  return activity;
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
  Capture::RefuseInThread("an event is queried");
  return backend::EventPassed(state_.get());
}

void Event::Synchronize() {
  Capture::RefuseInThread("the host waits for an event");
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

void Capture::RefuseInThread(const char* what) {
  if (captures_and_one == 1) return;
  throw Error(ExitCode::kInternal, std::string(what) + " during a capture of the same thread");
}

}  // namespace tetrion::cuda
