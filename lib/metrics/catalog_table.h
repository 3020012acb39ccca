#pragma once

#include <array>

#include "lib/core/check.h"
#include "lib/metrics/catalog.h"

namespace tetrion {

// Every metric of every service, declared once: recorders, scrape text and docs/metrics.md follow.
// Names are tetrion_<component>_<what>_<unit>[_total] in base units.
inline constexpr std::array kCatalog = {
    GaugeInfo("tetrion_build_info", "", {"revision", "preset"},
              "always 1; what the binary was built from"),
    CounterInfo("tetrion_log_lines_lost_total", "lines", {},
                "log lines dropped because nothing read them or the disk was full"),
    GaugeInfo("tetrion_agent_max_cycle_seconds", "seconds", {"agent"},
              "longest cycle of an agent's thread so far, the present one and bounded waits "
              "included; grows while the thread hangs"),
    // Actor.
    CounterInfo("tetrion_actor_env_steps_total", "steps", {"worker"}, "actions taken"),
    CounterInfo("tetrion_actor_episodes_total", "episodes", {"worker"}, "episodes finished"),
    CounterInfo("tetrion_actor_rows_committed_total", "rows", {"worker"},
                "rows published into the ring"),
    CounterInfo("tetrion_actor_wait_seconds_total", "seconds", {"worker", "reason"},
                "time a worker was blocked; reason = token, ring, weights, answer"),
    GaugeInfo("tetrion_actor_policy_version", "version", {},
              "newest version of the weights in use"),
    CounterInfo("tetrion_actor_weights_refused_total", "versions", {"worker"},
                "published weights that a worker could not use: of another size, not finite, or "
                "not what their hash says"),
    HistogramInfo("tetrion_actor_policy_lag_versions", "versions", {}, kVersionsBounds,
                  "how many versions a worker's weights were behind those it takes instead; 1: it "
                  "skipped none; nothing of streamed workers"),
    HistogramInfo("tetrion_actor_inference_seconds", "seconds", {}, kSecondsBounds,
                  "policy inference of one batch of lanes, by the worker itself"),
    HistogramInfo("tetrion_actor_answer_seconds", "seconds", {}, kSecondsBounds,
                  "from a streamed row's publication to its actions; what of it the worker waits "
                  "for is counted as its wait, too"),
    HistogramInfo("tetrion_actor_env_step_seconds", "seconds", {}, kSecondsBounds,
                  "environment step of one batch of lanes"),
    // Courier of an actor with --rows tcp.
    CounterInfo("tetrion_courier_rows_total", "rows", {}, "rows sent to the learner"),
    CounterInfo("tetrion_courier_resent_rows_total", "rows", {}, "rows sent again"),
    CounterInfo("tetrion_courier_bytes_total", "bytes", {}, "rows' bytes as they travelled"),
    GaugeInfo("tetrion_courier_unacknowledged_rows", "rows", {},
              "rows written and not yet in the learner's replay"),
    CounterInfo("tetrion_courier_impossible_answers_total", "messages", {},
                "answers that this actor's rows cannot have led to"),
    CounterInfo("tetrion_courier_weights_total", "versions", {}, "versions of the weights fetched"),
    CounterInfo("tetrion_courier_weights_refused_total", "versions", {},
                "fetched versions of another size, or whose hash was wrong"),
    // Rings.
    GaugeInfo("tetrion_ring_used_rows", "rows", {"shard"},
              "published rows the consumer has not released"),
    GaugeInfo("tetrion_ring_capacity_rows", "rows", {"shard"},
              "size of the attached ring; 0: none"),
    CounterInfo("tetrion_ring_doorbells_total", "rings", {},
                "rings of the learner's bell by writers of rows that found its thread asleep"),
    // Coordinator.
    CounterInfo("tetrion_coordinator_tokens_total", "tokens", {"event"},
                "since this start, by event: tokens issued, done, abandoned, freed; reports that "
                "were duplicate or refused; fenced: messages of sessions that have ended"),
    GaugeInfo("tetrion_coordinator_tokens_outstanding", "tokens", {},
              "tokens granted and not yet done"),
    GaugeInfo("tetrion_coordinator_actors", "sessions", {}, "actor sessions alive"),
    GaugeInfo("tetrion_coordinator_leases_oldest_seconds", "seconds", {},
              "time since the longest silent session was heard"),
    CounterInfo(
        "tetrion_coordinator_sessions_ended_total", "sessions", {"reason"},
        "sessions ended; reason = goodbye, died (its region's lock is free), lease (silent for "
        "too long), refused"),
    CounterInfo("tetrion_coordinator_refused_total", "messages", {"reason"},
                "messages refused by reason; other_process: for a session of another process"),
    GaugeInfo("tetrion_coordinator_replies_waiting", "messages", {},
              "replies that wait until the store has committed what they promise"),
    GaugeInfo("tetrion_coordinator_store_queued", "changes", {},
              "changes that the store has not written yet"),
    GaugeInfo("tetrion_coordinator_store_paused", "bool", {},
              "1 while the store cannot be written (a full disk, a lock, an I/O error)"),
    GaugeInfo(
        "tetrion_coordinator_store_log_bytes", "bytes", {},
        "of the store's write-ahead log, not copied into its file yet; grows beyond 32 MiB only "
        "while another process reads the file for long"),
    CounterInfo("tetrion_coordinator_rebinds_total", "events", {},
                "times that all connections were closed because their queues took too much memory"),
    CounterInfo("tetrion_coordinator_file_errors_total", "files", {"file"},
                "failed writes of files for members and people, each tried again"),
    HistogramInfo("tetrion_coordinator_request_seconds", "seconds", {"kind"}, kSecondsBounds,
                  "handling of one message by kind"),
    HistogramInfo("tetrion_episode_return", "reward", {"env"}, kReturnBounds,
                  "return of accounted episodes"),
    GaugeInfo("tetrion_episode_return_mean", "reward", {"env"},
              "mean return of the last 100 accounted episodes"),
    HistogramInfo("tetrion_episode_length_steps", "steps", {"env"}, kStepsBounds,
                  "length of accounted episodes"),
    GaugeInfo("tetrion_episode_length_steps_mean", "steps", {"env"},
              "mean length of the last 100 accounted episodes"),
    HistogramInfo("tetrion_episode_lines", "lines", {"env"}, kLinesBounds,
                  "lines cleared in accounted episodes"),
    GaugeInfo("tetrion_episode_lines_mean", "lines", {"env"},
              "mean lines of the last 100 accounted episodes"),
    // Replay.
    GaugeInfo("tetrion_replay_rows", "rows", {"shard"}, "rows that can be sampled"),
    GaugeInfo("tetrion_replay_committed_rows", "rows", {"shard"}, "rows committed since the start"),
    GaugeInfo("tetrion_replay_capacity_rows", "rows", {"shard"}, "rows the shard holds"),
    GaugeInfo("tetrion_replay_commit_lag_rows", "rows", {"shard"},
              "rows written into a commit stride that is not full yet; below --commit-stride"),
    GaugeInfo("tetrion_replay_bytes", "bytes", {"shard"}, "memory of the shard"),
    CounterInfo("tetrion_replay_sampled_sequences_total", "windows", {},
                "windows handed to the trainer"),
    CounterInfo("tetrion_replay_overwritten_windows_total", "windows", {},
                "windows overwritten before the trainer took them; not 0 means that the replay is "
                "too small for its settings"),
    CounterInfo("tetrion_replay_not_ready_total", "samples", {},
                "samples refused for want of committed rows"),
    CounterInfo("tetrion_replay_lease_wait_seconds_total", "seconds", {},
                "time that ingest and the learner's own lanes waited for readers or the limiter"),
    CounterInfo("tetrion_replay_reader_wait_seconds_total", "seconds", {},
                "of it, time ingest waited for rows that an update still reads"),
    GaugeInfo("tetrion_replay_samples_per_insert", "ratio", {}, "rows sampled per row inserted"),
    // Learner.
    GaugeInfo("tetrion_learner_build_seconds", "seconds", {},
              "how long making replay and trainer ready took at the start"),
    CounterInfo("tetrion_learner_updates_total", "updates", {}, "optimiser steps of this process"),
    CounterInfo("tetrion_learner_skipped_updates_total", "updates", {},
                "updates not taken, or taken back, because a number in them was not finite"),
    HistogramInfo("tetrion_learner_update_seconds", "seconds", {}, kSecondsBounds,
                  "one call of the trainer without waiting"),
    HistogramInfo("tetrion_learner_stage_seconds", "seconds", {"stage"}, kSecondsBounds,
                  "stages: wait, sample, forward, backward, optimise, publish"),
    GaugeInfo("tetrion_learner_loss", "", {"part"},
              "loss of the last update; part = policy, value, total"),
    GaugeInfo("tetrion_learner_grad_norm", "", {},
              "gradient norm of all parameters before clipping"),
    GaugeInfo("tetrion_learner_entropy", "nats", {}, "mean policy entropy"),
    GaugeInfo("tetrion_learner_explained_variance", "ratio", {}, "of the value targets"),
    GaugeInfo("tetrion_learner_policy_version", "version", {}, "newest published version"),
    CounterInfo("tetrion_learner_weights_published_total", "versions", {},
                "batches trained and published as new weights since this learner started"),
    HistogramInfo("tetrion_learner_checkpoint_seconds", "seconds", {}, kSecondsBounds,
                  "writing one checkpoint"),
    GaugeInfo("tetrion_learner_checkpoint_age_seconds", "seconds", {},
              "time since the last complete checkpoint, or since the first was due; 0 while no "
              "update would be lost"),
    CounterInfo("tetrion_learner_rings_quarantined_total", "rings", {},
                "rings given up for impossible contents"),
    CounterInfo("tetrion_learner_rings_unattachable_total", "rings", {},
                "rings given up because they could not be attached; the log says why"),
    GaugeInfo(
        "tetrion_learner_rings", "rings", {"state"},
        "state = attached, waiting (listed, cannot be attached yet), leaving (ended, its file "
        "not removed yet because the folder is locked)"),
    CounterInfo("tetrion_learner_rows_lost_total", "rows", {},
                "published rows that never reached the replay: of quarantined rings, or never "
                "answered (void after a learner's restart, or of a streamed worker that died)"),
    GaugeInfo("tetrion_learner_streams", "streams", {}, "streamed workers attached"),
    CounterInfo("tetrion_learner_inference_rows_total", "rows", {}, "streamed rows answered"),
    HistogramInfo("tetrion_learner_inference_seconds", "seconds", {}, kSecondsBounds,
                  "deciding and answering one batch of streamed rows"),
    CounterInfo("tetrion_learner_inference_wait_seconds_total", "seconds", {},
                "time the inference thread slept for rows"),
    CounterInfo("tetrion_learner_version_wait_seconds_total", "seconds", {},
                "time the trainer waited for the coordinator to give it numbers for its weights"),
    CounterInfo("tetrion_cuda_host_copies_total", "copies", {"direction", "purpose"},
                "copies between the host's memory and a device's that this process asked for "
                "through lib/cuda; not those of the tensor library, of a trainer on the device; "
                "with resident lanes none has purpose ingest"),
    CounterInfo("tetrion_learner_resident_rows_total", "rows", {},
                "rows of the lanes that the learner plays itself, enqueued and committed"),
    CounterInfo("tetrion_learner_resident_env_steps_total", "steps", {},
                "actions taken in those lanes"),
    CounterInfo("tetrion_learner_resident_wait_seconds_total", "seconds", {"reason"},
                "time those lanes waited; reason = token, weights, replay (the trainer is behind; "
                "part of tetrion_replay_lease_wait_seconds_total)"),
    GaugeInfo("tetrion_learner_remote_streams", "streams", {},
              "workers of other hosts whose rows arrive here"),
    CounterInfo("tetrion_learner_remote_rows_total", "rows", {"result"},
                "rows received from other hosts; result = accepted, duplicate (sent again), gap "
                "(dropped, an earlier one is missing), beyond_credit (dropped, too many)"),
    CounterInfo("tetrion_learner_remote_bytes_total", "bytes", {"kind"},
                "kind = rows (accepted, unpacked), payload (of batches, as they came), weights "
                "(sent)"),
    CounterInfo("tetrion_learner_remote_weights_refused_total", "requests", {},
                "requests for weights by processes that have no stream of this run here"),
    CounterInfo(
        "tetrion_learner_remote_streams_ended_total", "streams", {"reason"},
        "reason = silent (the actor counts as dead), broken (it said something impossible)"),
    CounterInfo(
        "tetrion_learner_remote_hang_ups_total", "connections", {},
        "connections closed because what they sent filled memory without becoming messages"),
    // Links.
    CounterInfo("tetrion_link_reconnects_total", "connections", {"peer"},
                "sockets destroyed and opened anew"),
    CounterInfo("tetrion_link_messages_total", "messages", {"peer", "direction"},
                "messages; direction = in, out"),
    CounterInfo("tetrion_link_bytes_total", "bytes", {"peer", "direction"},
                "message bytes; direction = in, out"),
    CounterInfo("tetrion_link_handshakes_total", "connections", {"peer", "result"},
                "handshakes of connections to a socket with keys; result = accepted, unknown_key, "
                "no_keys, wrong_key, broken"),
    CounterInfo("tetrion_link_malformed_total", "messages", {"peer"}, "messages dropped unread"),
};

constexpr MetricRef MetricRef::Named(std::string_view name) {
  std::size_t i = 0;
  while (i < kCatalog.size() && kCatalog[i].name != name) ++i;
  TETRION_CHECK(i < kCatalog.size(), "the catalog has no metric of this name");
  return MetricRef(i);
}
constexpr const MetricInfo& MetricRef::info() const {
  return kCatalog[index_];
}

}  // namespace tetrion
