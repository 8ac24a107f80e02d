# syntax=docker/dockerfile:1
# The image of `tributary`: the compiled program with its production packages, run by an unprivileged user.
# How to build and run it: docs/how-to/docker.md.
#
# The image contains no Postgres: DATABASE_URL names the server. The configuration is /tributary/config/tributary.yaml.
# The root file system may be read-only. Port 8085 takes webhooks, and port 8086 is the dashboard. Both listen on
# loopback of the container unless --listen and --dashboard name another address.

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
# For `serve`, which listens on port 8085. Other commands and ports need --no-healthcheck or another command.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8085/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tributary"]
CMD ["serve"]
