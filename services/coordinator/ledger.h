#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "services/coordinator/bits256.h"

namespace tetrion::coordinator {

// A granted range of kRangeTokens tokens: what the ledger remembers and the store keeps.
struct LedgerRange {
  std::uint64_t first_id = 0;
  std::uint32_t attempt = 0;  // 1 at the first grant, +1 whenever the range becomes free again
  std::uint64_t session = 0;  // owner; 0: free again
  std::uint64_t grant = 0;    // request number of the owner's grant
  Bits256 done;
  Bits256 abandoned;  // given back by the owner; free once nothing of the range is outstanding
  bool operator==(const LedgerRange&) const = default;
};

// Exact counts over the life of the run. At all times issued = done + Outstanding() + free_again.
struct LedgerCounts {
  std::uint64_t issued = 0;      // distinct tokens ever granted
  std::uint64_t done = 0;        // tokens accounted
  std::uint64_t free_again = 0;  // abandoned, or their session ended
  std::uint64_t duplicates = 0;  // reports of done tokens
  std::uint64_t refused = 0;     // reports of tokens that session and attempt do not hold
  std::uint64_t abandoned = 0;   // events: tokens given back by their owner
  std::uint64_t freed = 0;       // events: tokens freed because their session ended
  std::uint64_t Outstanding() const { return issued - done - free_again; }
  bool operator==(const LedgerCounts&) const = default;
};

// How the episodes of one report came out.
struct ReportTally {
  std::uint32_t accepted = 0;
  std::uint32_t duplicates = 0;  // their token is done
  std::uint32_t refused = 0;     // session and attempt do not hold their token
  bool operator==(const ReportTally&) const = default;
};

// A part of a range as its holder names it.
struct ClaimedTokens {
  static ClaimedTokens From(const wire::HeldRange& range) {
    return {range.first_id, range.attempt, Bits256::From(range.held)};
  }

  std::uint64_t first_id = 0;
  std::uint32_t attempt = 0;
  Bits256 tokens;
};

// Which token is whose: execution is at least once, accounting exactly once. Pure: no clock, no
// input or output, one thread. Invariants:
//   1. Token ids are issued in order, kRangeTokens at a time, and never anew.
//   2. A token is done, outstanding (its range has an owner and it is not abandoned) or free again.
//   3. done never goes back; attempt never goes down.
//   4. A free range is granted again, whole, lowest first, before a new range is issued.
//   5. A range whose tokens are all done is forgotten: its tokens are known to be done because
//      they lie below next_id and no open range holds them. Memory follows the open ranges.
// Sessions are numbers; the caller has checked that they are alive.
class Ledger {
 public:
  Ledger() = default;
  // From the store: every range not all done, the next new id and the counts. The caller has
  // checked that the ranges lie on the grid below next_id.
  Ledger(std::span<const LedgerRange> open_ranges, std::uint64_t next_id,
         const LedgerCounts& counts);
  // From the store: the newest request number of a session, whose ranges may be all done since.
  void RestoreRequest(std::uint64_t session, std::uint64_t request);

  // Gives `session` up to `ranges` ranges under its request number `request`. A repeated number
  // gives what it gave before (without ranges all done since); an older one gives nothing.
  std::vector<LedgerRange> Grant(std::uint64_t session, std::uint64_t request,
                                 std::uint32_t ranges);
  // Settles the tokens of `episodes` one after the other. Afterwards `episodes` holds only the
  // accepted ones, in their order. Episodes of one range and attempt that follow each other cost
  // little more than one.
  ReportTally Report(std::uint64_t session, std::vector<wire::EpisodeReport>& episodes);
  // Returns how many tokens became free; those not held (or done) are ignored, so repeating is
  // safe.
  std::uint32_t Abandon(std::uint64_t session, const ClaimedTokens& tokens);
  // Frees whatever the session holds. Returns how many tokens that were.
  std::uint64_t EndSession(std::uint64_t session);
  // A session that comes back names what it holds of the ranges with first_id < `held_below`; the
  // rest of its tokens there becomes free. A grant it never received is freed as a whole, and its
  // request number may be used anew.
  std::uint64_t ReRegister(std::uint64_t session, std::span<const ClaimedTokens> held,
                           std::uint64_t held_below);

  const LedgerCounts& counts() const { return counts_; }
  std::uint64_t next_id() const { return next_id_; }
  std::size_t open_ranges() const { return ranges_.size(); }
  // Whether the next Grant can be met without issuing new ids.
  std::size_t free_ranges() const { return free_.size(); }
  std::uint64_t last_request(std::uint64_t session) const;
  // Tokens that the session holds.
  std::uint64_t outstanding(std::uint64_t session) const;

  // Ranges changed since the last call, in their present state: what the store must write together
  // with the counts.
  std::vector<LedgerRange> TakeDirty();
  // Counts done, outstanding and free tokens one by one and compares with counts() and with what
  // each session holds: O(open ranges).
  bool Consistent() const;

 private:
  struct Owner {
    std::uint64_t last_request = 0;
    std::uint64_t outstanding = 0;   // tokens
    std::set<std::uint64_t> ranges;  // first ids
  };

  // Report, for episodes of one range and attempt. Copies those that are accepted to `accepted`,
  // which may be where `run` begins or before; returns its end.
  wire::EpisodeReport* ReportRun(std::uint64_t session, std::span<const wire::EpisodeReport> run,
                                 wire::EpisodeReport* accepted, ReportTally& tally);
  // Marks tokens of an owned range as given back and frees the range when nothing is outstanding.
  std::uint32_t GiveBack(LedgerRange& range, const Bits256& tokens);
  // Called after every change of a range's bits: once nothing is outstanding, forgets it or puts it
  // on the free list; else only marks it changed.
  void Settle(LedgerRange& range);
  static std::uint32_t OutstandingOf(const LedgerRange& range);
  void Touch(const LedgerRange& range) { dirty_[range.first_id] = range; }

  std::unordered_map<std::uint64_t, LedgerRange> ranges_;  // open ones, by first id
  std::unordered_map<std::uint64_t, Owner> owners_;
  std::set<std::uint64_t> free_;  // first ids of ranges without an owner
  std::unordered_map<std::uint64_t, LedgerRange> dirty_;
  std::uint64_t next_id_ = 0;
  LedgerCounts counts_;
};

}  // namespace tetrion::coordinator
