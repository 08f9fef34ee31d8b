# skitter in a small image: built from the sdist in one stage, run without a compiler, without root, and with a root file
# system that it need not write to. `docker build --build-arg EXTRAS=all .` for everything.
FROM python:3.13-slim AS build
WORKDIR /source
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml setup.py MANIFEST.in README.md CHANGELOG.md LICENSE constraints.txt ./
COPY src src
ARG EXTRAS=query,serve,objects,identities,pdf
RUN python -m venv /opt/skitter \
    && /opt/skitter/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]" \
    && /opt/skitter/bin/pip uninstall --yes pip

FROM python:3.13-slim
LABEL org.opencontainers.image.title="skitter" \
      org.opencontainers.image.description="A web crawler that is fast globally and polite locally" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home --home-dir /crawl --shell /usr/sbin/nologin skitter
COPY --from=build /opt/skitter /opt/skitter
ENV PATH=/opt/skitter/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/tmp/cache
USER 10001
WORKDIR /crawl
VOLUME /crawl
EXPOSE 8600
# A stop drains: what was delivered is committed.
STOPSIGNAL SIGTERM
# Only a server answers: HEALTH_URL says where, and without it a container counts as sound while it runs.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; a = os.environ.get('HEALTH_URL'); a and u.urlopen(a, timeout=4)"]
ENTRYPOINT ["skitter"]
CMD ["--help"]
