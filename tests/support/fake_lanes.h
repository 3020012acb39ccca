#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/collect/lane_ports.h"
#include "lib/envs/vec_env.h"
#include "lib/policy/inference_client.h"
#include "lib/policy/policy.h"
#include "lib/weights/weights_source.h"

namespace tetrion::testing {

// An environment whose episode of token i lasts 1 + i % 5 steps and pays 1 a step; records hold
// token id and step, so that a row says where it comes from.
class CountingEnv final : public VecEnv {
 public:
  explicit CountingEnv(int lanes) : lanes_(static_cast<std::size_t>(lanes)) {
    spec_.name = "counting";
    spec_.obs.record_bytes = 16;
    spec_.action.count = 3;
  }
  const EnvSpec& spec() const override { return spec_; }
  int lanes() const override { return static_cast<int>(lanes_.size()); }
  void Seed(int /*lane*/, std::uint64_t /*seed*/) override {}
  void Reset(int lane, const Token& token) override {
    Lane& l = lanes_[static_cast<std::size_t>(lane)];
    l.token = token;
    l.step = 0;
    l.fresh = true;
    ++l.episode_id;
  }
  void Step(std::span<const int> active, const std::int32_t* actions, const RowView& row) override {
    for (const int lane : active) {
      const auto i = static_cast<std::size_t>(lane);
      Lane& l = lanes_[i];
      if (!l.fresh) {
        ++l.step;
        l.last_action = actions[i];
      }
      const std::uint64_t length = std::min<std::uint64_t>(1 + l.token.id % 5, l.token.max_steps);
      const bool last = !l.fresh && l.step >= length;
      const std::uint64_t words[2] = {l.token.id, l.step};
      std::memcpy(row.record + i * 16, words, sizeof words);
      row.reward[i] = l.fresh ? 0.0F : 1.0F;
      row.flags[i] =
          static_cast<std::uint8_t>((l.fresh ? kIsFirst : 0) | (last ? kIsLast | kTerminated : 0));
      row.cont[i] = last ? 0.0F : 1.0F;
      row.episode_id[i] = l.episode_id;
      l.fresh = false;
    }
  }
  EpisodeResult Episode(int lane) const override {
    const Lane& l = lanes_[static_cast<std::size_t>(lane)];
    return {.token_id = l.token.id,
            .attempt = l.token.attempt,
            .length_steps = static_cast<std::uint32_t>(l.step),
            .episode_return = static_cast<float>(l.step)};
  }
  const Token& token(int lane) const override {
    return lanes_[static_cast<std::size_t>(lane)].token;
  }

 private:
  struct Lane {
    Token token;
    std::uint64_t step = 0;
    bool fresh = false;
    std::int32_t episode_id = 0;
    std::int32_t last_action = 0;
  };
  EnvSpec spec_;
  std::vector<Lane> lanes_;
};

// Chooses action 1 everywhere; fails (not finite) on the calls named in `fail`.
class ScriptedPolicy final : public Policy {
 public:
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override {
    ++calls;
    if (fail_from != 0 && calls >= fail_from && calls < fail_from + fail_count) {
      return failure;
    }
    for (int i = 0; i < in.n; ++i) {
      out.action[i] = 1;
      out.log_prob[i] = -0.5F;
    }
    return ActResult::kOk;
  }
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t version) override {
    version_ = version;
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return version_; }

  int calls = 0, fail_from = 0, fail_count = 0;
  ActResult failure = ActResult::kNotFinite;

 private:
  std::uint32_t version_ = 0;
};

// Tokens from a list; afterwards kTimeout, or what `after` says.
class ListTokens final : public TokenSource {
 public:
  TakeResult Take(Token& token, std::int64_t) override {
    if (state != TakeResult::kToken) return state;
    if (tokens.empty()) return when_empty;
    token = tokens.front();
    tokens.pop_front();
    return TakeResult::kToken;
  }
  TakeResult State() const override { return state; }
  void AcceptFence() override {
    ++fences_accepted;
    state = TakeResult::kToken;
  }
  void Fill(std::uint64_t first, std::uint64_t count, std::uint32_t max_steps = 100) {
    for (std::uint64_t i = 0; i < count; ++i) {
      tokens.push_back({.id = first + i, .attempt = 0, .max_steps = max_steps});
    }
  }

  std::deque<Token> tokens;
  TakeResult state = TakeResult::kToken;
  TakeResult when_empty = TakeResult::kTimeout;
  int fences_accepted = 0;
};

// Keeps every completed row; visible to "the other side" after a flush or every `stride` rows.
class VectorSink final : public RowSink {
 public:
  VectorSink(const RowSpec& spec, std::uint64_t stride) : layout_(spec), stride_(stride) {}
  const RowLayout& layout() const override { return layout_; }
  ClaimResult Claim(RowView& row, std::int64_t) override {
    if (rows.size() >= capacity) return ClaimResult::kFull;
    pending_.assign(layout_.row_bytes, std::byte{0xEE});  // poison: the loop must write everything
    row = RowView(layout_, pending_.data());
    return ClaimResult::kRow;
  }
  void Complete() override {
    rows.push_back(pending_);
    if (rows.size() % stride_ == 0) Flush();
  }
  void Flush() override {
    if (!arrives_late) published = rows.size();
  }
  std::uint64_t PublishedRows() const override { return published; }
  RowView Row(std::size_t i) { return RowView(layout_, rows[i].data()); }

  std::vector<std::vector<std::byte>> rows;
  std::size_t capacity = ~std::size_t{0};
  std::uint64_t published = 0;
  bool arrives_late = false;  // `published` is the test's to set

 private:
  const RowLayout layout_;
  const std::uint64_t stride_;
  std::vector<std::byte> pending_;
};

// Remembers what a loop told.
struct Recorder final : LaneListener {
  void OnEpisodes(std::span<const EpisodeResult> results) override {
    episodes.insert(episodes.end(), results.begin(), results.end());
  }
  void OnAbandoned(std::span<const Token> tokens, const char* why) override {
    for (const Token& token : tokens) abandoned.push_back(token.id);
    reason = why;
  }
  void OnRow(std::int64_t, std::int64_t) override { ++rows; }
  void OnNewWeights(std::uint32_t behind_versions) override { behind.push_back(behind_versions); }

  std::vector<EpisodeResult> episodes;
  std::vector<std::uint64_t> abandoned;
  std::vector<std::uint32_t> behind;  // old weights, in versions
  std::string reason;
  int rows = 0;
};

// Answers every row with action 2 of version 7 unless `next` or `look` say otherwise for one call.
class ScriptedAnswers final : public InferenceClient {
 public:
  explicit ScriptedAnswers(int lanes) : lanes_(lanes) {}
  AnswererState Look(std::int64_t) override {
    if (absent_looks > 0) {
      --absent_looks;
      return AnswererState::kAbsent;
    }
    return std::exchange(look, AnswererState::kReady);
  }
  AnswerResult Take(std::uint64_t row, std::int32_t* actions, std::uint32_t& version,
                    std::int64_t) override {
    asked.push_back(row);
    const AnswerResult result = std::exchange(next, after);
    if (result != AnswerResult::kAnswer) return result;
    std::fill_n(actions, lanes_, 2);
    version = 7;
    return result;
  }
  bool AnswererGone() const override { return gone; }
  const std::string& problem() const override { return problem_; }

  int absent_looks = 0;
  AnswererState look = AnswererState::kReady;
  AnswerResult next = AnswerResult::kAnswer;
  AnswerResult after = AnswerResult::kAnswer;
  bool gone = false;
  std::vector<std::uint64_t> asked;

 private:
  const int lanes_;
  const std::string problem_ = "scripted";
};

}  // namespace tetrion::testing
