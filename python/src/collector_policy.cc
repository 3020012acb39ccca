#include "python/src/collector_policy.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/envs/registry.h"
#include "python/src/bindings.h"

namespace nb = nanobind;

namespace tetrion {
namespace {

std::string Text(const nb::object& object) {
  return nb::cast<std::string>(object.attr("__str__")());
}

// Bytes as a read-only numpy array [n, bytes] that keeps `storage` alive.
nb::object ArrayIn(std::shared_ptr<const void> storage, const std::byte* data, std::size_t n,
                   std::size_t bytes) {
  using Storage = std::shared_ptr<const void>;
  const nb::capsule owner(new Storage(std::move(storage)),
                          [](void* p) noexcept { delete static_cast<Storage*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(
      reinterpret_cast<const std::uint8_t*>(data), {n, bytes}, owner));
}

// callable(*arguments, **keywords), the latter a dict or null. Also sees Ctrl-C where that is a
// callable without a line of Python.
nb::object Called(PyObject* callable, const nb::tuple& arguments, PyObject* keywords = nullptr) {
  PyObject* const result =
      UnlessPythonIsGone([&] { return PyObject_Call(callable, arguments.ptr(), keywords); });
  if (result == nullptr) throw nb::python_error();
  nb::object owned = nb::steal(result);
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return owned;
}

// Where in a request a callable was, for messages.
std::string Place(const char* callable, int worker, std::int64_t job, std::int32_t step) {
  return std::string(callable) + " (worker " + std::to_string(worker) + ", job " +
         std::to_string(job) + ", step " + std::to_string(step) + ") ";
}

// numpy.asarray, or why `given` is no array.
nb::object AsArray(const nb::object& given, std::string& problem) {
  try {
    return nb::module_::import_("numpy").attr("asarray")(given);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    problem = nb::str(error.value()).c_str();
    return nb::none();
  }
}

nb::object Contiguous(const nb::object& array, const char* dtype) {
  return nb::module_::import_("numpy").attr("ascontiguousarray")(array, dtype);
}

class PythonPolicy final : public ObservationPolicy {
 public:
  explicit PythonPolicy(const PythonPolicyConfig& config) : config_(config) {}

  ResultColumns Decide(const ObservedLanes& in, const LaneDecisions& out) override {
    const GilScope gil;
    const std::size_t n = in.jobs.size();
    const nb::object observations = ArrayIn(in.storage, in.observations, n, config_.obs_bytes)
                                        .attr("view")(config_.dtype.c_str());
    nb::dict keywords;
    if (config_.takes_mask) keywords["mask"] = Masks(in.masks);
    const nb::object returned =
        Called(config_.callable, nb::make_tuple(config_.worker, observations), keywords.ptr());
    nb::object columns[3];
    std::size_t given = 1;
    if (nb::isinstance<nb::tuple>(returned)) {
      const auto tuple = nb::borrow<nb::tuple>(returned);
      given = tuple.size();
      if (given < 1 || given > 3) {
        Refuse(in, 0,
               "returned a tuple of " + std::to_string(given) +
                   ": return actions, (actions, log_probs) or (actions, log_probs, values)");
      }
      for (std::size_t i = 0; i < given; ++i) columns[i] = tuple[i];
    } else {
      columns[0] = returned;
    }
    TakeActions(in, columns[0], out.actions);
    if (given > 1) TakeFloats(in, columns[1], "log_probs", out.log_probs);
    if (given > 2) TakeFloats(in, columns[2], "values", out.values);
    return static_cast<ResultColumns>(given);
  }

  [[noreturn]] void Refuse(const ObservedLanes& in, std::size_t i,
                           const std::string& what) const override {
    throw std::invalid_argument(Place("policy_fn", config_.worker, in.jobs[i], in.steps[i]) + what);
  }

 private:
  // int8 [n, actions], the callable's to keep; None without masks.
  nb::object Masks(std::span<const std::uint64_t> masks) const {
    if (masks.empty()) return nb::none();
    const auto actions = static_cast<std::size_t>(config_.actions);
    auto* data = new std::int8_t[masks.size() * actions];
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::int8_t*>(p); });
    for (std::size_t i = 0; i < masks.size(); ++i) {
      for (std::size_t a = 0; a < actions; ++a) data[i * actions + a] = masks[i] >> a & 1;
    }
    return nb::cast(nb::ndarray<nb::numpy, std::int8_t>(data, {masks.size(), actions}, owner));
  }

  // `given` as a numpy array of shape [n] whose kind is one of `kinds`.
  nb::object Column(const ObservedLanes& in, const nb::object& given, const char* name,
                    const std::string& kinds) const {
    std::string problem;
    const nb::object array = AsArray(given, problem);
    if (!problem.empty()) {
      Refuse(in, 0, std::string("returned ") + name + " that are no array: " + problem);
    }
    const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"), true);
    if (kinds.find(kind) == std::string::npos) {
      Refuse(in, 0,
             std::string("returned ") + name + " of dtype " + Text(array.attr("dtype")) +
                 ": return " + (kinds == "iu" ? "integers" : "floats"));
    }
    const nb::tuple shape = nb::cast<nb::tuple>(array.attr("shape"));
    if (shape.size() != 1 || nb::cast<std::size_t>(shape[0]) != in.jobs.size()) {
      Refuse(in, 0,
             std::string("returned ") + name + " of shape " + Text(shape) + ": return (" +
                 std::to_string(in.jobs.size()) + ",)");
    }
    return array;
  }

  void TakeActions(const ObservedLanes& in, const nb::object& given,
                   std::span<std::int32_t> actions) const {
    const nb::object column = Column(in, given, "actions", "iu");
    if (nb::cast<std::string>(column.attr("dtype").attr("kind"), true) == "u") {
      CheckActions<std::uint64_t>(in, Contiguous(column, "uint64"), actions);
    } else {
      CheckActions<std::int64_t>(in, Contiguous(column, "int64"), actions);
    }
  }

  // `T`: wide enough for every integer that numpy has of its kind.
  template <typename T>
  void CheckActions(const ObservedLanes& in, const nb::object& column,
                    std::span<std::int32_t> actions) const {
    const auto array = nb::cast<nb::ndarray<const T, nb::ndim<1>, nb::c_contig>>(column);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const T action = array.data()[i];
      if (std::cmp_less(action, 0) || std::cmp_greater_equal(action, config_.actions)) {
        Refuse(in, i,
               "returned action " + std::to_string(action) + ": choose 0 to " +
                   std::to_string(config_.actions - 1));
      }
      actions[i] = static_cast<std::int32_t>(action);
    }
  }

  void TakeFloats(const ObservedLanes& in, const nb::object& given, const char* name,
                  std::span<float> out) const {
    const nb::object column = Contiguous(Column(in, given, name, "f"), "float32");
    const auto array = nb::cast<nb::ndarray<const float, nb::ndim<1>, nb::c_contig>>(column);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = array.data()[i];
      if (std::isfinite(out[i])) continue;
      Refuse(in, i,
             std::string("returned ") + (std::isnan(out[i]) ? "NaN" : "infinity") + " in " + name +
                 ": return finite float32 numbers");
    }
  }

  const PythonPolicyConfig config_;
};

class FlattenWriter final : public ObsWriter {
 public:
  explicit FlattenWriter(const FlattenConfig& config)
      : config_(config),
        parts_(config.view->parts(config.queue_size)),
        cells_(static_cast<std::size_t>(config.view->elements(config.queue_size))) {
    std::sort(parts_.begin(), parts_.end(),
              [](const ViewPart& a, const ViewPart& b) { return a.first < b.first; });
  }

  std::size_t bytes() const override { return config_.elements * config_.item_bytes; }

  void Write(const std::byte* record, const ObsPlace& place, std::byte* out) override {
    config_.view->expand_bytes(record, 1, config_.queue_size, cells_.data());
    const GilScope gil;
    std::string problem;
    const nb::object array = AsArray(Called(config_.callable, nb::make_tuple(Dict())), problem);
    if (!problem.empty()) Refuse(place, "returned what is no array: " + problem);
    const nb::tuple shape = nb::cast<nb::tuple>(array.attr("shape"));
    if (shape.size() != 1 || nb::cast<std::size_t>(shape[0]) != config_.elements) {
      Refuse(place, "returned shape " + Text(shape) + ", but (" + std::to_string(config_.elements) +
                        ",) the first time: return a 1-D array of one length");
    }
    const auto dtype = nb::cast<std::string>(array.attr("dtype").attr("name"), true);
    if (dtype != config_.dtype) {
      Refuse(place, "returned " + dtype + ", but " + config_.dtype +
                        " the first time: return one dtype, with .astype where it depends");
    }
    const nb::object data = Contiguous(array, config_.dtype.c_str()).attr("view")("uint8");
    const auto bytes = nb::cast<nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig>>(data);
    std::memcpy(out, bytes.data(), this->bytes());
  }

 private:
  [[noreturn]] void Refuse(const ObsPlace& place, const std::string& what) const {
    throw std::invalid_argument(Place("obs_flatten", config_.worker, place.job, place.step) + what);
  }

  // Copies, since the callable may keep them.
  nb::dict Dict() const {
    nb::dict dict;
    for (const ViewPart& part : parts_) {
      const std::vector<std::size_t> shape(part.shape.begin(), part.shape.end());
      const auto size = std::accumulate(shape.begin(), shape.end(), std::size_t{1},
                                        std::multiplies<std::size_t>());
      auto* data = new std::uint8_t[size];
      std::memcpy(data, cells_.data() + part.first, size);
      const nb::capsule owner(data,
                              [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
      dict[part.name.c_str()] =
          nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, shape.size(), shape.data(), owner));
    }
    return dict;
  }

  const FlattenConfig config_;
  std::vector<ViewPart> parts_;      // in the order of the buffer
  std::vector<std::uint8_t> cells_;  // the view
};

class EncoderWriter final : public ObsWriter {
 public:
  explicit EncoderWriter(const ObsEncoder& encoder) : encoder_(encoder) {}
  std::size_t bytes() const override { return encoder_.bytes(); }
  void Write(const std::byte* record, const ObsPlace&, std::byte* out) override {
    encoder_.Encode(record, 1, out);
  }

 private:
  const ObsEncoder encoder_;
};

}  // namespace

std::unique_ptr<ObsWriter> MakeEncoderWriter(const ObsEncoder& encoder) {
  return std::make_unique<EncoderWriter>(encoder);
}

std::unique_ptr<ObservationPolicy> MakePythonPolicy(const PythonPolicyConfig& config) {
  return std::make_unique<PythonPolicy>(config);
}

std::unique_ptr<ObsWriter> MakeFlattenWriter(const FlattenConfig& config) {
  return std::make_unique<FlattenWriter>(config);
}

}  // namespace tetrion
