#include "lib/vector/obs_encoder.h"

#include <cstring>

#include "lib/core/check.h"

namespace tetrion {

EnvConfig EnvConfigOf(const PyEnvConfig& config) {
  const EnvEntry& env = EnvOf(config.env);
  const RecordKind& kind = config.colours ? env.picture.record : env.Observation(config.obs).record;
  return {.name = config.env,
          .view = env.ViewOfRecord(kind),
          .lanes = 1,
          .queue_size = config.queue_size,
          .iid_pieces = config.iid_pieces,
          .rows = config.rows,
          .spawn_above = config.spawn_above,
          .reward = config.reward,
          .illegal_is_noop = config.illegal_is_noop};
}

ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec) {
  const ViewEntry& view = EnvOf(config.env).Observation(config.obs);
  TETRION_CHECK(view.record.bytes <= spec.obs.record_bytes, "no such part of a record");
  ObsEncoder encoder;
  encoder.record_bytes_ = spec.obs.record_bytes;
  encoder.needed_bytes_ = view.record.bytes;
  encoder.queue_size_ = spec.obs.queue_size;
  encoder.elements_ = view.elements(spec.obs.queue_size);
  encoder.expand_ = view.expand;
  encoder.expand_bytes_ = view.expand_bytes;
  return encoder;
}

void ObsEncoder::Encode(const std::byte* records, std::int64_t n, std::byte* out) const {
  // Records longer than what a function reads are handed over one at a time.
  const bool at_once = needed_bytes_ == record_bytes_;
  const std::int64_t step = at_once ? n : 1;
  for (std::int64_t i = 0; i < n; i += step) {
    const std::byte* from = records + static_cast<std::size_t>(i) * record_bytes_;
    std::byte* to = out + static_cast<std::size_t>(i) * bytes();
    if (expand_ != nullptr) {
      expand_(from, step, queue_size_, reinterpret_cast<float*>(to));
    } else if (expand_bytes_ != nullptr) {
      expand_bytes_(from, step, queue_size_, reinterpret_cast<std::uint8_t*>(to));
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(step) * bytes());
    }
  }
}

}  // namespace tetrion
