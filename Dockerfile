# The agent and the other commands, as an image: `docker build .` (with BuildKit), for linux/amd64 and linux/arm64.
#
# The image holds Node, the libraries that Node loads, and holdfast: no shell, no npm, no package manager. `exec` hooks that need a program
# need an image with it: docs/operations.md has the lines.
#
# What runs, runs on the builder's own platform, whatever the image is for. A registry that needs settings of its own:
# `--secret id=npmrc,src=$HOME/.npmrc`; they are not part of the image.

# A release names the base by its digest, too (--build-arg BASE_DIGEST=sha256:…): whatever the tag leads to later, it was built on these bytes.
ARG BASE=docker.io/library/node:24.21.0-bookworm-slim
ARG BASE_DIGEST=

FROM --platform=$BUILDPLATFORM ${BASE}${BASE_DIGEST:+@}${BASE_DIGEST} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --ignore-scripts --no-audit --no-fund
# What the program needs on the platform that the image is for: koffi's binary for it, and no other.
ARG TARGETARCH
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc mkdir /target && cp package.json package-lock.json /target/ && cd /target && \
    case "$TARGETARCH" in amd64) cpu=x64 ;; arm64) cpu=arm64 ;; *) echo "no image for $TARGETARCH" >&2; exit 1 ;; esac && \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund --os=linux --cpu="$cpu"
COPY . .
# The Node that runs here is the image's, of the same base.
RUN scripts/bundle.sh /out/opt/holdfast /target/node_modules with-node && \
    mkdir -p /out/usr/local/bin && ln -s ../../../opt/holdfast/bin/holdfast.js /out/usr/local/bin/holdfast && \
    sed -i '1s|.*|#!/usr/local/bin/node|' /out/opt/holdfast/bin/holdfast.js

# Debian and Node, of the platform that the image is for.
FROM ${BASE}${BASE_DIGEST:+@}${BASE_DIGEST} AS debian

FROM build AS libraries
RUN --mount=type=bind,from=debian,target=/debian scripts/image/libraries.sh /debian /small

FROM scratch
COPY --from=libraries /small/ /
COPY --from=build /out/ /
ARG VERSION=0.2.0
ARG REVISION=
ARG SOURCE=
ARG BASE
ARG BASE_DIGEST
LABEL org.opencontainers.image.title="holdfast" \
      org.opencontainers.image.description="Keeps certificates, keys, configuration and static-pod manifests on a Kubernetes node intact and durable through power cuts" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.base.digest="$BASE_DIGEST"
# Root, because it writes files of mode 0600 that root must own into the host's directories. It needs no capability for that:
# deploy/ drops all of them.
USER 0:0
# The agent's forty threads share one heap: glibc gives many of them one of their own, which costs 2 MB and serves nobody here.
ENV PATH=/usr/local/bin MALLOC_ARENA_MAX=1
# No shell, and node by its full path: PATH decides nothing. SIGUSR1 opens no inspector, from Node's first instant on.
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "/opt/holdfast/bin/holdfast.js"]
CMD ["--help"]
