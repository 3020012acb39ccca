#include "python/src/collector_policy.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/envs/gym_views.h"

namespace nb = nanobind;

namespace tetrion {
namespace {

std::string Text(const nb::object& object) {
  return nb::cast<std::string>(object.attr("__str__")());
}

// Bytes as a read-only numpy array [n, bytes] of theirs, valid during the call only.
nb::object BorrowedArray(const std::byte* data, std::size_t n, std::size_t bytes) {
  // Without an owner nanobind would copy; the capsule owns nothing.
  const nb::capsule nobody(data, [](void*) noexcept {});
  return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t>(
      reinterpret_cast<const std::uint8_t*>(data), {n, bytes}, nobody));
}

class PythonPolicy final : public ObservationPolicy {
 public:
  explicit PythonPolicy(const PythonPolicyConfig& config) : config_(config) {}

  ResultColumns Decide(const ObservedLanes& in, const LaneDecisions& out) override {
    const nb::gil_scoped_acquire gil;
    const std::size_t n = in.jobs.size();
    const nb::object observations =
        BorrowedArray(in.observations, n, config_.obs_bytes).attr("view")(config_.dtype.c_str());
    const nb::object returned = nb::handle(config_.callable)(config_.worker, observations);
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

 private:
  [[noreturn]] void Refuse(const ObservedLanes& in, std::size_t i, const std::string& what) const {
    throw std::invalid_argument("policy_fn (worker " + std::to_string(config_.worker) + ", job " +
                                std::to_string(in.jobs[i]) + ", step " +
                                std::to_string(in.steps[i]) + ") " + what);
  }

  // `given` as a numpy array of shape [n] whose kind is one of `kinds`.
  nb::object Column(const ObservedLanes& in, const nb::object& given, const char* name,
                    const std::string& kinds, const char* dtype) const {
    const nb::object array = nb::module_::import_("numpy").attr("asarray")(given);
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
    return nb::module_::import_("numpy").attr("ascontiguousarray")(array, dtype);
  }

  void TakeActions(const ObservedLanes& in, const nb::object& given,
                   std::span<std::int32_t> actions) const {
    const nb::object column = Column(in, given, "actions", "iu", "int64");
    const auto array = nb::cast<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig>>(column);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const std::int64_t action = array.data()[i];
      if (action < 0 || action >= config_.actions) {
        Refuse(in, i,
               "returned action " + std::to_string(action) + ": choose 0 to " +
                   std::to_string(config_.actions - 1));
      }
      actions[i] = static_cast<std::int32_t>(action);
    }
  }

  void TakeFloats(const ObservedLanes& in, const nb::object& given, const char* name,
                  std::span<float> out) const {
    const nb::object column = Column(in, given, name, "f", "float32");
    const auto array = nb::cast<nb::ndarray<const float, nb::ndim<1>, nb::c_contig>>(column);
    std::memcpy(out.data(), array.data(), out.size_bytes());
  }

  const PythonPolicyConfig config_;
};

class FlattenWriter final : public ObsWriter {
 public:
  explicit FlattenWriter(const FlattenConfig& config)
      : config_(config), cells_(static_cast<std::size_t>(DictLayout::Bytes(config.queue_size))) {}

  std::size_t bytes() const override { return config_.elements * config_.item_bytes; }

  void Write(const std::byte* record, std::byte* out) override {
    ExpandDict(record, 1, config_.queue_size, cells_.data());
    const nb::gil_scoped_acquire gil;
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(nb::handle(config_.callable)(Dict()));
    const nb::tuple shape = nb::cast<nb::tuple>(array.attr("shape"));
    if (shape.size() != 1 || nb::cast<std::size_t>(shape[0]) != config_.elements) {
      throw std::invalid_argument("obs_flatten (worker " + std::to_string(config_.worker) +
                                  ") returned shape " + Text(shape) + ", but (" +
                                  std::to_string(config_.elements) +
                                  ",) the first time: return a 1-D array of one length");
    }
    const nb::object same = numpy.attr("ascontiguousarray")(array, config_.dtype.c_str());
    const nb::object data = same.attr("view")("uint8");
    const auto bytes = nb::cast<nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig>>(data);
    std::memcpy(out, bytes.data(), this->bytes());
  }

 private:
  // Copies, since the callable may keep them.
  nb::dict Dict() const {
    nb::dict dict;
    const auto add = [&](const char* name, int at, std::size_t rows, std::size_t columns) {
      auto* data = new std::uint8_t[rows * columns];
      std::memcpy(data, cells_.data() + at, rows * columns);
      const nb::capsule owner(data,
                              [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
      dict[name] = nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(data, {rows, columns}, owner));
    };
    add("active_tetromino_mask", DictLayout::kActiveMask, DictLayout::kRows, DictLayout::kColumns);
    add("board", DictLayout::kBoard, DictLayout::kRows, DictLayout::kColumns);
    add("holder", DictLayout::kHolder, 4, 4);
    add("queue", DictLayout::kQueue, 4, static_cast<std::size_t>(4 * config_.queue_size));
    return dict;
  }

  const FlattenConfig config_;
  std::vector<std::uint8_t> cells_;  // DictLayout
};

}  // namespace

std::unique_ptr<ObservationPolicy> MakePythonPolicy(const PythonPolicyConfig& config) {
  return std::make_unique<PythonPolicy>(config);
}

std::unique_ptr<ObsWriter> MakeFlattenWriter(const FlattenConfig& config) {
  return std::make_unique<FlattenWriter>(config);
}

}  // namespace tetrion
