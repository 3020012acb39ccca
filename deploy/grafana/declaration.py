"""What the four dashboards show: rows of panels, each with its queries (PromQL, legend).

make_dashboards.py turns DASHBOARDS into JSON. Rates need no window here: Grafana puts in
$__rate_interval. `$run` is the choice on top of a dashboard.
"""

import pathlib
import re

# The Prometheus of a cluster watches others, too: what has no label of ours is chosen by names.
OURS = '{run=~"$run",job=~"coordinator|learner|actor"}'
ALERTS = "|".join(re.findall(r"- alert: (\w+)", (
    pathlib.Path(__file__).resolve().parents[1] / "prometheus" / "alerts.yml").read_text(
        encoding="utf-8")))

GREEN, ORANGE, RED, BLUE = "green", "orange", "red", "blue"
SHARE = "percentunit"  # 0 to 1, and seconds per second of one thread


def of(metric, **labels):
    """The selector of a metric's series in the runs that are chosen on top of the dashboard."""
    chosen = {"run": '=~"$run"'} | {name: f'="{value}"' for name, value in labels.items()}
    return metric + "{" + ",".join(name + match for name, match in chosen.items()) + "}"


def rate(metric, **labels):
    return f"rate({of(metric, **labels)}[$__rate_interval])"


def total(expression, *by):
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def mean_of(histogram):
    """Mean of what a histogram observed lately."""
    return f"{total(rate(histogram + '_sum'))} / {total(rate(histogram + '_count'))}"


def quantile(q, histogram, *by):
    return f"histogram_quantile({q}, {total(rate(histogram + '_bucket'), 'le', *by)})"


def grown(metric, window, **labels):
    return f"increase({of(metric, **labels)}[{window}])"


def panel(title, *queries, unit="short", help="", **more):
    """A panel of curves. `more`: stack, fill, low and high of the axis, thresholds, width."""
    return {"title": title, "queries": queries, "unit": unit, "help": help, "kind": "timeseries",
            "width": 8, "height": 8, **more}


def figure(title, expression, unit="short", thresholds=((None, BLUE),), help="", **more):
    """A number with its recent curve behind it."""
    return {"title": title, "queries": [(expression, "")], "unit": unit, "help": help,
            "kind": "stat", "thresholds": thresholds, "width": 4, "height": 4, **more}


def at_least(good, fair=None):
    """Red below `fair`, orange below `good`, green from there."""
    steps = [(None, RED)] + ([] if fair is None else [(fair, ORANGE)])
    return (*steps, (good, GREEN))


def at_most(fair, bad):
    return (None, GREEN), (fair, ORANGE), (bad, RED)


NONE_WANTED = ((None, GREEN), (1, RED))

RETURN, LINES, LENGTH = ("tetrion_episode_return", "tetrion_episode_lines",
                         "tetrion_episode_length_steps")
WAITS, STAGES = "tetrion_actor_wait_seconds_total", "tetrion_learner_stage_seconds_sum"
TOKENS, ENDED = "tetrion_coordinator_tokens_total", "tetrion_coordinator_sessions_ended_total"
ENV_STEPS, ROWS_IN = "tetrion_actor_env_steps_total", "tetrion_replay_committed_rows"
RESIDENT_STEPS, RESIDENT_WAITS = ("tetrion_learner_resident_env_steps_total",
                                  "tetrion_learner_resident_wait_seconds_total")
REFUSED, REQUEST = "tetrion_coordinator_refused_total", "tetrion_coordinator_request_seconds"

TRAINING = (
    ("Is it learning?", (
        figure("Return", of(RETURN + "_mean"),
               help="Mean of the last 100 accounted episodes."),
        figure("Return gained in 10 min", f"delta({of(RETURN + '_mean')}[10m])",
               thresholds=((None, ORANGE), (0, GREEN)),
               help="Falls to 0 where the run has converged."),
        figure("Lines per episode", of(LINES + "_mean"), help="0 in games without lines."),
        figure("Explained variance", of("tetrion_learner_explained_variance"), SHARE,
               at_least(0.5, 0), help="How much of the returns the value network foresees."),
        figure("Updates per second", total(rate("tetrion_learner_updates_total")),
               thresholds=((None, RED), (0.001, GREEN)), help="0: nothing is learnt now."),
        figure("Updates taken back", total(grown("tetrion_learner_skipped_updates_total", "1h")),
               thresholds=NONE_WANTED, help="Within an hour: something in them was not finite."),
    )),
    ("Play", (
        panel("Return per episode",
              (of(RETURN + "_mean"), "mean of 100"),
              (quantile(0.5, RETURN), "median"),
              (quantile(0.9, RETURN), "90 %"),
              help="Quantiles are interpolated between the histogram's bounds.", width=12),
        panel("Lines per episode",
              (of(LINES + "_mean"), "mean of 100"),
              (quantile(0.9, LINES), "90 %"), low=0, width=12),
        panel("Steps per episode",
              (of(LENGTH + "_mean"), "mean of 100"),
              (quantile(0.9, LENGTH), "90 %"), low=0),
        panel("Episodes per second", (total(rate(RETURN + "_count")), "accounted"), low=0),
        panel("Environment steps per second",
              (total(rate(ENV_STEPS)), "of actors"),
              (total(rate(RESIDENT_STEPS)), "learner's own lanes"), low=0),
    )),
    ("Learning", (
        panel("Losses",
              (of("tetrion_learner_loss", part="policy"), "policy"),
              (of("tetrion_learner_loss", part="value"), "value"),
              (of("tetrion_learner_loss", part="total"), "total")),
        panel("Entropy of the policy (nats)", (of("tetrion_learner_entropy"), "entropy"), low=0,
              help="Falls as the policy becomes sure; 0 early: it stopped exploring."),
        panel("Gradient norm", (of("tetrion_learner_grad_norm"), "before clipping"), low=0),
        panel("Explained variance of the value",
              (of("tetrion_learner_explained_variance"), "explained"), unit=SHARE, high=1),
        panel("Versions of the policy",
              (of("tetrion_learner_policy_version"), "published"),
              (of("tetrion_actor_policy_version"), "{{service}}"), low=0,
              help="An actor that stays behind plays with old weights."),
        panel("Policy lag when weights are taken (versions)",
              (mean_of("tetrion_actor_policy_lag_versions"), "mean"),
              (quantile(0.99, "tetrion_actor_policy_lag_versions"), "99 %"), low=0,
              help="How far the weights were behind that a worker gave up; 1: it skips none. "
                   "Streamed workers have no weights."),
    )),
)

THROUGHPUT = (
    ("How fast?", (
        figure("Environment steps per second",
               total(f"{rate(ENV_STEPS)} or {rate(RESIDENT_STEPS)}"), width=6,
               help="Of actors and of the learner's own lanes."),
        figure("Rows per second into the replay", total(rate(ROWS_IN)), width=6,
               help="A row is one time step of all lanes of a worker."),
        figure("Updates per second", total(rate("tetrion_learner_updates_total")), width=6),
        figure("Episodes per second", total(rate(RETURN + "_count")), width=6),
    )),
    ("Work", (
        panel("Environment steps per second, by service",
              (total(rate(ENV_STEPS), "service"), "{{service}}"),
              (total(rate(RESIDENT_STEPS), "service"), "{{service}}"), stack=True, low=0),
        panel("Rows per second",
              (total(rate("tetrion_actor_rows_committed_total")), "published by actors"),
              (total(rate(ROWS_IN)), "taken into the replay"),
              (total(rate("tetrion_learner_inference_rows_total")), "streamed, decided"),
              (total(rate("tetrion_learner_resident_rows_total")), "learner's own lanes"), low=0),
        panel("Updates and versions per second",
              (total(rate("tetrion_learner_updates_total")), "updates"),
              (total(rate("tetrion_learner_weights_published_total")), "versions published"),
              low=0),
    )),
    ("Who waits on whom?", (
        panel("Waiting, all threads (seconds per second)",
              (total(rate(WAITS), "reason"), "actors wait for: {{reason}}"),
              (total(rate(STAGES, stage="wait")), "trainer waits for rows"),
              (total(rate("tetrion_replay_lease_wait_seconds_total")), "ingest is held back"),
              (total(rate(RESIDENT_WAITS, reason="token")), "learner's lanes wait for: token"),
              (total(rate(RESIDENT_WAITS, reason="weights")), "learner's lanes wait for: weights"),
              stack=True, low=0, width=24, height=9,
              help="ring: actors outrun the learner. Trainer waits for rows: the learner outruns "
                   "the actors. token: the coordinator is too slow. Ingest is held back: the "
                   "learner's own lanes, too."),
    )),
    ("Where the time goes", (
        panel("Workers (seconds per second)",
              (total(rate("tetrion_actor_env_step_seconds_sum")), "environment"),
              (total(rate("tetrion_actor_inference_seconds_sum")), "policy"),
              (total(rate(WAITS)), "waiting"), stack=True, low=0, width=12,
              help="As many seconds as threads. Streamed workers have no policy of their own: they "
                   "wait for answers."),
        panel("Trainer (seconds per second)",
              (total(rate(STAGES), "stage"), "{{stage}}"), stack=True, low=0, width=12),
        panel("Policy on one batch of lanes",
              (quantile(0.5, "tetrion_actor_inference_seconds"), "median"),
              (quantile(0.99, "tetrion_actor_inference_seconds"), "99 %"),
              (quantile(0.5, "tetrion_actor_answer_seconds"), "streamed, median"),
              (quantile(0.99, "tetrion_actor_answer_seconds"), "streamed, 99 %"), unit="s", low=0,
              help="Streamed: from the row's publication to its actions."),
        panel("Environment on one batch of lanes",
              (quantile(0.5, "tetrion_actor_env_step_seconds"), "median"),
              (quantile(0.99, "tetrion_actor_env_step_seconds"), "99 %"), unit="s", low=0),
        panel("One call of the trainer",
              (quantile(0.5, "tetrion_learner_update_seconds"), "median"),
              (quantile(0.99, "tetrion_learner_update_seconds"), "99 %"), unit="s", low=0),
    )),
)

SHARD, IN_USE = "shard {{shard}}", f"and {of(ROWS_IN)} > 0"
REPLAY = (
    ("Is the replay fed and read?", (
        figure("Fill of shards in use",
               f"sum({of('tetrion_replay_rows')}) / "
               f"sum({of('tetrion_replay_capacity_rows')} {IN_USE})", SHARE),
        figure("Samples per insert", of("tetrion_replay_samples_per_insert"),
               help="Rows drawn per row played; reuse trains each draw several times."),
        figure("Commit lag (rows)", total(of("tetrion_replay_commit_lag_rows")),
               help="Written into commit strides that are not full yet; of each shard below "
                    "--commit-stride."),
        figure("Not ready per second", total(rate("tetrion_replay_not_ready_total")),
               help="The trainer asked and too few rows were there."),
        figure("Windows overwritten",
               total(grown("tetrion_replay_overwritten_windows_total", "1h")),
               thresholds=NONE_WANTED, help="Within an hour; not 0: the replay is too small."),
        figure("Rows lost", total(grown("tetrion_learner_rows_lost_total", "1h")),
               thresholds=NONE_WANTED, help="Within an hour: published and never trained on."),
    )),
    ("Fill", (
        panel("Replay", (f"{of('tetrion_replay_rows')} / {of('tetrion_replay_capacity_rows')} "
                         f"{IN_USE}", SHARD), unit=SHARE, low=0, high=1),
        panel("Rings", (f"avg_over_time({of('tetrion_ring_used_rows')}[$__rate_interval]) / "
                        f"({of('tetrion_ring_capacity_rows')} > 0)", SHARD),
              unit=SHARE, low=0, high=1,
              help="Used by rows that are not in the replay yet."),
        panel("Memory of the replay", (total(of("tetrion_replay_bytes")), "all shards"),
              unit="decbytes", low=0),
    )),
    ("Commit and sampling", (
        panel("Rows committed per second", (f"{rate(ROWS_IN)} > 0", SHARD), stack=True, low=0),
        panel("Commit lag (rows)", (f"{of('tetrion_replay_commit_lag_rows')} {IN_USE}", SHARD),
              low=0),
        panel("Samples per insert", (of("tetrion_replay_samples_per_insert"), "rows"), low=0),
        panel("Windows per second",
              (total(rate("tetrion_replay_sampled_sequences_total")), "sampled"),
              (total(rate("tetrion_replay_overwritten_windows_total")), "overwritten"), low=0),
        panel("Samples refused per second",
              (total(rate("tetrion_replay_not_ready_total")), "not ready"), low=0),
        panel("Ingest held back",
              (total(rate("tetrion_replay_lease_wait_seconds_total")), "by readers or limiter"),
              unit=SHARE, low=0, high=1),
    )),
    ("Rings and checkpoints", (
        panel("Rings of the learner", (of("tetrion_learner_rings"), "{{state}}"), low=0),
        panel("Rings given up",
              (of("tetrion_learner_rings_quarantined_total"), "quarantined"),
              (of("tetrion_learner_rings_unattachable_total"), "unattachable"), low=0),
        panel("Age of the last checkpoint",
              (of("tetrion_learner_checkpoint_age_seconds"), "age"), unit="s", low=0),
    )),
)

CLUSTER = (
    ("Is everything up?", (
        figure("Actors", total(of("tetrion_coordinator_actors")), thresholds=at_least(1)),
        figure("Services that answer", f"sum(up{OURS}) / count(up{OURS})", SHARE,
               at_least(1, 0.5)),
        figure("Longest silence", f"max({of('tetrion_coordinator_leases_oldest_seconds')})", "s",
               at_most(3, 8), help="A session ends after --session-lease (10 s)."),
        figure("Sessions expired", total(grown(ENDED, "1h", reason="lease")),
               thresholds=NONE_WANTED, help="Within an hour."),
        figure("Malformed messages", total(grown("tetrion_link_malformed_total", "1h")),
               thresholds=NONE_WANTED, help="Within an hour."),
        figure("Alerts firing",
               f'count(ALERTS{{alertstate="firing",alertname=~"{ALERTS}"}}) or vector(0)',
               thresholds=NONE_WANTED, help="docs/OPERATIONS.md says what to do."),
    )),
    ("Members", (
        panel("Actors", (of("tetrion_coordinator_actors"), "sessions alive"),
              (total(of("up", job="actor")), "answer Prometheus"), low=0),
        panel("Longest silence of a session",
              (of("tetrion_coordinator_leases_oldest_seconds"), "silence"), unit="s", low=0),
        panel("Sessions ended within 5 minutes",
              (total(grown(ENDED, "5m"), "reason"), "{{reason}}"), low=0),
    )),
    ("The account", (
        panel("Tokens per second", (total(rate(TOKENS), "event"), "{{event}}"), low=0,
              help="duplicate and refused are reports, fenced are messages of sessions that have "
                   "ended."),
        panel("Tokens outstanding", (of("tetrion_coordinator_tokens_outstanding"), "granted"),
              low=0),
        panel("Coordinator's requests, 99 %",
              (f"{quantile(0.99, REQUEST, 'kind')} and on (kind) "
               f"{total(rate(REQUEST + '_count'), 'kind')} > 0", "{{kind}}"),
              unit="s", low=0),
        panel("Store of the coordinator",
              (of("tetrion_coordinator_store_queued"), "changes queued"),
              (of("tetrion_coordinator_replies_waiting"), "replies waiting"),
              (of("tetrion_coordinator_store_paused"), "1: it cannot be written"), low=0),
        panel("Messages per second",
              (total(rate("tetrion_link_messages_total"), "service", "direction"),
               "{{service}} {{direction}}"), low=0),
        panel("Message bytes per second",
              (total(rate("tetrion_link_bytes_total"), "service", "direction"),
               "{{service}} {{direction}}"), unit="decbytes", low=0),
    )),
    ("Faults, within 5 minutes", (
        panel("Reconnects",
              (total(grown("tetrion_link_reconnects_total", "5m"), "service"), "{{service}}"),
              low=0),
        panel("Members and messages refused",
              (total(grown(REFUSED, "5m")), "all"),
              (total(grown(REFUSED, "5m"), "reason") + " > 0", "{{reason}}"), low=0),
        panel("Errors",
              (total(grown("tetrion_link_malformed_total", "5m")), "malformed messages"),
              (total(grown("tetrion_actor_weights_refused_total", "5m")), "weights refused"),
              (total(grown("tetrion_coordinator_file_errors_total", "5m")), "file errors"),
              (total(grown("tetrion_coordinator_rebinds_total", "5m")), "connections dropped"),
              (total(grown("tetrion_learner_remote_hang_ups_total", "5m")), "actors hung up on"),
              (total(grown("tetrion_log_lines_lost_total", "5m")), "log lines lost"), low=0),
    )),
)

DASHBOARDS = {"training": ("Training", TRAINING), "throughput": ("Throughput", THROUGHPUT),
              "replay": ("Replay & commit", REPLAY), "cluster": ("Cluster", CLUSTER)}
