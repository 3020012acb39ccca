#include "lib/vector/obs_encoder.h"

#include <cstring>

#include "lib/core/error.h"
#include "lib/envs/gym_views.h"
#include "lib/envs/packed2.h"
#include "lib/envs/views.h"

namespace tetrion {
namespace {

bool IsCartPole(const std::string& env) {
  return env == "cartpole";
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::vector<std::string> ObservationsOf(const std::string& env) {
  if (IsCartPole(env)) return {"flat", "compact"};
  if (env == "tetris") return {"flat", "dict", "planes", "compact", "packed2"};
  if (env == "tetris-placement") {
    return {"flat", "dict", "planes", "compact", "packed2", "afterstates"};
  }
  return {};
}

std::uint32_t DefaultMaxSteps(const std::string& env) {
  if (IsCartPole(env)) return 500;
  return env == "tetris-placement" ? 5000 : 10000;
}

EnvConfig EnvConfigOf(const PyEnvConfig& config) {
  const bool coloured = config.colours || config.obs == "flat" || config.obs == "dict";
  return {.name = config.env,
          .view = !IsCartPole(config.env) && coloured ? "flat" : "",
          .lanes = 1,
          .queue_size = config.queue_size,
          .iid_pieces = config.iid_pieces,
          .illegal_is_noop = config.illegal_is_noop};
}

ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec) {
  const std::string& obs = config.obs;
  ObsEncoder encoder;
  encoder.record_bytes_ = spec.obs.record_bytes;
  encoder.queue_size_ = spec.obs.queue_size;
  const bool cartpole = IsCartPole(config.env);
  if (obs == "compact") {
    encoder.needed_bytes_ = cartpole ? sizeof(CartPoleRecord) : sizeof(TetrisRecord);
    encoder.elements_ = static_cast<std::int64_t>(encoder.needed_bytes_);
  } else if (cartpole && obs == "flat") {
    encoder.expand_ = ExpandVector;
    encoder.needed_bytes_ = sizeof(CartPoleRecord);
    encoder.elements_ = 4;
  } else if (!cartpole && obs == "flat") {
    encoder.expand_ = ExpandFlat;
    encoder.needed_bytes_ = sizeof(ColourRecord);
    encoder.elements_ = FlatLayout::Floats(spec.obs.queue_size);
  } else if (!cartpole && obs == "dict") {
    encoder.dict_ = ExpandDict;
    encoder.needed_bytes_ = sizeof(ColourRecord);
    encoder.elements_ = DictLayout::Bytes(spec.obs.queue_size);
  } else if (!cartpole && obs == "packed2") {
    encoder.packed2_ = true;
    encoder.needed_bytes_ = spec.obs.record_bytes;
    encoder.elements_ = Packed2Layout::kBytes;
  } else if (!cartpole && obs == "planes") {
    encoder.expand_ = ExpandPlanes;
    encoder.needed_bytes_ = sizeof(TetrisRecord);
    encoder.elements_ = PlanesLayout::Floats(spec.obs.queue_size);
  } else if (config.env == "tetris-placement" && obs == "afterstates") {
    encoder.expand_ = ExpandAfterstates;
    encoder.needed_bytes_ = sizeof(TetrisRecord);
    encoder.elements_ = AfterstatesLayout::Floats(spec.obs.queue_size);
  } else {
    throw Error(ExitCode::kUsage, config.env + " has no observation '" + obs + "': choose one of " +
                                      Listed(ObservationsOf(config.env)));
  }
  encoder.is_float_ = encoder.expand_ != nullptr;
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
    } else if (dict_ != nullptr) {
      dict_(from, step, queue_size_, reinterpret_cast<std::uint8_t*>(to));
    } else if (packed2_) {
      ExpandPacked2(from, static_cast<std::int64_t>(record_bytes_), step,
                    reinterpret_cast<std::uint8_t*>(to));
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(step) * bytes());
    }
  }
}

}  // namespace tetrion
