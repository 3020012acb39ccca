# Stands in for prom/prometheus where no image can be pulled: Debian's Prometheus, called the same way.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -q && apt-get install -q -y --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* && mkdir /prometheus && chown 65534:65534 /prometheus
USER 65534:65534
ENTRYPOINT ["/usr/bin/prometheus"]
