#include "services/learner/inference_agent.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/inference/env_end.h"
#include "lib/inference/stream_layout.h"
#include "tests/services/learner/ingest_fixture.h"
#include "tests/support/no_open_files.h"

namespace tetrion::learner {
namespace {

// Action = first byte of the lane's record, so that a row tells what its answer must be.
class EchoPolicy final : public Policy {
 public:
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override {
    calls.push_back(in.n);
    if (fail || CheckTestRecords(in.records, in.n) != nullptr) return ActResult::kNotFinite;
    for (int i = 0; i < in.n; ++i) {
      out.action[i] = static_cast<std::int32_t>(in.records[16 * i]) % kActions;
      out.log_prob[i] = -1.5F;
      draws.emplace_back(in.token_ids[i], in.steps[i]);
      lane_of_byte[static_cast<int>(in.records[16 * i])] = in.lane_ids[i];
    }
    return ActResult::kOk;
  }
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t) override {
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return 42; }

  std::vector<int> calls;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> draws;
  std::map<int, std::uint32_t> lane_of_byte;  // first byte of a record -> id of its lane
  bool fail = false;
};

struct FixedWeights final : WeightsSource {
  explicit FixedWeights(const bool& is_there) : there(is_there) {}
  bool Refresh(WeightsUser&) override { return there; }
  const bool& there;
};

// A streamed worker's end, its calls made by the test.
struct Streamer {
  Streamer(const std::string& dir, const RowLayout& layout, std::uint32_t worker)
      : stream(layout, 16) {
    EnvEnd::Ends ends =
        EnvEnd::Create(dir, StreamName(kRun, 1, worker, worker), kRun, stream, kActions);
    obs.emplace(std::move(ends.obs));
    end = std::move(ends.env_end);
    end->Place({.published = [this] { return obs->published(); },
                .set_obs_bell = [](Bell) {},
                .learner = {.shm_dir = dir, .run_id = kRun, .spec_hash = 1}});
  }
  // `last_byte` of every record: 0xFF makes the row one that no policy can decide.
  void Publish(int first_byte, std::uint8_t flags = 0, int last_byte = 0) {
    RingProducer::Loan loan = obs->Claim();
    TETRION_CHECK(loan.ok(), "the test's ring is large enough");
    std::memset(loan.record(), 0, stream.row.row_bytes);
    const RowView row(stream.row, loan.record());
    row.header->row = obs->completed();
    for (std::size_t l = 0; l < stream.row.spec.lanes; ++l) {
      row.record[16 * l] = static_cast<std::byte>(first_byte + static_cast<int>(l));
      row.record[16 * l + 15] = static_cast<std::byte>(last_byte);
      row.flags[l] = flags;
      row.cont[l] = 1.0F;
    }
    loan.Complete();
    obs->Publish();
  }
  AnswerResult Take(std::uint64_t row) { return end->Take(row, actions, version, 0); }
  std::string path() const { return const_cast<Streamer*>(this)->obs->region()->path(); }

  StreamLayout stream;
  std::optional<RingProducer> obs;
  std::unique_ptr<EnvEnd> end;
  std::int32_t actions[2] = {-1, -1};
  std::uint32_t version = 0;
};

// Inference beside a real ingest agent, both driven by the test.
class InferenceAgentTest : public IngestFixture {
 protected:
  InferenceAgentTest() { MakeInference(); }
  void MakeInference() {
    made_ = std::make_unique<EchoPolicy>();
    policy_ = made_.get();
    inference_ = std::make_unique<InferenceAgent>(
        InferenceAgent::Config{.run_id = kRun,
                               .action_count = kActions,
                               .check_records = CheckTestRecords,
                               .max_lanes = 4,
                               .wait_ns = 1000,
                               .attach_every_ns = 0},
        layout_,
        InferenceAgent::Parts{.make_policy = [this] { return std::move(made_); },
                              .weights = std::make_unique<FixedWeights>(weights_there_),
                              .bell = Bell(&inference_bell_),
                              .ingest = Bell(&bell_),
                              .on_batch = [this](double) { ++batches_; }},
        streams_);
  }
  // A learner restarted: new replay, new agents.
  void RestartLearner() {
    inference_.reset();
    Build();
    MakeInference();
    board_.SetList(++revision_, {});
  }
  // Attaches the streamer's stream at both agents and shakes hands.
  void Connect(std::vector<Streamer*> streamers) {
    std::vector<std::pair<std::string, int>> rings;
    for (std::size_t i = 0; i < streamers.size(); ++i) {
      rings.emplace_back(streamers[i]->path(), static_cast<int>(i));
    }
    List(rings);
    Cycle(2);
    (void)inference_->DoWork();
    for (Streamer* streamer : streamers) ASSERT_EQ(streamer->end->Look(0), AnswererState::kReset);
    (void)inference_->DoWork();
    ASSERT_EQ(inference_->counters().streams.load(), streamers.size());
  }

  BellBlock inference_bell_{};
  bool weights_there_ = true;
  int batches_ = 0;
  std::unique_ptr<EchoPolicy> made_;  // not taken yet
  EchoPolicy* policy_ = nullptr;
  std::unique_ptr<InferenceAgent> inference_;
};

TEST_F(InferenceAgentTest, PolicyIsMadeWhenTheFirstStreamComes) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(inference_->DoWork(), 0);
  EXPECT_NE(made_, nullptr) << "no stream, no policy";
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  EXPECT_EQ(made_, nullptr);
}

TEST_F(InferenceAgentTest, RowIsAnsweredAndReachesTheReplayWithItsActions) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  for (std::uint64_t row = 0; row < 8; ++row) {
    streamer.Publish(static_cast<int>(row), row == 0 ? kIsFirst : 0);
    EXPECT_EQ(inference_->DoWork(), 1);
    ASSERT_EQ(streamer.Take(row), AnswerResult::kAnswer) << streamer.end->problem();
    EXPECT_EQ(streamer.actions[0], static_cast<int>(row % 3));
    EXPECT_EQ(streamer.actions[1], static_cast<int>((row + 1) % 3));
    EXPECT_EQ(streamer.version, 42U);
    Cycle(1);
    EXPECT_EQ(RowsIn(0), row + 1);
  }
  EXPECT_EQ(inference_->counters().rows.load(), 8U);
  EXPECT_EQ(batches_, 8);
  ReadLease lease = replay_->OpenLease(1, kSteps + 1, 0);
  ASSERT_TRUE(lease);
  const RowView row(layout_, memory_->Row(0, lease.windows()[0].start + 3));
  EXPECT_EQ(row.action[1], (3 + 1) % 3);
  EXPECT_EQ(row.log_prob[1], -1.5F);
  EXPECT_EQ(row.header->policy_version, 42U);
}

TEST_F(InferenceAgentTest, WaitingRowsOfAllStreamsAreDecidedInOneCallUpToTheLimit) {
  Streamer a(dir_.path(), layout_, 0), b(dir_.path(), layout_, 1), c(dir_.path(), layout_, 2);
  Connect({&a, &b, &c});
  for (Streamer* streamer : {&a, &b, &c}) streamer->Publish(1);
  EXPECT_EQ(inference_->DoWork(), 2);  // four lanes are two rows
  EXPECT_EQ(inference_->DoWork(), 1);
  EXPECT_EQ(policy_->calls, (std::vector<int>{4, 2}));
  for (Streamer* streamer : {&a, &b, &c}) EXPECT_EQ(streamer->Take(0), AnswerResult::kAnswer);
}

TEST_F(InferenceAgentTest, NoTwoDecisionsShareARandomDraw) {
  Streamer a(dir_.path(), layout_, 0), b(dir_.path(), layout_, 1);
  Connect({&a, &b});
  for (std::uint64_t row = 0; row < 3; ++row) {
    for (Streamer* streamer : {&a, &b}) streamer->Publish(1);
    (void)inference_->DoWork();
    for (Streamer* streamer : {&a, &b}) ASSERT_EQ(streamer->Take(row), AnswerResult::kAnswer);
  }
  std::sort(policy_->draws.begin(), policy_->draws.end());
  EXPECT_EQ(policy_->draws.size(), 12U);
  EXPECT_EQ(std::adjacent_find(policy_->draws.begin(), policy_->draws.end()), policy_->draws.end());
}

// A recurrent policy finds its state by these ids.
TEST_F(InferenceAgentTest, LaneKeepsItsIdInWhateverOrderStreamsShareABatch) {
  Streamer a(dir_.path(), layout_, 0), b(dir_.path(), layout_, 1), c(dir_.path(), layout_, 2);
  const std::vector<Streamer*> streamers = {&a, &b, &c};
  Connect(streamers);
  std::map<int, std::uint32_t> first;
  for (std::uint64_t row = 0; row < 6; ++row) {
    for (std::size_t h = 0; h < streamers.size(); ++h)
      streamers[h]->Publish(static_cast<int>(10 * h));
    (void)inference_->DoWork();  // two of the three
    (void)inference_->DoWork();  // the third; the next round begins with another one
    for (Streamer* streamer : streamers) ASSERT_EQ(streamer->Take(row), AnswerResult::kAnswer);
    if (row == 0) first = policy_->lane_of_byte;
    EXPECT_EQ(policy_->lane_of_byte, first) << "row " << row;
  }
  std::vector<std::uint32_t> ids;
  for (const auto& [byte, id] : first) ids.push_back(id);
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
}

// As many ids as a recurrent policy keeps states for: those of all shards.
TEST_F(InferenceAgentTest, LanesOfANewStreamTakeTheIdsOfOneThatEndedJustBefore) {
  auto gone = std::make_unique<Streamer>(dir_.path(), layout_, 0);
  Streamer stays(dir_.path(), layout_, 1), comes(dir_.path(), layout_, 2);
  Connect({gone.get(), &stays});
  gone.reset();
  Cycle(3);
  List({{stays.path(), 1}, {comes.path(), 0}});
  Cycle(2);
  (void)inference_->DoWork();  // learns of the end and of the new stream at once
  ASSERT_EQ(comes.end->Look(0), AnswererState::kReset);
  (void)inference_->DoWork();
  comes.Publish(20, kIsFirst);
  EXPECT_EQ(inference_->DoWork(), 1);
  EXPECT_THAT(policy_->lane_of_byte,
              ::testing::UnorderedElementsAre(::testing::Pair(20, 0), ::testing::Pair(21, 1)));
}

TEST_F(InferenceAgentTest, UnansweredRowsDoNotReachTheReplay) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  streamer.Publish(1);
  Cycle();
  EXPECT_EQ(RowsIn(0), 0U);
  (void)inference_->DoWork();
  Cycle(1);
  EXPECT_EQ(RowsIn(0), 1U);
}

TEST_F(InferenceAgentTest, NothingIsDecidedBeforeThereAreWeights) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  weights_there_ = false;
  streamer.Publish(1);
  EXPECT_EQ(inference_->DoWork(), 0);
  EXPECT_EQ(streamer.Take(0), AnswerResult::kTimeout);
  weights_there_ = true;
  EXPECT_EQ(inference_->DoWork(), 1);
  EXPECT_EQ(streamer.Take(0), AnswerResult::kAnswer);
}

TEST_F(InferenceAgentTest, LastRowsCarryNoAction) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  streamer.Publish(1, kIsLast | kTerminated);
  (void)inference_->DoWork();
  ASSERT_EQ(streamer.Take(0), AnswerResult::kAnswer);
  EXPECT_EQ(streamer.actions[0], 0);
}

TEST_F(InferenceAgentTest, PolicyThatFailsCutsTheRowsLanesAndSaysSo) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  policy_->fail = true;
  streamer.Publish(1);
  (void)inference_->DoWork();
  EXPECT_EQ(streamer.Take(0), AnswerResult::kNotFinite);
  EXPECT_EQ(inference_->counters().not_finite.load(), 1U);
  RingConsumer ring =
      RingConsumer::Attach(streamer.path(), layout_.Hash(), {}, RegionKind::kStream);
  const RingPeek peek = ring.Peek();
  ASSERT_EQ(peek.status, RingStatus::kOk);
  EXPECT_EQ(std::to_integer<int>(peek.records[layout_.flags]), kIsLast | kTruncated);
  Cycle(1);
  EXPECT_EQ(RowsIn(0), 1U);
}

TEST_F(InferenceAgentTest, RowThatNoPolicyCanDecideEndsItsStreamAloneAndTheBatchGoesOn) {
  Streamer good(dir_.path(), layout_, 0), bad(dir_.path(), layout_, 1),
      other(dir_.path(), layout_, 2);
  Connect({&good, &bad, &other});
  for (Streamer* streamer : {&good, &other}) streamer->Publish(1, kIsFirst);
  bad.Publish(1, kIsFirst, 0xFF);
  // The bad one may have its turn in either cycle.
  EXPECT_EQ(inference_->DoWork() + inference_->DoWork(), 2);
  EXPECT_EQ(policy_->calls, (std::vector<int>{4}));
  for (Streamer* streamer : {&good, &other}) EXPECT_EQ(streamer->Take(0), AnswerResult::kAnswer);
  EXPECT_EQ(bad.Take(0), AnswerResult::kTimeout);
  EXPECT_EQ(inference_->counters().not_finite.load(), 0U);
  Cycle(2);
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].path, bad.path());
  EXPECT_THAT(board_.Ended()[0].reason, ::testing::HasSubstr("row 0: a record is not finite"));
  EXPECT_EQ(RowsIn(0) + RowsIn(2), 2U);
  for (Streamer* streamer : {&good, &other}) streamer->Publish(2);
  EXPECT_EQ(inference_->DoWork(), 2);
  for (Streamer* streamer : {&good, &other}) EXPECT_EQ(streamer->Take(1), AnswerResult::kAnswer);
}

TEST_F(InferenceAgentTest, RestartedLearnerCountsQueuedRowsLostAndGoesOn) {
  Streamer streamer(dir_.path(), layout_, 0);
  Connect({&streamer});
  streamer.Publish(1, kIsFirst);
  (void)inference_->DoWork();
  ASSERT_EQ(streamer.Take(0), AnswerResult::kAnswer);
  streamer.Publish(2);  // for a learner that dies now; row 0 was not ingested either
  RestartLearner();
  Connect({&streamer});
  streamer.Publish(1, kIsFirst);
  (void)inference_->DoWork();
  ASSERT_EQ(streamer.Take(2), AnswerResult::kAnswer);
  Cycle(3);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 2U);
  EXPECT_EQ(RowsIn(0), 1U);
}

TEST_F(InferenceAgentTest, DeadWorkersLastRowIsStillAnsweredAndTheRingEnds) {
  auto streamer = std::make_unique<Streamer>(dir_.path(), layout_, 0);
  Connect({streamer.get()});
  streamer->Publish(1, kIsFirst);
  const std::string path = streamer->path();
  streamer.reset();  // drops the flock, as a kill does
  Cycle(3);          // ingest sees the death and waits for the answer
  EXPECT_EQ(RowsIn(0), 0U);
  (void)inference_->DoWork();
  Cycle();
  EXPECT_EQ(RowsIn(0), 1U);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 0U);
  EXPECT_FALSE(std::filesystem::exists(path));
  (void)inference_->DoWork();
  EXPECT_EQ(inference_->counters().streams.load(), 0U);
}

TEST_F(InferenceAgentTest, RowsOfADeadWorkerThatNobodyAnswersAreCountedLost) {
  auto streamer = std::make_unique<Streamer>(dir_.path(), layout_, 0);
  Connect({streamer.get()});
  for (int i = 0; i < 3; ++i) streamer->Publish(1);
  streamer.reset();
  Cycle(40);  // 60 ms each: beyond the time given for last answers
  EXPECT_EQ(agent_->counters().rows_lost.load(), 3U);
  EXPECT_EQ(board_.Ended().size(), 1U);
}

// Its streamer has published nothing: it waits for a kernel that will never come.
TEST_F(InferenceAgentTest, StreamOfAnotherVersionIsQuarantined) {
  Streamer streamer(dir_.path(), layout_, 0);
  auto* block =
      reinterpret_cast<StreamBlock*>(streamer.obs->region()->payload() + streamer.stream.block);
  block->version = 9;
  List({{streamer.path(), 0}});
  Cycle(2);
  EXPECT_EQ(inference_->DoWork(), 0);
  Cycle(2);
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kQuarantined);
  EXPECT_THAT(board_.Ended()[0].reason, ::testing::HasSubstr("version"));
}

TEST_F(InferenceAgentTest, WantOfOpenFilesIsWaitedFor) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  Streamer streamer(dir_.path(), layout_, 0);
  List({{streamer.path(), 0}});
  Cycle(2);
  {
    const testing::NoOpenFiles none;
    for (int second = 0; second < 30; ++second) {
      (void)inference_->DoWork();
      clock_.AdvanceMs(1000);
    }
  }
  EXPECT_EQ(inference_->counters().streams.load(), 0U);
  (void)inference_->DoWork();
  EXPECT_EQ(inference_->counters().streams.load(), 1U);
  Cycle(2);
  EXPECT_TRUE(board_.Ended().empty());
}

TEST_F(InferenceAgentTest, HostThatTakesNoAnswersIsLeftAloneUntilItDoes) {
  Streamer stuck(dir_.path(), layout_, 0), good(dir_.path(), layout_, 1);
  Connect({&stuck, &good});
  // More rows than it may have outstanding: as many answers as fit, then silence.
  for (int i = 0; i < 16; ++i) stuck.Publish(1);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(inference_->DoWork(), 1);
  Cycle();
  stuck.Publish(1);
  const int calls = static_cast<int>(policy_->calls.size());
  for (int i = 0; i < 50; ++i) (void)inference_->DoWork();
  EXPECT_EQ(static_cast<int>(policy_->calls.size()), calls) << "decided again and again";
  good.Publish(1);
  EXPECT_EQ(inference_->DoWork(), 1);
  EXPECT_EQ(good.Take(0), AnswerResult::kAnswer);
  ASSERT_EQ(stuck.Take(0), AnswerResult::kAnswer);
  EXPECT_EQ(inference_->DoWork(), 1);
}

TEST_F(InferenceAgentTest, CorruptCursorIsQuarantinedAndOtherStreamsGoOn) {
  Streamer bad(dir_.path(), layout_, 0), good(dir_.path(), layout_, 1);
  Connect({&bad, &good});
  reinterpret_cast<RingBlock*>(bad.obs->region()->payload())->head.store(1000);
  good.Publish(1);
  EXPECT_EQ(inference_->DoWork(), 1);
  EXPECT_EQ(good.Take(0), AnswerResult::kAnswer);
  Cycle(2);
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(RowsIn(1), 1U);
}

}  // namespace
}  // namespace tetrion::learner
