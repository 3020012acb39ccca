#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/cuda/activity.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/cuda/device_place.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/rl/dreamer/fixed_source.h"

// DreamerV3's updates on a device against those on the CPU.
namespace tetrion {
namespace {

using testing::FixedRows;
using testing::FixedSource;

class DeviceEngineTest : public cuda::DeviceFixture {
 protected:
  void SetUp() override {
    cuda::DeviceFixture::SetUp();
    if (stream != nullptr && stream->native() != nullptr && !UpdatesOnCuda()) {
      GTEST_SKIP() << "a tensor library without its part for CUDA: nothing ran on a device";
    }
  }
};

FixedRows SmallRows() {
  FixedRows rows;
  rows.settings = {.horizon = 3, .learning_rate = 1e-3, .warmup_updates = 2};
  rows.steps = 6;
  rows.lanes = 3;
  return rows;
}

std::unique_ptr<Trainer> MakeTestTrainer(const FixedRows& rows,
                                         std::unique_ptr<UpdatePlace> place = nullptr) {
  return MakeDreamerTrainer(
      {.settings = rows.settings, .seed = 5, .window = rows.steps, .batch_lanes = rows.lanes},
      rows.env, std::make_unique<OneLearner>(), std::move(place));
}

void ExpectSameFigures(const UpdateStats& device, const UpdateStats& host) {
  ASSERT_EQ(host.updates, 1) << host.problem;
  ASSERT_EQ(device.updates, 1) << device.problem;
  for (std::size_t i = 0; i < kDreamerFigures.size(); ++i) {
    EXPECT_NEAR(device.figures[i], host.figures[i], 2e-3 * std::max(1.0, std::abs(host.figures[i])))
        << kDreamerFigures[i].name;
  }
}

void ExpectSameState(const TrainerState& one, const TrainerState& other) {
  EXPECT_EQ(one.counters, other.counters);
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (std::size_t t = 0; t < one.tensors.size(); ++t) {
    EXPECT_EQ(one.tensors[t].name, other.tensors[t].name);
    EXPECT_EQ(one.tensors[t].data, other.tensors[t].data) << one.tensors[t].name;
  }
}

// What returns are scaled by follows them at the same rate; no figure shows a scale below 1.
void ExpectSameRange(const TrainerState& device, const TrainerState& host) {
  for (std::size_t t = 0; t < host.tensors.size(); ++t) {
    if (host.tensors[t].name != "return_range") continue;
    const std::vector<float>&a = device.tensors.at(t).data, &b = host.tensors[t].data;
    const float width = b.at(1) - b.at(0);
    for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a.at(i), b[i], 0.25F * width) << i;
  }
}

// Updates of each, whose figures agree; of six, a device repeats three from a record. The host's
// arithmetic rounds in another way, which an optimiser that normalises gradients makes much of:
// parameters are compared by what they do.
void ExpectSameUpdates(const FixedRows& rows, const cuda::Device& device, int updates = 6) {
  FixedSource source(rows), again(rows);
  const std::unique_ptr<Trainer> host = MakeTestTrainer(rows),
                                 there = MakeTestTrainer(rows, MakeUpdatePlace(device));
  ExpectSameState(there->Save(), host->Save());
  for (int update = 0; update < updates; ++update) {
    ExpectSameFigures(there->Step(again, 0), host->Step(source, 0));
  }
  EXPECT_EQ(source.Valid(), again.Valid());
  ExpectSameRange(there->Save(), host->Save());
}

TEST_F(DeviceEngineTest, UpdatesAreThoseOfTheHost) {
  ExpectSameUpdates(SmallRows(), *device);
}

TEST_F(DeviceEngineTest, SoAreThoseFromPlanesAndPictures) {
  FixedRows rows = SmallRows();
  rows.env = testing::EnvWithView<24>("planes", 3, false);
  ExpectSameUpdates(rows, *device);
  // What the simulated device takes seconds for.
  rows.steps = 2;
  rows.lanes = 1;
  rows.settings.horizon = 1;
  rows.env = testing::EnvWithView<72 * 80>("pixels", 3, false);
  ExpectSameUpdates(rows, *device, /*updates=*/2);
}

TEST_F(DeviceEngineTest, SoAreThoseWithLayerNormAndOtherChoices) {
  FixedRows rows = SmallRows();
  rows.settings.norm = "layer";
  rows.settings.discount_in = "returns";
  rows.settings.start_weight = "data";
  rows.settings.return_critic = "slow";
  rows.settings.slow_moves = "before";
  rows.settings.slow_rate = 0.5;
  rows.settings.return_rate = 0.5;
  rows.settings.slow_regulariser = 0.5;
  rows.settings.agc = 0;
  ExpectSameUpdates(rows, *device);
}

TEST_F(DeviceEngineTest, SoAreThoseOfABatchInWhichLanesIdle) {
  FixedRows rows = SmallRows();
  rows.idle_lanes = 2;
  rows.idle_noise = 3;
  rows.settings.return_rate = 0.5;
  ExpectSameUpdates(rows, *device);
}

TEST_F(DeviceEngineTest, ABatchOfLanesThatIdleIsNoUpdateAndNoFault) {
  const FixedRows rows = SmallRows();
  FixedSource idle(testing::AllIdle(rows)), source(rows);
  const std::unique_ptr<Trainer> there = MakeTestTrainer(rows, MakeUpdatePlace(*device));
  const TrainerState before = there->Save();
  const UpdateStats stats = there->Step(idle, 0);
  EXPECT_EQ(stats.updates + stats.skipped, 0);
  EXPECT_EQ(stats.problem, "");
  EXPECT_EQ(stats.figures, UpdateStats().figures);
  ExpectSameState(there->Save(), before);
  EXPECT_EQ(there->Step(source, 0).updates, 1);
}

// Without a uniform share a class may have a chance that no float holds.
TEST_F(DeviceEngineTest, SoAreThoseOfAModelThatIsCertain) {
  FixedRows rows = SmallRows();
  rows.settings.unimix = rows.settings.actor_unimix = 0;
  const std::unique_ptr<Trainer> host = MakeTestTrainer(rows),
                                 there = MakeTestTrainer(rows, MakeUpdatePlace(*device));
  TrainerState state = host->Save();
  for (TrainerState::Tensor& tensor : state.tensors) {
    if (tensor.name == "model.actor.out.bias") tensor.data.front() = 200;
    if (tensor.name == "model.posterior.out.bias") tensor.data.front() = 200;
  }
  host->Load(state);
  there->Load(state);
  FixedSource source(rows), again(rows);
  ExpectSameFigures(there->Step(again, 0), host->Step(source, 0));
}

TEST_F(DeviceEngineTest, TheFirstStepWithARateMovesParametersAlike) {
  FixedRows rows = SmallRows();
  rows.settings.warmup_updates = 0;
  FixedSource source(rows), again(rows);
  const std::unique_ptr<Trainer> host = MakeTestTrainer(rows),
                                 there = MakeTestTrainer(rows, MakeUpdatePlace(*device));
  ExpectSameFigures(there->Step(again, 0), host->Step(source, 0));
  TrainerState one = there->Save(), other = host->Save();
  // Parameters move by the rate at most, moments by the share that is new in them, the slow critic
  // by its rate of the step. A gradient whose sign is a matter of rounding may move the other way.
  const std::vector<std::pair<std::string, float>> moves = {
      {"model.", 1e-3F}, {"laprop_mean.", 0.1F}, {"slow.", 1e-3F * 0.02F}};
  for (std::size_t t = 0; t < one.tensors.size(); ++t) {
    const std::vector<float>&a = one.tensors[t].data, &b = other.tensors[t].data;
    for (const auto& [prefix, move] : moves) {
      if (!one.tensors[t].name.starts_with(prefix)) continue;
      std::size_t apart = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 2.1F * move) << one.tensors[t].name;
        apart += std::abs(a[i] - b[i]) > 0.05F * move ? 1 : 0;
      }
      EXPECT_LE(apart, a.size() / 50) << one.tensors[t].name;
    }
    if (one.tensors[t].name != "return_range") continue;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << "percentile " << i;
  }
}

TEST_F(DeviceEngineTest, CheckpointsGoFromOneToTheOther) {
  const FixedRows rows = SmallRows();
  FixedSource source(rows);
  const std::unique_ptr<Trainer> there = MakeTestTrainer(rows, MakeUpdatePlace(*device)),
                                 host = MakeTestTrainer(rows);
  for (int update = 0; update < 2; ++update) EXPECT_EQ(there->Step(source, 0).updates, 1);
  const TrainerState state = there->Save();
  host->Load(state);
  ExpectSameState(host->Save(), state);
  std::vector<std::byte> blob, same;
  there->PolicyBlob(blob);
  host->PolicyBlob(same);
  EXPECT_EQ(blob, same);
  const std::unique_ptr<Trainer> resumed = MakeTestTrainer(rows, MakeUpdatePlace(*device));
  resumed->Load(host->Save());
  EXPECT_EQ(resumed->Step(source, 0).figures, there->Step(source, 0).figures);
  ExpectSameState(resumed->Save(), there->Save());
}

TEST_F(DeviceEngineTest, AnUpdateThatIsNotFiniteChangesNothingAndSaysWhy) {
  const FixedRows rows = SmallRows();
  FixedSource source(rows);
  const std::unique_ptr<Trainer> there = MakeTestTrainer(rows, MakeUpdatePlace(*device));
  EXPECT_EQ(there->Step(source, 0).updates, 1);
  TrainerState state = there->Save();
  const auto spoil = [&](const std::string& name, float value) {
    TrainerState spoilt = state;
    for (TrainerState::Tensor& tensor : spoilt.tensors) {
      if (tensor.name == name) tensor.data.front() = value;
    }
    there->Load(spoilt);
    const UpdateStats stats = there->Step(source, 0);
    EXPECT_EQ(stats.skipped, 1);
    ExpectSameState(there->Save(), spoilt);
    return stats.problem;
  };
  constexpr float kHuge = std::numeric_limits<float>::max();
  EXPECT_EQ(spoil("model.decoder.out.bias", kHuge), "the reconstruction loss");
  EXPECT_EQ(spoil("model.continue.out.bias", -kHuge), "the continue loss");
  FixedRows poisoned = rows;
  poisoned.poison = std::numeric_limits<float>::infinity();
  FixedSource poison(poisoned);
  EXPECT_EQ(there->Step(poison, 0).problem, "a reward of the batch");
  there->Load(state);
  EXPECT_EQ(there->Step(source, 0).updates, 1);
}

// What an update asks of the tensor library and of the kernels, in order.
std::vector<std::string> asked;  // a callback of the library's takes no argument of ours

class NotedKernels final : public UpdateKernels {
 public:
  explicit NotedKernels(UpdateKernels& kernels) : kernels_(kernels) {}
  void NormSiluForward(const float* x, std::int64_t rows, std::int64_t width, const float* scale,
                       float* y, float* slope, float* inverse) override {
    asked.emplace_back("NormSiluRows");
    kernels_.NormSiluForward(x, rows, width, scale, y, slope, inverse);
  }
  void NormSiluBackward(const float* grad, const float* x, std::int64_t rows, std::int64_t width,
                        const float* scale, const float* slope, const float* inverse, float* grad_x,
                        float* scale_parts) override {
    asked.emplace_back("NormSiluSlopes");
    kernels_.NormSiluBackward(grad, x, rows, width, scale, slope, inverse, grad_x, scale_parts);
  }
  void GruForward(const float* gates, const float* deter, std::int64_t rows, std::int64_t width,
                  float* out, float* parts) override {
    asked.emplace_back("GruGates");
    kernels_.GruForward(gates, deter, rows, width, out, parts);
  }
  void GruBackward(const float* grad, const float* gates, const float* deter, const float* parts,
                   std::int64_t rows, std::int64_t width, float* grad_gates,
                   float* grad_deter) override {
    asked.emplace_back("GruGateSlopes");
    kernels_.GruBackward(grad, gates, deter, parts, rows, width, grad_gates, grad_deter);
  }
  void DrawOneHots(const float* probs, std::int64_t rows, std::int64_t classes,
                   const UpdateDraw& draw, float* out) override {
    asked.emplace_back("OneHotRows");
    kernels_.DrawOneHots(probs, rows, classes, draw, out);
  }

 private:
  UpdateKernels& kernels_;
};

// Notes what is asked while an update is enqueued.
class NotedPlace final : public UpdatePlace {
 public:
  explicit NotedPlace(std::unique_ptr<UpdatePlace> place) : place_(std::move(place)) {}
  int ordinal() const override { return place_->ordinal(); }
  UpdateKernels& kernels() override { return kernels_; }
  void Once(const std::function<void()>& work) override { place_->Once(work); }
  void Repeat(const std::function<void()>& work) override {
    place_->Repeat([&] {
      asked.clear();
      const at::CallbackHandle handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
          [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
            asked.emplace_back(function.name());
            return nullptr;
          }));
      work();
      at::removeCallback(handle);
    });
  }

 private:
  const std::unique_ptr<UpdatePlace> place_;
  NotedKernels kernels_{place_->kernels()};
};

std::int64_t CountOf(const std::string& name) {
  return std::count(asked.begin(), asked.end(), name);
}

TEST_F(DeviceEngineTest, EveryUpdateIsTheSameWorkThatReadsNothingOnTheHost) {
  FixedRows rows = SmallRows(), others = rows;
  others.poison = 0.5F;
  others.later = 1;
  others.idle_lanes = 1;
  FixedSource source(rows), other(others);
  auto place = std::make_unique<NotedPlace>(MakeUpdatePlace(*device));
  if (place->ordinal() != UpdatePlace::kSimulated) GTEST_SKIP() << "a device repeats its record";
  const std::unique_ptr<Trainer> there = MakeTestTrainer(rows, std::move(place));
  EXPECT_EQ(there->Step(source, 0).updates, 1);
  const cuda::Activity before = cuda::ProcessActivity().Read();
  EXPECT_EQ(there->Step(source, 0).updates, 1);
  const cuda::Activity first = cuda::ProcessActivity().Read().Since(before);
  const std::vector<std::string> work = asked;
  EXPECT_EQ(there->Step(other, 0).updates, 1);
  const cuda::Activity second = cuda::ProcessActivity().Read().Since(before).Since(first);
  EXPECT_EQ(asked, work) << "work that depends on numbers";

  // A fused step for every hidden layer that learns and for every row, forward and backward; of
  // imagined rows the model's layers have no gradient.
  const std::int64_t steps = rows.steps, horizon = rows.settings.horizon;
  EXPECT_EQ(CountOf("GruGates"), steps + horizon);
  EXPECT_EQ(CountOf("GruGateSlopes"), steps);
  EXPECT_EQ(CountOf("OneHotRows"), steps + 2 * horizon);
  EXPECT_GT(CountOf("NormSiluRows"), CountOf("NormSiluSlopes"));
  EXPECT_GT(CountOf("NormSiluSlopes"), 5 * steps);
  // What makes the host wait for a device.
  for (const char* wait :
       {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero",
        "aten::equal", "aten::masked_select", "aten::_to_cpu", "aten::unique_dim"}) {
    EXPECT_EQ(CountOf(wait), 0) << wait;
  }
  const auto kernels = static_cast<std::uint64_t>(CountOf("GruGates") + CountOf("GruGateSlopes") +
                                                  CountOf("OneHotRows") + CountOf("NormSiluRows") +
                                                  CountOf("NormSiluSlopes"));
  for (const cuda::Activity& update : {first, second}) {
    EXPECT_EQ(update.launches, kernels);
    EXPECT_EQ(update.waits, kernels) << "the simulated device's own, one a kernel";
    for (const auto& direction : update.copies) {
      for (const auto& kind : direction) {
        for (const cuda::CopyCount& copies : kind) EXPECT_EQ(copies.copies, 0U);
      }
    }
  }
}

}  // namespace
}  // namespace tetrion
