#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/rl/trainer.h"
#include "lib/rl/trainer_figures.h"
#include "lib/weights/weights_slot.h"

namespace tetrion::learner {

// FakeTrainer's own table: the shared figures in another order, behind one of its own. Readers who
// take a figure's place in the shared table for its place here find another value.
inline constexpr auto kFakeFigures = [] {
  std::array<FigureInfo, kTrainerFigures.size() + 1> figures;
  figures.front() = {"doubts", "", "of no other trainer"};
  std::ranges::reverse_copy(kTrainerFigures, figures.begin() + 1);
  return figures;
}();
// A figure of an update of FakeTrainer.
inline double& Figure(UpdateStats& stats, FigureOf<kFakeFigures> figure) {
  return stats.figures[figure.index()];
}

// A trainer whose only weight counts its updates. Steps as `script` says, then as kReady.
class FakeTrainer final : public Trainer {
 public:
  UpdateStats Step(BatchSource&, std::uint32_t version) override {
    versions.push_back(version);
    UpdateStats stats = {.status = BatchStatus::kReady, .updates = 1};
    if (!script.empty()) {
      stats = script.front();
      script.pop_front();
    }
    if (stats.status == BatchStatus::kReady) weight += static_cast<float>(stats.updates);
    return stats;
  }
  std::span<const FigureInfo> Figures() const override { return kFakeFigures; }
  void PolicyBlob(std::vector<std::byte>& out) const override {
    out.resize(sizeof weight);
    std::memcpy(out.data(), &weight, sizeof weight);
  }
  std::size_t PolicyBlobBytes() const override { return sizeof weight; }
  TrainerState Save() const override {
    if (lost) throw Error(ExitCode::kTryAgain, "the device cannot be read");
    return {.tensors = {{.name = "policy.w", .shape = {1}, .data = {weight}}}, .counters = {}};
  }
  void Load(const TrainerState&) override {}

  bool lost = false;  // Save fails
  float weight = 0;
  std::deque<UpdateStats> script;
  std::vector<std::uint32_t> versions;  // given to each Step
};

class NoSource final : public BatchSource {
 public:
  TrainBatch Next() override { return TrainBatch(BatchStatus::kNotReady); }
};

// Weights slots in ordinary memory and what a policy sees in them.
class TestSlots {
 public:
  static constexpr std::uint64_t kBlobBytes = sizeof(float);
  TestSlots()
      : memory_(static_cast<std::byte*>(std::aligned_alloc(128, WeightsSlotBytes(kBlobBytes))),
                &std::free) {
    std::memset(memory_.get(), 0, WeightsSlotBytes(kBlobBytes));
  }
  WeightsSlotWriter Writer() { return WeightsSlotWriter(memory_.get(), kBlobBytes); }
  std::uint32_t Newest() { return Writer().NewestVersion(); }
  float NewestWeight() {
    WeightsSlotReader reader(memory_.get(), kBlobBytes);
    std::vector<std::byte> blob;
    std::uint32_t version = 0;
    TETRION_CHECK(reader.Read(blob, version) == WeightsRead::kFresh, "weights were published");
    float weight = 0;
    std::memcpy(&weight, blob.data(), sizeof weight);
    return weight;
  }

 private:
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

}  // namespace tetrion::learner
