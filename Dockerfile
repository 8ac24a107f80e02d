# syntax=docker/dockerfile:1
# The image of `tributary`: compiled, with what it needs in production and nothing else, for a user without rights.
#
#   docker build -t tributary .
#   docker run --rm --read-only --tmpfs /tmp --env-file .env -v ./config:/tributary/config:ro \
#     -p 127.0.0.1:8086:8086 tributary serve --dashboard 0.0.0.0:8086
#
# Every command runs in it: `docker run --rm --env-file .env tributary status`. Postgres is not inside, so DATABASE_URL
# has to name one. The configuration is /tributary/config/tributary.yaml; the root file system may be read-only.
# The ERP's API for tests of other programs, ready when it prints a line or GET /readyz on either port answers 200:
#   docker run --rm --no-healthcheck -e REFERENCE_SERVER_CONTROL_TOKEN -p 127.0.0.1:8080:8080 -p 127.0.0.1:8081:8081 \
#     tributary reference-server --host 0.0.0.0 --port 8080 --control-host 0.0.0.0 --control-port 8081 --allow-http
# Ports: 8085 takes webhooks and answers /healthz, /readyz and (unless --monitoring names another) /metrics; 8086 is the
# page for people. Both listen on
# loopback of the container unless told otherwise (--listen, --dashboard); docker-compose.yml shows what that takes.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
COPY config/node/package.json config/node/
# The compiler comes as an optional dependency of its own, so that nothing is left out here.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /build
COPY package.json package-lock.json ./
COPY config/node/package.json config/node/
# Optional is the embedded Postgres, which a container has no use for.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:24.21.0-bookworm-slim
LABEL org.opencontainers.image.title="tributary" \
      org.opencontainers.image.description="Keeps a Postgres warehouse equal to an ERP" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/node:24.21.0-bookworm-slim"
ENV NODE_ENV=production
COPY --from=dependencies /build/node_modules /app/node_modules
COPY --from=build /build/dist /app/dist
COPY package.json LICENSE /app/
COPY src/cli/launch.js /app/src/cli/launch.js
RUN ln -s /app/src/cli/launch.js /usr/local/bin/tributary \
 && install -d -o 1000 -g 1000 /tributary /tributary/.tributary
WORKDIR /tributary
USER 1000:1000
VOLUME ["/tributary/.tributary"]
EXPOSE 8085 8086
STOPSIGNAL SIGTERM
# Of `serve` with its listener where the image's user may expect it; give --no-healthcheck, or one of your own, otherwise.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8085/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tributary"]
CMD ["serve"]
