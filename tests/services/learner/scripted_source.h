#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/frame/row_layout.h"
#include "services/learner/row_source.h"

namespace tetrion::learner {

// A source without ring, file or process: it says what the test wrote into its script, one step a
// Peek, and stays at a step of rows until they are released.
class ScriptedSource final : public RowSource {
 public:
  struct Step {
    SourceState state = SourceState::kNone;
    std::uint32_t count = 0;      // kRows
    std::uint64_t void_rows = 0;  // passed over before
    int bad_row = -1;             // of `count`: its number is wrong
  };
  // What the test sees after the source has gone.
  struct Log {
    std::vector<std::uint64_t> released;
    int removals = 0;
    bool locked = false;  // nothing can be removed
  };

  ScriptedSource(SourceId id, const RowLayout& layout, std::deque<Step> script,
                 std::shared_ptr<Log> log)
      : RowSource(std::move(id)),
        layout_(layout),
        script_(std::move(script)),
        log_(std::move(log)) {}

  SourceRows Peek() override {
    if (script_.empty()) return {};
    Step& step = script_.front();
    const std::uint64_t void_rows = std::exchange(step.void_rows, 0);
    next_row_ += void_rows;
    if (step.state != SourceState::kRows) {
      const SourceState state = step.state;
      if (state == SourceState::kNone) script_.pop_front();
      return {.state = state, .void_rows = void_rows};
    }
    Fill(step);
    return {.state = SourceState::kRows,
            .rows = memory_.data(),
            .first = next_row_,
            .count = step.count,
            .void_rows = void_rows};
  }
  void Release(std::uint64_t n) override {
    TETRION_CHECK(!script_.empty() && n <= script_.front().count, "only peeked rows are released");
    log_->released.push_back(n);
    next_row_ += n;
    script_.front().count -= static_cast<std::uint32_t>(n);
    if (script_.front().count == 0) script_.pop_front();
  }
  bool HasNews() override { return !script_.empty(); }
  void LookAgain() override {}
  std::uint64_t next_row() const override { return next_row_; }
  std::uint64_t backlog_rows() const override {
    std::uint64_t rows = 0;
    for (const Step& step : script_) rows += step.count;
    return rows;
  }
  std::uint64_t capacity_rows() const override { return 1024; }
  const std::string& problem() const override { return problem_; }
  bool TryRemove() override {
    if (!log_->locked) ++log_->removals;
    return !log_->locked;
  }
  void Remove() override { ++log_->removals; }

 private:
  void Fill(const Step& step) {
    memory_.assign(step.count * layout_.row_bytes, std::byte{0});
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const RowView row(layout_, memory_.data() + i * layout_.row_bytes);
      row.header->row = next_row_ + i + (static_cast<int>(i) == step.bad_row ? 1 : 0);
      std::memcpy(row.record, &id().worker, sizeof id().worker);
      std::fill_n(row.cont, layout_.spec.lanes, 1.0F);
    }
  }

  const RowLayout& layout_;
  std::deque<Step> script_;
  const std::shared_ptr<Log> log_;
  std::vector<std::byte> memory_;
  std::uint64_t next_row_ = 0;
  const std::string problem_ = "the script says so";
};

// Hands out what the test adds; keeps what ingest says.
class ScriptedFinder final : public SourceFinder {
 public:
  struct End {
    SourceId id;
    SourceState state;
    std::string reason;
  };
  void Add(std::unique_ptr<RowSource> source) { fresh_.push_back(std::move(source)); }
  const std::vector<End>& ended() const { return ended_; }

  std::vector<std::unique_ptr<RowSource>> Poll() override { return std::exchange(fresh_, {}); }
  void Ended(const SourceId& id, SourceState state, const std::string& reason) override {
    ended_.push_back({id, state, reason});
  }
  std::uint64_t waiting() const override { return 0; }
  std::uint64_t given_up() const override { return 0; }

 private:
  std::vector<std::unique_ptr<RowSource>> fresh_;
  std::vector<End> ended_;
};

}  // namespace tetrion::learner
