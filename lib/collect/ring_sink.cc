#include "lib/collect/ring_sink.h"

#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {

RingSink::RingSink(const RowLayout& layout, RingProducer producer, int commit_stride,
                   RowArrival arrival)
    : layout_(layout),
      commit_stride_(static_cast<std::uint64_t>(commit_stride)),
      arrival_(arrival),
      producer_(std::move(producer)) {
  TETRION_CHECK(producer_.stride_bytes() == layout_.row_bytes, "a ring record is one row");
}

ClaimResult RingSink::Claim(RowView& row, std::int64_t timeout_ns) {
  TETRION_CHECK(!loan_, "one row at a time");
  RingProducer::Loan loan = producer_.Claim();
  if (!loan.ok() && timeout_ns > 0 && producer_.WaitForSpace(timeout_ns) == SpaceResult::kSpace) {
    loan_.emplace(producer_.Claim());
  } else if (loan.ok()) {
    loan_.emplace(std::move(loan));
  }
  if (producer_.corrupt()) {
    throw Error(
        ExitCode::kTryAgain,
        "the learner's cursor in this worker's ring is impossible: something wrote into the "
        "shared region; restart this actor");
  }
  if (!loan_ || !loan_->ok()) {
    loan_.reset();
    return ClaimResult::kFull;
  }
  row = RowView(layout_, loan_->record());
  return ClaimResult::kRow;
}

void RingSink::Complete() {
  TETRION_CHECK(loan_.has_value(), "claim a row before completing it");
  loan_->Complete();
  loan_.reset();
  if (producer_.completed() % commit_stride_ == 0) producer_.Publish();
}

}  // namespace tetrion
