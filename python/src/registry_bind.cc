#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "lib/envs/registry.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/vector/obs_encoder.h"
#include "python/src/bindings.h"

namespace nb = nanobind;

namespace tetrion {
namespace {

using Records = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An observation of one environment, with a preview of so many pieces.
struct PyObservation {
  const ViewEntry* view;  // the registry's
  std::int64_t elements;
  std::uint32_t record_bytes;
  int queue_size;
};

PyObservation Observation(const std::string& env, const std::string& obs, int queue_size) {
  const PyEnvConfig config{.env = env, .obs = obs, .queue_size = queue_size};
  const EnvSpec spec = MakeEnvSpec(EnvConfigOf(config));
  const ViewEntry& view = EnvOf(env).Observation(obs);
  return {&view, view.elements(spec.obs.queue_size), spec.obs.record_bytes, spec.obs.queue_size};
}

// (name, first element, shape, largest value) of each part; empty where it is one array.
nb::list PartsOf(const PyObservation& observation) {
  nb::list parts;
  if (observation.view->parts == nullptr) return parts;
  for (const ViewPart& part : observation.view->parts(observation.queue_size)) {
    nb::list shape;
    for (const std::int64_t extent : part.shape) shape.append(extent);
    parts.append(nb::make_tuple(part.name, part.first, nb::tuple(shape), part.most));
  }
  return parts;
}

std::vector<std::string> ObservationsOf(const EnvEntry& env) {
  std::vector<std::string> names;
  for (const ViewEntry& view : env.views) names.push_back(view.observation());
  return names;
}

// View of a network -> its name among the observations.
nb::dict ViewsOf(const EnvEntry& env) {
  nb::dict views;
  for (const ViewEntry& view : env.views) {
    if (view.is_float()) views[view.name.c_str()] = view.observation();
  }
  return views;
}

std::vector<std::string> ActionsOf(const EnvEntry& env) {
  std::vector<std::string> names;
  for (const ActionEntry& action : env.actions) names.push_back(action.name);
  return names;
}

// Of those actions that have one: key -> action.
nb::dict KeysOf(const EnvEntry& env) {
  nb::dict keys;
  for (std::size_t action = 0; action < env.actions.size(); ++action) {
    const char key = env.actions[action].key;
    if (key != 0) keys[std::string(1, key).c_str()] = action;
  }
  return keys;
}

nb::list Environments() {
  nb::list list;
  for (const EnvEntry& env : Envs()) list.append(nb::cast(&env, nb::rv_policy::reference));
  return list;
}

// Throws ValueError for the record of a game that shows another number of pieces in advance.
void CheckQueue(const EnvEntry& env, const std::byte* record, int queue_size) {
  if (!env.Takes(kQueueSizeOption)) return;
  TetrisRecord tetris;
  std::memcpy(&tetris, record, sizeof tetris);
  const int shown = QueueSize(tetris);
  if (shown == queue_size) return;
  throw nb::value_error(("records show " + std::to_string(shown) +
                         " pieces in advance, not queue_size=" + std::to_string(queue_size))
                            .c_str());
}

// records [n, bytes] u8 -> view [n, elements].
nb::object Expand(const std::string& env, const std::string& obs, int queue_size,
                  const Records& records) {
  const PyEnvConfig config{.env = env, .obs = obs, .queue_size = queue_size};
  const EnvSpec spec = MakeEnvSpec(EnvConfigOf(config));
  const std::size_t bytes = records.shape(1), n = records.shape(0);
  if (bytes != spec.obs.record_bytes) {
    throw nb::value_error(("view '" + obs + "' of " + env + " is made from records of " +
                           std::to_string(spec.obs.record_bytes) + " bytes, not " +
                           std::to_string(bytes))
                              .c_str());
  }
  const ObsEncoder encoder = MakeObsEncoder(config, spec);
  const auto* from = reinterpret_cast<const std::byte*>(records.data());
  const EnvEntry& entry = EnvOf(env);
  for (std::size_t i = 0; i < n; ++i) CheckQueue(entry, from + i * bytes, queue_size);
  const auto count = static_cast<std::int64_t>(n);
  const auto elements = static_cast<std::size_t>(encoder.elements());
  if (encoder.is_float()) {
    auto out = NewArray<float>(n, elements);
    encoder.Encode(from, count, reinterpret_cast<std::byte*>(out.data()));
    return nb::cast(out);
  }
  auto out = NewArray<std::uint8_t>(n, elements);
  encoder.Encode(from, count, reinterpret_cast<std::byte*>(out.data()));
  return nb::cast(out);
}

// The bytes of a record of the user's; ValueError where no kind has so many.
std::span<const std::byte> RecordOf(const EnvEntry& env, const nb::bytes& bytes) {
  if (env.HasRecordOf(bytes.size())) {
    return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
  }
  throw nb::value_error(
      ("no record of " + env.name + " has " + std::to_string(bytes.size()) + " bytes").c_str());
}

nb::object RenderRgbArray(const std::string& name, const nb::bytes& record, int queue_size,
                          int scale) {
  const EnvEntry& env = EnvOf(name);
  const RgbSize size = env.picture.size(queue_size, scale);
  const auto height = static_cast<std::size_t>(size.height);
  const auto width = static_cast<std::size_t>(size.width);
  auto flat = NewArray<std::uint8_t>(height, width * 3);
  env.picture.draw(RecordOf(env, record), queue_size, scale, flat.data());
  return nb::cast(flat).attr("reshape")(height, width, 3);
}

std::string RenderText(const std::string& name, const nb::bytes& record) {
  const EnvEntry& env = EnvOf(name);
  return env.picture.text(RecordOf(env, record));
}

nb::object ActionMasks(const std::string& name, const Records& records) {
  const EnvEntry& env = EnvOf(name);
  if (env.mask == nullptr || !env.HasRecordOf(records.shape(1))) {
    throw nb::value_error(("no record of " + name + " that has legal actions has " +
                           std::to_string(records.shape(1)) + " bytes")
                              .c_str());
  }
  const std::size_t actions = env.actions.size();
  auto out = NewArray<bool>(records.shape(0), actions);
  for (std::size_t i = 0; i < records.shape(0); ++i) {
    const std::uint8_t* record = records.data() + i * records.shape(1);
    const std::uint64_t mask = env.mask(reinterpret_cast<const std::byte*>(record));
    bool* row = out.data() + i * actions;
    for (std::size_t a = 0; a < actions; ++a) row[a] = (mask >> a & 1) != 0;
  }
  return nb::cast(out);
}

}  // namespace

void BindRegistry(nb::module_& m) {
  nb::class_<EnvEntry>(m, "Environment")
      .def_ro("name", &EnvEntry::name)
      .def_ro("python_name", &EnvEntry::python_name)
      .def_ro("default_view", &EnvEntry::default_view)
      .def_ro("default_obs", &EnvEntry::default_obs)
      .def_ro("max_steps", &EnvEntry::max_steps)
      .def_ro("options", &EnvEntry::options)
      .def_ro("has_lines", &EnvEntry::has_lines)
      .def_prop_ro("has_mask", [](const EnvEntry& env) { return env.mask != nullptr; })
      .def_prop_ro("record_bytes",
                   [](const EnvEntry& env) { return env.NetworkView("").record.bytes; })
      .def_prop_ro("fps", [](const EnvEntry& env) { return env.picture.fps; })
      .def_prop_ro("scale", [](const EnvEntry& env) { return env.picture.scale; })
      .def_prop_ro("observations", &ObservationsOf)
      .def_prop_ro("views", &ViewsOf)
      .def_prop_ro("actions", &ActionsOf)
      .def_prop_ro("keys", &KeysOf);
  nb::class_<PyObservation>(m, "Observation")
      .def_ro("elements", &PyObservation::elements)
      .def_ro("record_bytes", &PyObservation::record_bytes)
      .def_prop_ro("is_float", [](const PyObservation& self) { return self.view->is_float(); })
      .def_prop_ro("action_floats",
                   [](const PyObservation& self) { return self.view->action_floats; })
      .def_prop_ro("low", [](const PyObservation& self) { return self.view->low; })
      .def_prop_ro("high", [](const PyObservation& self) { return self.view->high; })
      .def_prop_ro("parts", &PartsOf);
  m.def("environments", &Environments);
  m.attr("QUEUE_SIZES") = nb::make_tuple(0, kTetrisMaxQueue);
  m.attr("BOARD_ROWS") = nb::make_tuple(kTetrisFewestRows, kTetrisRows);
  m.def("observation", &Observation, nb::arg("env"), nb::arg("obs"), nb::arg("queue_size"));
  m.def("expand", &Expand, nb::arg("env"), nb::arg("obs"), nb::arg("queue_size"),
        nb::arg("records"));
  m.def("action_masks", &ActionMasks, nb::arg("env"), nb::arg("records"));
  m.def("render_rgb", &RenderRgbArray, nb::arg("env"), nb::arg("record"), nb::arg("queue_size"),
        nb::arg("scale"));
  m.def("render_text", &RenderText, nb::arg("env"), nb::arg("record"));
}

}  // namespace tetrion
