#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/envs/registry.h"
#include "lib/episodes/batch_collector.h"
#include "lib/policy/random_policy.h"
#include "lib/vector/obs_encoder.h"
#include "python/src/bindings.h"
#include "python/src/collector_policy.h"

namespace nb = nanobind;

namespace tetrion {
namespace {

using GivenActions = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A request lets Python see signals (Ctrl-C) so often.
constexpr std::int64_t kSignalCheckNs = 50 * kNanosPerMilli;
// Who drops a collector waits so long for its workers.
constexpr std::int64_t kLeaveNs = 2 * kNanosPerSecond;
constexpr double kForEver = 1e9;  // seconds

// What Python's collector was made with; the objects are borrowed from PyCollector.
struct CollectorSetup {
  BatchCollectorConfig config;
  PyEnvConfig shown;  // the observation's name among others
  std::int64_t seed = 0;
  PyObject* obs_flatten = nullptr;  // with it observations are what it returns
  std::string flat_dtype;           // of the observations, numpy's name
  std::size_t flat_elements = 0;
  std::size_t flat_item_bytes = 0;
  PyObject* policy_fn = nullptr;
  bool policy_takes_mask = false;
  std::vector<std::int32_t> scripted;  // a fixed list of actions
};

WorkerParts PartsOf(const CollectorSetup& setup, const EnvSpec& spec, int worker) {
  WorkerParts parts;
  parts.on_drained = DropThreadState;
  const bool outside = setup.policy_fn != nullptr;
  if (setup.obs_flatten != nullptr) {
    parts.writer = MakeFlattenWriter({.worker = worker,
                                      .callable = setup.obs_flatten,
                                      .view = &EnvOf(spec.name).Observation(setup.shown.obs),
                                      .queue_size = spec.obs.queue_size,
                                      .dtype = setup.flat_dtype,
                                      .elements = setup.flat_elements,
                                      .item_bytes = setup.flat_item_bytes});
  } else if (const ObsEncoder encoder = MakeObsEncoder(setup.shown, spec); encoder.is_float()) {
    parts.writer = MakeViewWriter(spec.obs, !outside);
  } else {
    parts.writer = MakeEncoderWriter(encoder);
  }
  if (outside) {
    parts.outside = MakePythonPolicy({.worker = worker,
                                      .callable = setup.policy_fn,
                                      .takes_mask = setup.policy_takes_mask,
                                      .dtype = setup.flat_dtype,
                                      .obs_bytes = parts.writer->bytes(),
                                      .actions = spec.action.count});
  } else if (!setup.scripted.empty()) {
    parts.policy = std::make_unique<ActionListPolicy>(setup.scripted, spec.action);
  } else {
    parts.policy =
        std::make_unique<RandomPolicy>(static_cast<std::uint64_t>(setup.seed), spec.action);
  }
  return parts;
}

// A batch as Python's arrays hold it.
struct Lease {
  std::shared_ptr<EpisodeBatch> batch;
};

// BatchCollector as Python holds it: waits without the GIL, results as exceptions and arrays.
class PyCollector {
 public:
  PyCollector(const CollectorSetup& setup, nb::object obs_flatten, nb::object policy_fn)
      : setup_(setup),
        obs_flatten_(std::move(obs_flatten)),
        policy_fn_(std::move(policy_fn)),
        process_(getpid()) {
    const EnvSpec spec = MakeEnvSpec(setup_.config.env);
    impl_ = std::make_unique<BatchCollector>(
        setup_.config, [&](int worker) { return PartsOf(setup_, spec, worker); });
  }

  ~PyCollector() {
    if (process_ != getpid()) {
      // The threads are in the parent; whoever joins them here waits for ever.
      static_cast<void>(impl_.release());
      return;
    }
    if (!impl_->InsideCallback() && LeaveAtLast()) return;
    // A worker is in a callback, perhaps for ever, perhaps in the one that dropped the last
    // reference: somebody else joins it. The callables it may still be in are never freed.
    static_cast<void>(obs_flatten_.release());
    static_cast<void>(policy_fn_.release());
    std::thread([impl = impl_.release()] { delete impl; }).detach();
  }
  PyCollector(const PyCollector&) = delete;
  PyCollector& operator=(const PyCollector&) = delete;

  // Plays; returns a dict of arrays.
  nb::dict Request(int episodes, const nb::object& actions, std::int64_t first_job,
                   double timeout_s) {
    if (process_ != getpid()) {
      throw std::runtime_error(
          "the collector was made before this process was forked, and its threads are in the "
          "parent; make it in the process that uses it");
    }
    BatchOrder order = {.episodes = episodes, .first_token = first_job};
    if (!actions.is_none()) order.actions = CopyActions(nb::cast<GivenActions>(actions), episodes);
    switch (Started(std::move(order))) {
      case StartResult::kStarted:
        break;
      case StartResult::kBusy:
        throw std::runtime_error(
            "a request is running already: policy_fn and other threads may not start another");
      case StartResult::kClosed:
        SleepIfPythonLeaves();
        throw std::runtime_error("the collector is closed; make a new one");
    }
    Wait(timeout_s);
    std::shared_ptr<EpisodeBatch> batch;
    try {
      batch = impl_->Finish();
    } catch (const Error& error) {
      SleepIfPythonLeaves();
      if (impl_->closed()) throw std::runtime_error(error.what());
      throw;
    }
    return Arrays(std::move(batch), static_cast<std::size_t>(episodes));
  }

  // Closes and waits at most so long: false while a worker is still in a callback. Sees signals.
  bool CloseFor(double seconds) {
    if (process_ != getpid()) return true;
    const Deadline deadline(MonotonicClock::Get(), Nanos(seconds));
    gave_up_ = false;
    while (!Leave(std::min(kSignalCheckNs, deadline.LeftNs()))) {
      if (PyErr_CheckSignals() != 0) {
        gave_up_ = true;
        throw nb::python_error();
      }
      if (deadline.Passed()) {
        gave_up_ = true;
        return false;
      }
    }
    return true;
  }

  // For whoever drops the collector: the same for kLeaveNs, once, without signals and exceptions.
  bool LeaveAtLast() {
    if (process_ != getpid()) return true;
    const bool left = Leave(gave_up_ ? 0 : kLeaveNs);
    gave_up_ = !left;
    return left;
  }
  bool closed() const { return impl_->closed(); }

  nb::dict Stats() const {
    const CollectorStats stats = impl_->stats();
    nb::dict out;
    out["requests"] = stats.requests;
    out["episodes"] = stats.episodes;
    out["steps"] = stats.steps;
    out["env_steps"] = stats.env_steps;
    out["rows"] = stats.rows;
    out["job_wait_seconds"] = static_cast<double>(stats.job_wait_ns) / kNanosPerSecond;
    out["next_job"] = stats.next_token;
    return out;
  }
  int actions() const { return impl_->spec().action.count; }
  std::size_t obs_bytes() const { return impl_->obs_bytes(); }
  const nb::object& obs_flatten() const { return obs_flatten_; }
  const nb::object& policy_fn() const { return policy_fn_; }

 private:
  bool Leave(std::int64_t timeout_ns) {
    const GilRelease release;
    return impl_->CloseFor(timeout_ns);
  }

  static std::int64_t Nanos(double seconds) {
    return static_cast<std::int64_t>(std::min(seconds, kForEver) *
                                     static_cast<double>(kNanosPerSecond));
  }

  StartResult Started(BatchOrder order) {
    const GilRelease release;
    return impl_->Start(std::move(order));
  }

  std::vector<std::int32_t> CopyActions(const GivenActions& given, int episodes) const {
    const auto rows = static_cast<std::size_t>(episodes);
    const auto steps = static_cast<std::size_t>(setup_.config.steps);
    if (given.shape(0) != rows || given.shape(1) != steps) {
      throw nb::value_error(("actions must have shape (" + std::to_string(rows) + ", " +
                             std::to_string(steps) + "), not (" + std::to_string(given.shape(0)) +
                             ", " + std::to_string(given.shape(1)) + ")")
                                .c_str());
    }
    const std::int32_t* const data = given.data();
    const GilRelease release;  // `given` keeps its memory; the copy is what is checked
    std::vector<std::int32_t> actions(data, data + rows * steps);
    bool ended = false;  // what follows in its row is ignored
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const bool begins = i % steps == 0;
      ended = !begins && (ended || actions[i] == -1);
      if (!ended && (actions[i] < 0 || actions[i] >= this->actions())) {
        RefuseAction(actions[i], i, steps);
      }
    }
    return actions;
  }

  [[noreturn]] void RefuseAction(std::int32_t action, std::size_t i, std::size_t steps) const {
    const std::string why = action == -1
                                ? "-1: an episode takes at least one action"
                                : std::to_string(action) + ": choose 0 to " +
                                      std::to_string(this->actions() - 1) + ", or -1 for the end";
    throw nb::value_error(
        ("actions[" + std::to_string(i / steps) + ", " + std::to_string(i % steps) + "] is " + why)
            .c_str());
  }

  void Wait(double timeout_s) {
    const Deadline deadline(MonotonicClock::Get(), Nanos(timeout_s));
    for (;;) {
      bool done = false;
      {
        const GilRelease release;
        done = impl_->Wait(std::min(kSignalCheckNs, deadline.LeftNs()));
      }
      if (done) return;
      if (PyErr_CheckSignals() != 0) {
        impl_->Cancel();
        throw nb::python_error();
      }
      if (deadline.Passed()) {
        impl_->Cancel();
        std::array<char, 32> seconds;
        std::snprintf(seconds.data(), seconds.size(), "%g", timeout_s);
        PyErr_Format(PyExc_TimeoutError,
                     "the episodes were not there after %s s; give a longer timeout, or ask for "
                     "fewer or shorter ones",
                     seconds.data());
        throw nb::python_error();
      }
    }
  }

  nb::dict Arrays(std::shared_ptr<EpisodeBatch> batch, std::size_t b) const {
    EpisodeBatch& from = *batch;
    const nb::capsule owner(new Lease{std::move(batch)},
                            [](void* p) noexcept { delete static_cast<Lease*>(p); });
    const auto k = static_cast<std::size_t>(from.steps());
    const std::size_t width = from.obs_bytes();
    nb::dict out;
    const auto add = [&](const char* name, auto* data, std::initializer_list<std::size_t> shape) {
      using T = std::remove_pointer_t<decltype(data)>;
      out[name] = nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
    };
    // Bytes: the Python side gives them their dtype.
    add("observations", reinterpret_cast<std::uint8_t*>(from.observations()), {b, k, width});
    add("final_observations", reinterpret_cast<std::uint8_t*>(from.final_observations()),
        {b, width});
    add("rewards", from.rewards.data(), {b, k});
    add("actions", from.actions.data(), {b, k});
    add("dones", reinterpret_cast<bool*>(from.dones.data()), {b, k});
    out["action_masks"] = nb::none();
    if (const auto actions = static_cast<std::size_t>(from.mask_actions()); actions > 0) {
      add("action_masks", reinterpret_cast<std::int8_t*>(from.action_masks.data()),
          {b, k, actions});
    }
    // Lent like the others, or with memory of their own: who keeps the returns of every batch
    // does not want to keep the observations.
    const auto add_row = [&](const char* name, auto* data) {
      add(name, data, {b});
      if (!setup_.config.double_buffer) out[name] = out[name].attr("copy")();
    };
    add_row("lengths", from.lengths.data());
    add_row("terminated", reinterpret_cast<bool*>(from.terminated.data()));
    add_row("truncated", reinterpret_cast<bool*>(from.truncated.data()));
    add_row("returns", from.returns.data());
    add_row("lines", from.lines.data());
    add_row("job_ids", from.job_ids.data());
    const int columns = impl_->result_columns();
    out["columns"] = columns;
    add("log_probs", from.log_probs.data(), {b, k});
    add("values", from.values.data(), {b, k});
    return out;
  }

  const CollectorSetup setup_;
  nb::object obs_flatten_;
  nb::object policy_fn_;
  const pid_t process_;
  bool gave_up_ = false;  // somebody waited for the workers in vain
  std::unique_ptr<BatchCollector> impl_;
};

// The callables are often methods of what owns the collector: the cycle is Python's to find.
int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* collector = nb::inst_ptr<PyCollector>(self);
  Py_VISIT(collector->obs_flatten().ptr());
  Py_VISIT(collector->policy_fn().ptr());
  return 0;
}

// Not the callables: a worker may be in one of them until the collector is closed, which is what
// the Python side does when it is finalised.
int Clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyCollector>(self)->LeaveAtLast();
  return 0;
}

PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                        {0, nullptr}};

// name -> value, as tetrion/collector.py passes them; it has checked types and ranges.
CollectorSetup SetupOf(const nb::dict& given, const nb::object& obs_flatten,
                       const nb::object& policy_fn) {
  CollectorSetup setup;
  BatchCollectorConfig& config = setup.config;
  setup.shown.env = nb::cast<std::string>(given["env"]);
  setup.shown.obs = nb::cast<std::string>(given["obs"]);
  setup.shown.queue_size = nb::cast<int>(given["queue_size"]);
  setup.shown.iid_pieces = nb::cast<bool>(given["iid_pieces"]);
  setup.shown.rows = nb::cast<int>(given["board_rows"]);
  setup.shown.spawn_above = nb::cast<bool>(given["spawn_above"]);
  setup.shown.reward = TetrisRewardOf(nb::cast<std::string>(given["reward"]));
  setup.shown.illegal_is_noop = nb::cast<bool>(given["illegal_is_noop"]);
  setup.policy_takes_mask = nb::cast<bool>(given["policy_takes_mask"]);
  config.env = EnvConfigOf(setup.shown);
  const ViewEntry& view = EnvOf(setup.shown.env).Observation(setup.shown.obs);
  if (obs_flatten.is_none() && view.is_float()) config.env.view = view.name;
  config.env.lanes = nb::cast<int>(given["lanes"]);
  config.env.seed = nb::cast<std::uint64_t>(given["seed"]);
  config.workers = nb::cast<int>(given["workers"]);
  config.steps = nb::cast<int>(given["steps"]);
  config.by_completion = nb::cast<bool>(given["by_completion"]);
  config.double_buffer = nb::cast<bool>(given["double_buffer"]);
  setup.seed = static_cast<std::int64_t>(config.env.seed);
  setup.flat_dtype = nb::cast<std::string>(given["flat_dtype"]);
  setup.flat_elements = nb::cast<std::size_t>(given["flat_elements"]);
  setup.flat_item_bytes = nb::cast<std::size_t>(given["flat_item_bytes"]);
  setup.scripted = nb::cast<std::vector<std::int32_t>>(given["scripted"]);
  if (!obs_flatten.is_none()) setup.obs_flatten = obs_flatten.ptr();
  if (!policy_fn.is_none()) setup.policy_fn = policy_fn.ptr();
  return setup;
}

}  // namespace

void BindCollector(nb::module_& m) {
  m.def("leaving", [] { exit_thread.store(pthread_self(), std::memory_order_relaxed); });
  nb::class_<PyCollector>(m, "Collector", nb::type_slots(kSlots))
      .def(
          "__init__",
          [](PyCollector* self, const nb::dict& setup, nb::object obs_flatten,
             nb::object policy_fn) {
            const CollectorSetup made = SetupOf(setup, obs_flatten, policy_fn);
            new (self) PyCollector(made, std::move(obs_flatten), std::move(policy_fn));
          },
          nb::arg("setup"), nb::arg("obs_flatten").none(), nb::arg("policy_fn").none())
      .def("request", &PyCollector::Request, nb::arg("episodes"), nb::arg("actions").none(),
           nb::arg("first_job"), nb::arg("timeout_s"))
      .def("close_for", &PyCollector::CloseFor, nb::arg("seconds"))
      .def("leave", &PyCollector::LeaveAtLast)
      .def("stats", &PyCollector::Stats)
      .def_prop_ro("closed", &PyCollector::closed)
      .def_prop_ro("num_actions", &PyCollector::actions)
      .def_prop_ro("obs_bytes", &PyCollector::obs_bytes);
}

}  // namespace tetrion
