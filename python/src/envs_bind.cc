#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/cpu_count.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/vector/vector_pool.h"
#include "python/src/bindings.h"

namespace nb = nanobind;

namespace tetrion {
namespace {

using Ints = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using LongInts = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Seeds = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A wait ends at least so often to let Python see signals (Ctrl-C).
constexpr std::int64_t kSignalCheckNs = 50 * kNanosPerMilli;
constexpr double kWaitS = 600.0;  // for environments, unless the caller says otherwise

// A numpy array [n] or [n, width] over memory that `owner` keeps alive.
template <typename T>
nb::object ArrayOf(T* data, std::size_t n, std::size_t width, nb::handle owner) {
  const std::size_t shape[2] = {n, width};
  return nb::cast(nb::ndarray<nb::numpy, T>(data, width > 0 ? 2 : 1, shape, owner));
}

// The pool as Python holds it: columns as arrays, statuses as exceptions, waits without the GIL.
class PyPool {
 public:
  PyPool(const PyEnvConfig& config, int num_envs, int threads, int batch_size)
      : pool_(new VectorPool(config, num_envs, threads), &VectorPool::Delete),
        all_(static_cast<std::size_t>(num_envs)),
        received_(static_cast<std::size_t>(batch_size)) {
    std::iota(all_.begin(), all_.end(), 0);
    const EnvSpec& spec = lanes().spec();
    if (batch_size < num_envs) {
      batch_.emplace(batch_size, lanes().encoder().bytes(), spec.action.count,
                     spec.action.has_mask);
    }
  }

  // Starts `envs` over; `seeds` is [envs] or empty for the seeds they have.
  void Reset(const Ints& envs, const Seeds& seeds) {
    const std::span<const int> ids(envs.data(), envs.size());
    PoolResult result;
    {
      const GilRelease release;
      result = pool_->Reset(ids, seeds.size() > 0 ? seeds.data() : nullptr);
    }
    if (result.status == PoolStatus::kBusy) {
      throw std::runtime_error(
          "another step has not ended (a second thread's, or one that was interrupted): let one "
          "thread use the environments, and reset all of them to begin anew");
    }
    Check(result, ids);
  }

  void Send(const Ints& envs, const Ints& actions) {
    // A copy: the user's other threads may write to the array meanwhile.
    const std::vector<int> ids(envs.data(), envs.data() + envs.size());
    Check(Sent(ids, actions.data()), ids);
  }

  // Fills the columns' arrays with `batch_size` environments, in the order of their ids when that
  // is all of them. This and what follows raise TimeoutError after `timeout_s` seconds.
  void Receive(double timeout_s) {
    Wait([this](std::int64_t ns) { return pool_->Receive(received_, ns); }, timeout_s);
    if (!batch_.has_value()) return;
    for (std::size_t i = 0; i < received_.size(); ++i) {
      batch_->CopyRow(lanes().columns(), static_cast<std::size_t>(received_[i]), i);
    }
  }

  // Every environment takes its action; the columns are complete when this returns.
  void Step(const Ints& actions, double timeout_s) {
    if (actions.size() != all_.size()) {
      throw nb::value_error(("step needs " + std::to_string(all_.size()) + " actions, not " +
                             std::to_string(actions.size()))
                                .c_str());
    }
    const PoolResult result = Sent(all_, actions.data());
    if (result.status == PoolStatus::kBusy) {
      throw std::runtime_error(
          "another step has not ended (a second thread's, or one that was interrupted): reset to "
          "begin anew, or recv after send");
    }
    Check(result, all_);
    Drain(timeout_s);
  }

  void Drain(double timeout_s) {
    {
      const GilRelease release;
      pool_->Help();
    }
    Wait([this](std::int64_t ns) { return pool_->ReceiveAll(ns); }, timeout_s);
  }

  void Close() {
    const GilRelease release;
    pool_->Close();
  }

  void AfterFork() { pool_->AfterFork(); }

  // name -> array over the memory that Step and Receive fill.
  nb::dict Columns(nb::handle self) {
    StepColumns& columns = batch_.has_value() ? *batch_ : lanes().columns();
    const std::size_t n = columns.reward.size();
    const ObsEncoder& encoder = lanes().encoder();
    const auto elements = static_cast<std::size_t>(encoder.elements());
    nb::dict out;
    out["obs"] =
        encoder.is_float()
            ? ArrayOf(reinterpret_cast<float*>(columns.obs.data()), n, elements, self)
            : ArrayOf(reinterpret_cast<std::uint8_t*>(columns.obs.data()), n, elements, self);
    out["reward"] = ArrayOf(columns.reward.data(), n, 0, self);
    out["terminated"] = ArrayOf(reinterpret_cast<bool*>(columns.terminated.data()), n, 0, self);
    out["truncated"] = ArrayOf(reinterpret_cast<bool*>(columns.truncated.data()), n, 0, self);
    out["episode_return"] = ArrayOf(columns.episode_return.data(), n, 0, self);
    out["episode_length"] = ArrayOf(columns.episode_length.data(), n, 0, self);
    out["lines"] = ArrayOf(columns.lines.data(), n, 0, self);
    out["lines_cleared"] = ArrayOf(columns.lines_cleared.data(), n, 0, self);
    out["env_id"] = ArrayOf(columns.env_id.data(), n, 0, self);
    if (columns.mask_bytes > 0) {
      out["action_mask"] = ArrayOf(reinterpret_cast<std::int8_t*>(columns.action_mask.data()), n,
                                   columns.mask_bytes, self);
    }
    return out;
  }

  nb::bytes Record(int env) {
    std::vector<std::byte> record(lanes().spec().obs.record_bytes);
    Check(pool_->Record(env, record), {&env, 1});
    return nb::bytes(record.data(), record.size());
  }

  // Their states as bytes.
  std::vector<nb::bytes> Save(const Ints& envs) {
    const std::span<const int> ids(envs.data(), envs.size());
    std::vector<std::vector<std::byte>> saved(ids.size());
    Check(pool_->Save(ids, saved), ids);
    std::vector<nb::bytes> out;
    for (const std::vector<std::byte>& bytes : saved) out.emplace_back(bytes.data(), bytes.size());
    return out;
  }
  // `states` is [envs].
  void Load(const Ints& envs, const std::vector<nb::bytes>& states) {
    const std::span<const int> ids(envs.data(), envs.size());
    if (states.size() != ids.size()) throw nb::value_error("load needs a state an environment");
    std::vector<std::span<const std::byte>> saved;
    for (const nb::bytes& bytes : states) {
      saved.emplace_back(reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size());
    }
    Check(pool_->Load(ids, saved), ids);
  }
  int actions() { return lanes().spec().action.count; }
  int threads() const { return pool_->threads(); }

 private:
  Lanes& lanes() { return pool_->lanes(); }

  PoolResult Sent(std::span<const int> envs, const std::int32_t* actions) {
    const GilRelease release;
    return pool_->Send(envs, actions);
  }

  // Calls `wait`, which waits for so many ns, without the GIL until it says something else than
  // "not yet".
  template <typename WaitFn>
  void Wait(const WaitFn& wait, double timeout_s) {
    const Deadline deadline(MonotonicClock::Get(),
                            static_cast<std::int64_t>(timeout_s * double{kNanosPerSecond}));
    for (;;) {
      PoolStatus status;
      {
        const GilRelease release;
        status = wait(std::min(kSignalCheckNs, deadline.LeftNs()));
      }
      if (status != PoolStatus::kTimeout) {
        Check({status}, {});
        return;
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (deadline.Passed()) {
        PyErr_SetString(PyExc_TimeoutError, "environments are still stepping; close this one");
        throw nb::python_error();
      }
    }
  }

  void Check(const PoolResult& result, std::span<const int> envs) {
    const std::string env =
        result.item < envs.size() ? "environment " + std::to_string(envs[result.item]) : "";
    switch (result.status) {
      case PoolStatus::kOk:
      case PoolStatus::kTimeout:
        return;
      case PoolStatus::kClosed:
        SleepIfPythonLeaves();
        throw std::runtime_error("the environment is closed; make a new one");
      case PoolStatus::kForked:
        if (threads() == 0) {
          throw std::runtime_error(
              "another thread was playing the environment when this process was forked, and is in "
              "the parent; make it in the process that uses it, or fork between steps");
        }
        throw std::runtime_error(
            "the environment was made before this process was forked, and its threads are in the "
            "parent; make it in the process that uses it, or with threads=0");
      case PoolStatus::kTooFew:
        throw std::runtime_error(
            "recv would wait for ever: fewer than batch_size environments are stepping; send "
            "actions or call async_reset first");
      case PoolStatus::kNoSuchEnv:
        throw nb::value_error(
            (env + " does not exist: ids are 0 to " + std::to_string(all_.size() - 1)).c_str());
      case PoolStatus::kBusy:
        throw nb::value_error(
            (env + " is still stepping: recv its result, or reset to begin anew").c_str());
      case PoolStatus::kTwice:
        throw nb::value_error((env + " is named twice").c_str());
      case PoolStatus::kNotReset:
        throw std::runtime_error(env + " was never reset: call reset or async_reset first");
      case PoolStatus::kBadState:
        throw nb::value_error(
            ("the state for " + env + " is damaged: no game of this environment could lead to it")
                .c_str());
      case PoolStatus::kBadAction:
        throw nb::value_error(("action " + std::to_string(result.action) + " of " + env +
                               " is out of range: actions are 0 to " +
                               std::to_string(actions() - 1))
                                  .c_str());
    }
  }

  const std::unique_ptr<VectorPool, void (*)(VectorPool*)> pool_;
  std::vector<int> all_;              // 0..n-1, constant
  std::vector<int> received_;         // scratch of Receive
  std::optional<StepColumns> batch_;  // [batch_size], where that is not every environment
};

// `values` as int32; ValueError naming the first that does not fit.
nb::object Narrowed(const LongInts& values, const std::string& what) {
  auto out = NewArray<std::int32_t>(1, values.size());
  const std::span<const std::int64_t> from(values.data(), values.size());
  const auto fits = [](std::int64_t value) { return std::in_range<std::int32_t>(value); };
  bool all_fit = true;  // without a way out of the loop, which becomes vectors
  for (std::size_t i = 0; i < from.size(); ++i) {
    all_fit &= fits(from[i]);
    out.data()[i] = static_cast<std::int32_t>(from[i]);
  }
  if (!all_fit) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::int64_t value = from[i];
      if (fits(value)) continue;
      throw nb::value_error(
          (what + "[" + std::to_string(i) + "] is " + std::to_string(value) + ", far out of range")
              .c_str());
    }
    throw nb::value_error((what + " changed while they were read").c_str());  // by another thread
  }
  return nb::cast(out).attr("ravel")();
}

// The first `count` pieces of an episode, ids 0..6.
std::vector<int> Pieces(std::uint64_t seed, std::uint64_t episode, int count, bool iid) {
  PhiloxPieces pieces = PhiloxPieces::Of(seed, episode, iid);
  std::vector<int> ids(static_cast<std::size_t>(std::max(count, 0)));
  std::generate(ids.begin(), ids.end(), [&] { return pieces.Next(); });
  return ids;
}

}  // namespace

void BindEnvs(nb::module_& m) {
  nb::class_<PyEnvConfig>(m, "EnvConfig")
      .def(
          "__init__",
          [](PyEnvConfig* self, const std::string& env, const std::string& obs, int queue_size,
             bool iid_pieces, int board_rows, bool spawn_above, const std::string& reward,
             bool illegal_is_noop, bool colours, std::uint32_t max_steps) {
            new (self) PyEnvConfig{.env = env,
                                   .obs = obs,
                                   .queue_size = queue_size,
                                   .iid_pieces = iid_pieces,
                                   .rows = board_rows,
                                   .spawn_above = spawn_above,
                                   .reward = TetrisRewardOf(reward),
                                   .illegal_is_noop = illegal_is_noop,
                                   .colours = colours,
                                   .max_steps = max_steps};
          },
          nb::kw_only(), nb::arg("env"), nb::arg("obs"), nb::arg("queue_size") = 4,
          nb::arg("iid_pieces") = false, nb::arg("board_rows") = 20, nb::arg("spawn_above") = false,
          nb::arg("reward") = "squares", nb::arg("illegal_is_noop") = false,
          nb::arg("colours") = false, nb::arg("max_steps") = 0);
  nb::class_<PyPool>(m, "VectorPool", nb::is_weak_referenceable())
      .def(nb::init<const PyEnvConfig&, int, int, int>(), nb::arg("config"), nb::arg("num_envs"),
           nb::arg("threads"), nb::arg("batch_size"))
      .def("reset", &PyPool::Reset, nb::arg("envs"), nb::arg("seeds"))
      .def("send", &PyPool::Send, nb::arg("envs"), nb::arg("actions"))
      .def("receive", &PyPool::Receive, nb::arg("timeout_s") = kWaitS)
      .def("step", &PyPool::Step, nb::arg("actions"), nb::arg("timeout_s") = kWaitS)
      .def("drain", &PyPool::Drain, nb::arg("timeout_s") = kWaitS)
      .def("close", &PyPool::Close)
      .def("after_fork", &PyPool::AfterFork)
      .def("columns", [](nb::handle self) { return nb::cast<PyPool&>(self).Columns(self); })
      .def("record", &PyPool::Record, nb::arg("env"))
      .def("save", &PyPool::Save, nb::arg("envs"))
      .def("load", &PyPool::Load, nb::arg("envs"), nb::arg("states"))
      .def_prop_ro("num_actions", &PyPool::actions)
      .def_prop_ro("threads", &PyPool::threads);
  m.def("narrowed", &Narrowed, nb::arg("values"), nb::arg("what"));
  m.def("usable_cpus", &UsableCpus);
  m.def("pieces", &Pieces, nb::arg("seed"), nb::arg("episode"), nb::arg("count"), nb::arg("iid"));
}

}  // namespace tetrion
