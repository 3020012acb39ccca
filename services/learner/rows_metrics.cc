#include "services/learner/rows_metrics.h"

#include "services/common/service_host.h"

namespace tetrion::learner {
namespace {

void Raise(HotCounter& counter, const std::atomic<std::uint64_t>& total) {
  counter.RaiseTo(static_cast<double>(total.load(std::memory_order_relaxed)));
}

}  // namespace

RowsMetrics::RowsMetrics(MetricsRegistry& r)
    : link_(r, "remote_actors", LinkRecorders::End::kListens),
      handshakes_(r, "actors"),
      accepted_(r.Counter("tetrion_learner_remote_rows_total", {"accepted"})),
      duplicate_(r.Counter("tetrion_learner_remote_rows_total", {"duplicate"})),
      gap_(r.Counter("tetrion_learner_remote_rows_total", {"gap"})),
      beyond_(r.Counter("tetrion_learner_remote_rows_total", {"beyond_credit"})),
      bytes_(r.Counter("tetrion_learner_remote_bytes_total", {"rows"})),
      payload_bytes_(r.Counter("tetrion_learner_remote_bytes_total", {"payload"})),
      weights_bytes_(r.Counter("tetrion_learner_remote_bytes_total", {"weights"})),
      weights_refused_(r.Counter("tetrion_learner_remote_weights_refused_total", {})),
      silent_(r.Counter("tetrion_learner_remote_streams_ended_total", {"silent"})),
      broken_(r.Counter("tetrion_learner_remote_streams_ended_total", {"broken"})),
      hang_ups_(r.Counter("tetrion_learner_remote_hang_ups_total", {})),
      streams_(r.Gauge("tetrion_learner_remote_streams")) {}

void RowsMetrics::Refresh(const RowsAgent& rows) {
  const RemoteCounters& counters = rows.counters();
  link_.Set(TotalsOf(rows.link_stats()));
  handshakes_.Set(rows.handshakes());
  Raise(accepted_, counters.rows);
  Raise(duplicate_, counters.duplicates);
  Raise(gap_, counters.gaps);
  Raise(beyond_, counters.beyond);
  Raise(bytes_, counters.bytes);
  Raise(payload_bytes_, counters.payload_bytes);
  weights_bytes_.RaiseTo(static_cast<double>(rows.weights_bytes()));
  weights_refused_.RaiseTo(static_cast<double>(rows.weights_refused()));
  Raise(silent_, counters.silent);
  Raise(broken_, counters.broken);
  hang_ups_.RaiseTo(static_cast<double>(rows.hang_ups()));
  streams_.Set(static_cast<double>(counters.streams.load(std::memory_order_relaxed)));
}

}  // namespace tetrion::learner
