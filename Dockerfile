# Images of Headwater: `docker build --target operator .`, `docker build --target server .` and `docker build --target worker .`
# The base is pinned by the digest of its index, which holds all architectures. Another one: --build-arg BASE=...
ARG BASE=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

# What is installed is what deploy/images says, file by file: scripts/pin_images.sh writes it from pyproject.toml and constraints.txt.
FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY deploy/images deploy/images
COPY core core
COPY operator operator
COPY server server
COPY workers workers
RUN pip wheel --no-deps --wheel-dir /wheels -c constraints.txt .

FROM build AS operator-build
RUN python -m venv --without-pip /opt/headwater \
    && pip --python /opt/headwater install --only-binary :all: --require-hashes -r deploy/images/operator.txt \
    && pip --python /opt/headwater install --no-deps /wheels/headwater-*.whl

FROM build AS server-build
RUN python -m venv --without-pip /opt/headwater \
    && pip --python /opt/headwater install --only-binary :all: --require-hashes -r deploy/images/server.txt \
    && pip --python /opt/headwater install --no-deps /wheels/headwater-*.whl

FROM build AS worker-build
# pyspark comes as source only: its jars, packed.
RUN python -m venv --without-pip /opt/headwater \
    && pip --python /opt/headwater install --only-binary :all: --no-binary pyspark --require-hashes -r deploy/images/worker.txt \
    && pip --python /opt/headwater install --no-deps /wheels/headwater-*.whl

FROM ${BASE} AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Headwater" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN groupadd --gid 10001 headwater \
    && useradd --uid 10001 --gid 10001 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin headwater
ENV PATH=/opt/headwater/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
WORKDIR /tmp

FROM base AS worker
LABEL org.opencontainers.image.description="Workers of Headwater: collections, purges and imports"
# Spark's JVM, and tini, which reaps what a killed JVM leaves. Debian keeps one version of each, the newest: it cannot be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=worker-build /opt/headwater /opt/headwater
COPY --chmod=0755 scripts/spark-executor.sh /opt/headwater/bin/spark-executor
USER 10001:10001
ENTRYPOINT ["tini", "--", "headwater"]
CMD ["worker"]

FROM base AS server
LABEL org.opencontainers.image.description="Server of Headwater: catalogs for engines, by Iceberg's REST protocol"
COPY --from=server-build /opt/headwater /opt/headwater
USER 10001:10001
EXPOSE 8182
ENTRYPOINT ["headwater"]
CMD ["serve"]

# The last target is what a build without --target makes.
FROM base AS operator
LABEL org.opencontainers.image.description="Operator of Headwater: keeps Realms and Catalogs as declared"
COPY --from=operator-build /opt/headwater /opt/headwater
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["headwater-operator"]
CMD ["run"]
