#include "lib/cuda/runtime/cupti_guard.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "lib/core/error.h"
#include "lib/core/mutex.h"

namespace tetrion::cuda {
namespace {

// Not GRAPH_TRACE: it replaces the records of nodes of a graph. Not KERNEL, which makes kernels run
// one after the other.
constexpr CUpti_ActivityKind kWork[] = {CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
constexpr std::size_t kBufferBytes = 1 << 20;
constexpr CopyDirection kHostDirections[] = {CopyDirection::kHostToDevice,
                                             CopyDirection::kDeviceToHost};
constexpr MemoryKind kHostKinds[] = {MemoryKind::kPageable, MemoryKind::kPinned};

// Sums of the region that is watched. CUPTI's thread writes them.
struct Records {
  Mutex mu;
  bool in_use TETRION_GUARDED_BY(mu) = false;
  Activity activity TETRION_GUARDED_BY(mu);  // copies stand under the first purpose
  std::uint64_t host_to_host TETRION_GUARDED_BY(mu) = 0;
  std::uint64_t lost TETRION_GUARDED_BY(mu) = 0;
};

Records& Sums() {
  static Records* records = new Records;  // as long as the process: CUPTI's thread uses it
  return *records;
}

void Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "?";
  (void)cuptiGetResultString(result, &text);
  throw Error(ExitCode::kTryAgain, std::string("CUPTI, ") + what + ": " + text +
                                       "; does another profiler hold the process?");
}

void NoteCopy(const CUpti_ActivityMemcpy6& copy, Records& sums) TETRION_REQUIRES(sums.mu) {
  const bool to_device = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ||
                         copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA;
  const bool to_host = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ||
                       copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH;
  if (copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOH) ++sums.host_to_host;
  if (!to_device && !to_host) return;
  const std::uint8_t host = to_device ? copy.srcKind : copy.dstKind;
  const MemoryKind kind =
      host == CUPTI_ACTIVITY_MEMORY_KIND_PINNED ? MemoryKind::kPinned : MemoryKind::kPageable;
  CopyCount& count =
      sums.activity.Of(to_device ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost,
                       kind, CopyPurpose::kSetUp);
  ++count.copies;
  count.bytes += copy.bytes;
}

void NoteWait(const CUpti_ActivitySynchronization2& wait, Records& sums) TETRION_REQUIRES(sums.mu) {
  if (wait.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) ++sums.activity.waits;
}

void CUPTIAPI GiveBuffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = new std::uint8_t[kBufferBytes];  // taken back below; aligned to 16 bytes, CUPTI asks 8
  *bytes = kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                         std::size_t /*bytes*/, std::size_t valid_bytes) {
  Records& sums = Sums();
  const MutexLock lock(sums.mu);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    // A record's kind says what it is.
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      NoteCopy(*reinterpret_cast<CUpti_ActivityMemcpy6*>(record), sums);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
      NoteWait(*reinterpret_cast<CUpti_ActivitySynchronization2*>(record), sums);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++sums.activity.launches;
    }
  }
  std::size_t lost = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) != CUPTI_SUCCESS) lost = 1;
  sums.lost += lost;
  delete[] buffer;
}

void WaitForDevice(int ordinal) {
  if (cudaSetDevice(ordinal) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess) return;
  throw Error(ExitCode::kInternal,
              "waiting for the device: " + std::string(cudaGetErrorString(cudaGetLastError())));
}

std::uint64_t AllowedBytes(std::span<const AllowedCopies> allowed, CopyDirection direction,
                           MemoryKind kind) {
  std::uint64_t bytes = 0;
  for (const AllowedCopies& copies : allowed) {
    if (copies.direction == direction && copies.kind == kind) bytes += copies.bytes;
  }
  return bytes;
}

}  // namespace

CuptiGuard::CuptiGuard(const Device& device) : ordinal_(device.ordinal()) {
  WaitForDevice(ordinal_);
  Records& sums = Sums();
  {
    const MutexLock lock(sums.mu);
    if (sums.in_use) throw Error(ExitCode::kInternal, "another CuptiGuard watches");
    sums.in_use = true;
    sums.activity = {};
    sums.host_to_host = sums.lost = 0;
  }
  watching_ = true;
  try {
    Check(cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer), "registering");
    for (const CUpti_ActivityKind kind : kWork) Check(cuptiActivityEnable(kind), "watching work");
    Check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), "watching waits");
  } catch (const Error&) {
    Stop();
    throw;
  }
}

CuptiGuard::~CuptiGuard() {
  if (watching_) Stop();
}

void CuptiGuard::Stop() {
  (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);  // the next wait is the guard's
  (void)cudaSetDevice(ordinal_);
  (void)cudaDeviceSynchronize();
  (void)cuptiActivityFlushAll(0);
  for (const CUpti_ActivityKind kind : kWork) (void)cuptiActivityDisable(kind);
  Records& sums = Sums();
  const MutexLock lock(sums.mu);
  sums.in_use = false;
  watching_ = false;
}

std::vector<std::string> CuptiGuard::Violations(std::span<const AllowedCopies> allowed) {
  if (!watching_) throw Error(ExitCode::kInternal, "a CuptiGuard is asked once");
  Stop();
  Records& sums = Sums();
  const MutexLock lock(sums.mu);
  std::vector<std::string> violations;
  const auto note = [&](std::uint64_t count, const std::string& what) {
    if (count > 0) violations.push_back(std::to_string(count) + " " + what);
  };
  if (sums.activity.launches == 0) {
    violations.emplace_back("no kernel was launched: nothing was watched");
  }
  note(sums.activity.waits, "waits of the host");
  note(sums.host_to_host, "copies from host to host");
  note(sums.lost, "records that CUPTI lost");
  for (const CopyDirection direction : kHostDirections) {
    for (const MemoryKind kind : kHostKinds) {
      const CopyCount& count = sums.activity.Of(direction, kind, CopyPurpose::kSetUp);
      const std::uint64_t bytes = AllowedBytes(allowed, direction, kind);
      if (count.bytes == bytes) continue;
      violations.push_back(std::to_string(count.copies) + " copies of " + Name(kind) + " memory " +
                           Name(direction) + ", " + std::to_string(count.bytes) + " bytes where " +
                           std::to_string(bytes) + " are allowed");
    }
  }
  return violations;
}

}  // namespace tetrion::cuda
