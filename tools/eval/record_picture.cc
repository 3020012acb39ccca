#include "tools/eval/record_picture.h"

namespace tetrion {

RecordPicture::RecordPicture(const EnvSpec& env)
    : picture_(EnvOf(env.name).picture),
      record_bytes_(env.obs.record_bytes),
      queue_size_(env.obs.queue_size),
      size_(picture_.size(queue_size_, picture_.gif_scale)),
      pixels_(static_cast<std::size_t>(size_.Bytes())) {}

std::span<const std::uint8_t> RecordPicture::Draw(const std::byte* record) {
  picture_.draw({record, record_bytes_}, queue_size_, picture_.gif_scale, pixels_.data());
  return pixels_;
}

std::string RecordPicture::Text(const std::byte* record) const {
  return picture_.text({record, record_bytes_});
}

}  // namespace tetrion
