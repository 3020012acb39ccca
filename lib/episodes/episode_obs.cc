#include "lib/episodes/episode_obs.h"

#include <cstring>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tetrion {
namespace {

class ViewWriter final : public ObsWriter {
 public:
  explicit ViewWriter(const ObsSpec& obs) : obs_(obs) {}
  std::size_t bytes() const override {
    return static_cast<std::size_t>(obs_.view_floats) * sizeof(float);
  }
  void Write(const std::byte* record, const ObsPlace&, std::byte* out) override {
    obs_.expand(record, 1, obs_.queue_size, reinterpret_cast<float*>(out));
  }

 private:
  const ObsSpec obs_;
};

class RecordWriter final : public ObsWriter {
 public:
  explicit RecordWriter(const ObsSpec& obs) : bytes_(obs.record_bytes) {}
  std::size_t bytes() const override { return bytes_; }
  void Write(const std::byte* record, const ObsPlace&, std::byte* out) override {
    std::memcpy(out, record, bytes_);
  }

 private:
  const std::size_t bytes_;
};

#if defined(__AVX__)
constexpr std::size_t kStreamBytes = 32;  // of one store; `out` and bytes() are multiples

// Expands into a line of cached scratch and sends that out with non-temporal stores.
class StreamingViewWriter final : public ObsWriter {
 public:
  explicit StreamingViewWriter(const ObsSpec& obs)
      : obs_(obs), scratch_(static_cast<std::size_t>(obs.view_floats)) {}
  std::size_t bytes() const override { return scratch_.size() * sizeof(float); }
  void Write(const std::byte* record, const ObsPlace&, std::byte* out) override {
    obs_.expand(record, 1, obs_.queue_size, scratch_.data());
    constexpr std::size_t kFloats = kStreamBytes / sizeof(float);
    auto* to = reinterpret_cast<float*>(out);
    for (std::size_t i = 0; i < scratch_.size(); i += kFloats) {
      _mm256_stream_ps(to + i, _mm256_loadu_ps(scratch_.data() + i));
    }
  }
  // Non-temporal stores are not ordered by a lock's release.
  void Flush() override { _mm_sfence(); }

 private:
  const ObsSpec obs_;
  std::vector<float> scratch_;
};
#endif

}  // namespace

std::unique_ptr<ObsWriter> MakeViewWriter(const ObsSpec& obs, bool streaming) {
#if defined(__AVX__)
  if (streaming && static_cast<std::size_t>(obs.view_floats) * sizeof(float) % kStreamBytes == 0) {
    return std::make_unique<StreamingViewWriter>(obs);
  }
#else
  static_cast<void>(streaming);
#endif
  return std::make_unique<ViewWriter>(obs);
}

std::unique_ptr<ObsWriter> MakeRecordWriter(const ObsSpec& obs) {
  return std::make_unique<RecordWriter>(obs);
}

}  // namespace tetrion
