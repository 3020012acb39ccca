#include "services/coordinator/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lib/core/philox.h"

namespace tetrion::coordinator {
namespace {

using wire::kRangeTokens;

Bits256 AllBits() {
  return ~Bits256{};
}

Bits256 BitRange(std::uint32_t first, std::uint32_t last) {
  Bits256 bits;
  for (std::uint32_t i = first; i < last; ++i) bits.Set(i);
  return bits;
}

enum class ReportOutcome { kAccepted, kDuplicate, kRefused };

ReportOutcome Report(Ledger& ledger, std::uint64_t session, std::uint64_t token_id,
                     std::uint32_t attempt) {
  std::vector<wire::EpisodeReport> episodes = {{.token_id = token_id, .attempt = attempt}};
  const ReportTally tally = ledger.Report(session, episodes);
  EXPECT_EQ(tally.accepted + tally.duplicates + tally.refused, 1U);
  EXPECT_EQ(tally.accepted, episodes.size());
  if (tally.accepted > 0) return ReportOutcome::kAccepted;
  return tally.duplicates > 0 ? ReportOutcome::kDuplicate : ReportOutcome::kRefused;
}

std::vector<LedgerRange> SortedDirty(Ledger& ledger) {
  std::vector<LedgerRange> dirty = ledger.TakeDirty();
  std::sort(dirty.begin(), dirty.end(),
            [](const LedgerRange& a, const LedgerRange& b) { return a.first_id < b.first_id; });
  return dirty;
}

void ReportAll(Ledger& ledger, std::uint64_t session, const LedgerRange& range) {
  for (std::uint32_t i = 0; i < kRangeTokens; ++i) {
    Report(ledger, session, range.first_id + i, range.attempt);
  }
}

TEST(LedgerTest, RangesAreIssuedInOrderAndNeverTwice) {
  Ledger ledger;
  const auto first = ledger.Grant(1, 1, 2);
  const auto second = ledger.Grant(2, 1, 1);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].first_id, 0U);
  EXPECT_EQ(first[1].first_id, 256U);
  EXPECT_EQ(second[0].first_id, 512U);
  EXPECT_EQ(first[0].attempt, 1U);
  EXPECT_EQ(ledger.counts().issued, 768U);
  EXPECT_EQ(ledger.counts().Outstanding(), 768U);
}

TEST(LedgerTest, RepeatedRequestReturnsTheSameGrant) {
  Ledger ledger;
  const auto first = ledger.Grant(1, 1, 3);
  EXPECT_EQ(ledger.Grant(1, 1, 3), first);
  EXPECT_EQ(ledger.Grant(1, 1, 64), first);
  EXPECT_EQ(ledger.counts().issued, 768U);
}

TEST(LedgerTest, OlderRequestGivesNothing) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  ledger.Grant(1, 2, 1);
  EXPECT_TRUE(ledger.Grant(1, 1, 1).empty());
  EXPECT_EQ(ledger.counts().issued, 512U);
}

TEST(LedgerTest, TokenCountsOnceHoweverOftenReported) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  EXPECT_EQ(Report(ledger, 1, 7, 1), ReportOutcome::kAccepted);
  EXPECT_EQ(Report(ledger, 1, 7, 1), ReportOutcome::kDuplicate);
  EXPECT_EQ(ledger.counts().done, 1U);
  EXPECT_EQ(ledger.counts().duplicates, 1U);
}

TEST(LedgerTest, TokenOfARangeAllDoneIsStillADuplicate) {
  Ledger ledger;
  ReportAll(ledger, 1, ledger.Grant(1, 1, 1)[0]);
  EXPECT_EQ(ledger.open_ranges(), 0U);
  EXPECT_EQ(Report(ledger, 1, 255, 1), ReportOutcome::kDuplicate);
  EXPECT_EQ(Report(ledger, 9, 0, 4), ReportOutcome::kDuplicate);
}

TEST(LedgerTest, TokenNeverIssuedIsRefused) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  EXPECT_EQ(Report(ledger, 1, 256, 1), ReportOutcome::kRefused);
  EXPECT_EQ(Report(ledger, 1, ~std::uint64_t{0}, 1), ReportOutcome::kRefused);
  EXPECT_EQ(ledger.counts().done, 0U);
}

TEST(LedgerTest, OlderAttemptIsRefusedByNumber) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  ledger.EndSession(1);
  const auto again = ledger.Grant(1, 1, 1);  // even if the number came back
  EXPECT_EQ(again[0].attempt, 2U);
  EXPECT_EQ(Report(ledger, 1, 3, 1), ReportOutcome::kRefused);
  EXPECT_EQ(Report(ledger, 1, 3, 2), ReportOutcome::kAccepted);
}

TEST(LedgerTest, FreedRangeComesBackWholeWithItsDoneBitmapBeforeNewIds) {
  Ledger ledger;
  ledger.Grant(1, 1, 2);
  Report(ledger, 1, 5, 1);
  EXPECT_EQ(ledger.EndSession(1), 511U);
  EXPECT_EQ(ledger.counts().free_again, 511U);
  const auto granted = ledger.Grant(2, 1, 3);
  ASSERT_EQ(granted.size(), 3U);
  EXPECT_EQ(granted[0].first_id, 0U);
  EXPECT_EQ(granted[0].done, BitRange(5, 6));
  EXPECT_EQ(granted[0].attempt, 2U);
  EXPECT_EQ(granted[1].first_id, 256U);
  EXPECT_EQ(granted[2].first_id, 512U);
  EXPECT_EQ(granted[2].attempt, 1U);
  EXPECT_EQ(ledger.counts().free_again, 0U);
  EXPECT_TRUE(ledger.Consistent());
}

TEST(LedgerTest, AbandonedTokensWaitForTheRestOfTheirRange) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  EXPECT_EQ(ledger.Abandon(1, {0, 1, BitRange(10, 20)}), 10U);
  EXPECT_EQ(ledger.Abandon(1, {0, 1, BitRange(10, 20)}), 0U);
  EXPECT_EQ(ledger.free_ranges(), 0U);
  EXPECT_EQ(ledger.counts().free_again, 10U);
  EXPECT_EQ(ledger.outstanding(1), 246U);
  EXPECT_EQ(Report(ledger, 1, 10, 1), ReportOutcome::kRefused);
  for (std::uint32_t i = 0; i < kRangeTokens; ++i) {
    if (i >= 10 && i < 20) continue;
    EXPECT_EQ(Report(ledger, 1, i, 1), ReportOutcome::kAccepted);
  }
  EXPECT_EQ(ledger.free_ranges(), 1U);
  EXPECT_EQ(ledger.Grant(2, 1, 1)[0].done, ~BitRange(10, 20));
  EXPECT_EQ(ledger.counts().Outstanding(), 10U);
}

TEST(LedgerTest, AbandoningAsAnotherSessionOrAttemptChangesNothing) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  EXPECT_EQ(ledger.Abandon(2, {0, 1, AllBits()}), 0U);
  EXPECT_EQ(ledger.Abandon(1, {0, 2, AllBits()}), 0U);
  EXPECT_EQ(ledger.Abandon(1, {77, 1, AllBits()}), 0U);
  EXPECT_EQ(ledger.counts().Outstanding(), 256U);
}

constexpr std::uint64_t kAllIds = ~std::uint64_t{0};

TEST(LedgerTest, ReRegistrationSaysNothingOfRangesBeyondTheList) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  ledger.Grant(1, 2, 2);
  const ClaimedTokens held{0, 1, BitRange(0, 100)};
  EXPECT_EQ(ledger.ReRegister(1, std::span(&held, 1), /*held_below=*/256), 156U);
  EXPECT_EQ(ledger.outstanding(1), 100U + 512U);
  EXPECT_EQ(ledger.last_request(1), 2U);
  EXPECT_TRUE(ledger.Consistent());
}

TEST(LedgerTest, ReRegistrationFreesTokensHeldOfAnotherAttempt) {
  Ledger ledger;
  ledger.Grant(1, 1, 1);
  ledger.Abandon(1, {0, 1, AllBits()});
  ledger.Grant(1, 2, 1);  // attempt 2
  const ClaimedTokens stale{0, 1, AllBits()};
  EXPECT_EQ(ledger.ReRegister(1, std::span(&stale, 1), kAllIds), 256U);
  EXPECT_EQ(ledger.counts().Outstanding(), 0U);
  EXPECT_EQ(Report(ledger, 1, 5, 2), ReportOutcome::kRefused);
}

TEST(LedgerTest, RequestNumberOfASessionSurvivesTheStoreWithoutItsRanges) {
  Ledger ledger({}, 512, {.issued = 512, .done = 512});
  ledger.RestoreRequest(1, 2);
  EXPECT_EQ(ledger.last_request(1), 2U);
  EXPECT_TRUE(ledger.Grant(1, 2, 1).empty());
  EXPECT_EQ(ledger.Grant(1, 3, 1).size(), 1U);
}

TEST(LedgerTest, ReRegistrationKeepsWhatIsHeldAndFreesTheRest) {
  Ledger ledger;
  ledger.Grant(1, 1, 2);
  const ClaimedTokens held{0, 1, BitRange(0, 100)};
  EXPECT_EQ(ledger.ReRegister(1, std::span(&held, 1), kAllIds), 156U + 256U);
  EXPECT_EQ(ledger.counts().Outstanding(), 100U);
  EXPECT_EQ(Report(ledger, 1, 99, 1), ReportOutcome::kAccepted);
  EXPECT_EQ(Report(ledger, 1, 100, 1), ReportOutcome::kRefused);
  EXPECT_EQ(ledger.Grant(2, 1, 1)[0].first_id, 256U);
}

TEST(LedgerTest, GrantThatNeverArrivedMayBeAskedForAgainByItsNumber) {
  Ledger ledger;
  const ClaimedTokens held{0, 1, AllBits()};
  ledger.Grant(1, 1, 1);
  ledger.Grant(1, 2, 1);  // committed, then the coordinator died before it was sent
  ledger.ReRegister(1, std::span(&held, 1), kAllIds);
  const auto again = ledger.Grant(1, 2, 1);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].first_id, 256U);
  EXPECT_EQ(again[0].attempt, 2U);
  EXPECT_EQ(ledger.Grant(1, 2, 1), again);
}

TEST(LedgerTest, DirtyRangesAreEveryChangeOnce) {
  Ledger ledger;
  ledger.Grant(1, 1, 2);
  EXPECT_EQ(ledger.TakeDirty().size(), 2U);
  EXPECT_TRUE(ledger.TakeDirty().empty());
  ReportAll(ledger, 1, {.first_id = 0, .attempt = 1});
  const auto dirty = ledger.TakeDirty();
  ASSERT_EQ(dirty.size(), 1U);
  EXPECT_TRUE(dirty[0].done.All());
}

// The account as plainly as it can be said: a map of tokens, each with its state.
class Model {
 public:
  struct Token {
    bool done = false;
    std::uint64_t session = 0;  // 0: free
    std::uint32_t attempt = 1;
  };

  void Grant(std::uint64_t session, const LedgerRange& range) {
    for (std::uint32_t i = 0; i < kRangeTokens; ++i) {
      Token& token = tokens_[range.first_id + i];
      if (token.done) continue;
      EXPECT_EQ(token.session, 0U) << "granted while another session holds it";
      token = {false, session, range.attempt};
      ++outstanding_;
    }
  }
  ReportOutcome Report(std::uint64_t session, std::uint64_t id, std::uint32_t attempt) {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return ReportOutcome::kRefused;
    Token& token = found->second;
    if (token.done) return ReportOutcome::kDuplicate;
    if (token.session != session || token.attempt != attempt) return ReportOutcome::kRefused;
    token.done = true;
    ++done_;
    --outstanding_;
    return ReportOutcome::kAccepted;
  }
  void Free(std::uint64_t session, std::uint64_t id, std::uint32_t attempt) {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return;
    Token& token = found->second;
    if (token.done || token.session != session || token.attempt != attempt) return;
    token.session = 0;
    --outstanding_;
  }
  void End(std::uint64_t session) {
    for (auto& [id, token] : tokens_) {
      if (token.done || token.session != session) continue;
      token.session = 0;
      --outstanding_;
    }
  }
  std::uint64_t issued() const { return tokens_.size(); }
  std::uint64_t done() const { return done_; }
  std::uint64_t outstanding() const { return outstanding_; }

 private:
  std::map<std::uint64_t, Token> tokens_;
  std::uint64_t done_ = 0, outstanding_ = 0;
};

// A message on its way; the network repeats, delays and reorders.
struct Message {
  enum class Kind { kReport, kAbandon, kGrant, kEnd } kind = Kind::kReport;
  std::uint64_t session = 0, id = 0, request = 0;
  std::uint32_t attempt = 0;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : seed_(seed) {}

  void Run(int messages) {
    for (int i = 0; i < messages; ++i) {
      if (in_flight_.size() < 64) Say();
      Deliver(Pick(in_flight_.size()));
      ASSERT_EQ(ledger_.counts().issued, model_.issued());
      ASSERT_EQ(ledger_.counts().done, model_.done());
      ASSERT_EQ(ledger_.counts().Outstanding(), model_.outstanding());
      ASSERT_EQ(ledger_.counts().free_again,
                model_.issued() - model_.done() - model_.outstanding());
      ASSERT_TRUE(i % 64 != 0 || ledger_.Consistent()) << "after message " << i;
    }
    EXPECT_GT(ledger_.counts().duplicates, 0U);
    EXPECT_GT(ledger_.counts().refused, 0U);
    EXPECT_GT(ledger_.counts().freed, 0U);
    EXPECT_GT(ledger_.counts().abandoned, 0U);
  }

 private:
  std::uint32_t Draw(std::uint32_t bound) {
    return BoundedDraw(PhiloxDraw(seed_, draws_++, 0, PhiloxPurpose::kSampler).word[0], bound);
  }
  std::size_t Pick(std::size_t size) { return Draw(static_cast<std::uint32_t>(size)); }

  // Some member says something: mostly reports of what it holds, at times what it held long ago.
  void Say() {
    const std::uint32_t what = Draw(1000);
    Message message{Message::Kind::kGrant, sessions_[Pick(sessions_.size())], 0, 0, 0};
    if (what < 3) message.kind = Message::Kind::kEnd;
    if (what >= 20 && !held_.empty()) {
      const LedgerRange& range = held_[Pick(held_.size())];
      message.kind = what < 60 ? Message::Kind::kAbandon : Message::Kind::kReport;
      message.session = Draw(50) == 0 ? message.session : range.session;
      message.attempt = range.attempt;
      message.id = range.first_id + Draw(kRangeTokens);
    }
    // A repeated number at times; the other numbers grow.
    if (message.kind == Message::Kind::kGrant) {
      if (Draw(4) != 0) ++requests_[message.session];
      message.request = requests_[message.session];
      if (message.request == 0) return;
    }
    in_flight_.push_back(message);
  }

  void Deliver(std::size_t at) {
    if (in_flight_.empty()) return;
    const Message m = in_flight_[at];
    if (Draw(10) >= 3) {  // else it is delivered again later
      in_flight_[at] = in_flight_.back();
      in_flight_.pop_back();
    }
    switch (m.kind) {
      case Message::Kind::kGrant:
        Grant(m);
        break;
      case Message::Kind::kReport:
        ASSERT_EQ(Report(ledger_, m.session, m.id, m.attempt),
                  model_.Report(m.session, m.id, m.attempt));
        break;
      case Message::Kind::kAbandon: {
        Bits256 bits;
        bits.Set(static_cast<std::uint32_t>(m.id % kRangeTokens));
        ledger_.Abandon(m.session, {m.id - m.id % kRangeTokens, m.attempt, bits});
        model_.Free(m.session, m.id, m.attempt);
        break;
      }
      case Message::Kind::kEnd:
        End(m.session);
        break;
    }
  }

  void Grant(const Message& m) {
    bool alive = false;
    for (const std::uint64_t session : sessions_) alive = alive || session == m.session;
    if (!alive) return;  // fenced: the table in front of the ledger sees to that
    const std::uint64_t before = ledger_.last_request(m.session);
    const auto granted = ledger_.Grant(m.session, m.request, 1 + Draw(2));
    if (m.request <= before) return;
    for (const LedgerRange& range : granted) {
      model_.Grant(m.session, range);
      held_.push_back(range);
      if (held_.size() > 64) held_.erase(held_.begin());
    }
  }

  void End(std::uint64_t session) {
    for (std::uint64_t& number : sessions_) {
      if (number != session) continue;
      ledger_.EndSession(session);
      model_.End(session);
      number = next_session_++;  // the process registers anew
    }
  }

  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  Ledger ledger_;
  Model model_;
  std::vector<std::uint64_t> sessions_ = {1, 2, 3, 4};
  std::uint64_t next_session_ = 5;
  std::map<std::uint64_t, std::uint64_t> requests_;
  std::vector<LedgerRange> held_;
  std::vector<Message> in_flight_;
};

TEST(LedgerTest, AgreesWithAPlainModelUnderRepeatedLateAndReorderedMessages) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(seed);
    Simulation(seed).Run(250'000);
    if (HasFatalFailure()) return;
  }
}

// What members say of the account in the test below: mostly of ranges that exist, in runs.
class Reporters {
 public:
  explicit Reporters(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t Draw(std::uint32_t bound) {
    return BoundedDraw(PhiloxDraw(seed_, draws_++, 0, PhiloxPurpose::kSampler).word[0], bound);
  }
  // Runs of tokens in and out of order, some twice, some never issued, of attempts old and new.
  std::vector<wire::EpisodeReport> Batch() {
    std::vector<wire::EpisodeReport> batch;
    for (std::uint32_t run = Draw(5); run > 0; --run) {
      const std::uint64_t first_id = std::uint64_t{Draw(8)} * kRangeTokens;
      const std::uint32_t attempt = 1 + Draw(4) / 2;
      std::uint32_t token = Draw(kRangeTokens);
      for (std::uint32_t length = Draw(300); length > 0; --length) {
        batch.push_back({.token_id = first_id + token, .attempt = attempt, .lines = number_++});
        token = (Draw(8) == 0 ? Draw(kRangeTokens) : token + 1) % kRangeTokens;
      }
    }
    return batch;
  }

 private:
  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::uint32_t number_ = 0;
};

TEST(LedgerTest, BatchSettlesAsItsEpisodesOneByOne) {
  ReportTally all;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Reporters draw(seed);
    Ledger batches, singles;
    for (int step = 0; step < 20; ++step) {
      const std::uint64_t session = 1 + draw.Draw(2);
      const std::uint64_t request = batches.last_request(session) + 1;
      const std::uint64_t first_id = std::uint64_t{draw.Draw(6)} * kRangeTokens;
      const std::uint32_t what = draw.Draw(8);
      const ClaimedTokens given_back = {first_id, 1, BitRange(draw.Draw(100), 150)};
      for (Ledger* ledger : {&batches, &singles}) {
        if (what < 2 || step == 0) ledger->Grant(session, request, 2);
        if (what == 2) ledger->Abandon(session, given_back);
        if (what == 3 && step % 3 == 0) ledger->EndSession(session);
      }
      std::vector<wire::EpisodeReport> batch = draw.Batch(), accepted;
      ReportTally tally;
      for (const wire::EpisodeReport& episode : batch) {
        std::vector<wire::EpisodeReport> one = {episode};
        const ReportTally outcome = singles.Report(session, one);
        tally.accepted += outcome.accepted;
        tally.duplicates += outcome.duplicates;
        tally.refused += outcome.refused;
        accepted.insert(accepted.end(), one.begin(), one.end());
      }
      ASSERT_EQ(batches.Report(session, batch), tally);
      ASSERT_EQ(batch.size(), accepted.size());
      for (std::size_t i = 0; i < batch.size(); ++i) ASSERT_EQ(batch[i].lines, accepted[i].lines);
      ASSERT_EQ(batches.counts(), singles.counts());
      ASSERT_EQ(SortedDirty(batches), SortedDirty(singles));
      ASSERT_EQ(batches.outstanding(session), singles.outstanding(session));
      ASSERT_TRUE(batches.Consistent() && singles.Consistent());
      all.accepted += tally.accepted;
      all.duplicates += tally.duplicates;
      all.refused += tally.refused;
    }
  }
  EXPECT_GT(all.accepted, 10'000U);
  EXPECT_GT(all.duplicates, 10'000U);
  EXPECT_GT(all.refused, 10'000U);
}

}  // namespace
}  // namespace tetrion::coordinator
