/** The environment variables that the program reads by a fixed name, as data. The settings file names further ones. */

interface EnvironmentVariable {
  /** The value that holds while the variable is not set. */
  readonly default?: string
  readonly meaning: string
  readonly isSecret?: true
  /** Whether `.env` in the working directory may hold it too. */
  readonly inDotEnv?: true
}

export const environmentVariables = {
  SERVICE_API_URL: {
    meaning:
      "base address of the service, for companies without a url, and for the company main, which needs no settings",
    inDotEnv: true
  },
  SERVICE_API_TOKEN: {
    meaning: "token of the service, for companies without token_env, and for the company main",
    isSecret: true,
    inDotEnv: true
  },
  DATABASE_URL: {
    meaning: "address of the warehouse, postgres://user:password@host/database; without it, the embedded Postgres",
    isSecret: true,
    inDotEnv: true
  },
  DATABASE_READER_URL: {
    meaning:
      "address with a login that only reads, for queries that people write and for the dashboard; without it, a role " +
      "that the program creates where it may",
    isSecret: true,
    inDotEnv: true
  },
  TRIBUTARY_HOME: {
    default: ".tributary",
    meaning: "folder of the embedded Postgres and of the other local files",
    inDotEnv: true
  },
  TRIBUTARY_COMMAND: {
    meaning:
      "what hints write in front of the name of a command, where the program cannot know how it is started: in a " +
      "container, as docker-compose.yml sets it; default: as the program was started"
  },
  TRIBUTARY_COMPANIES_KEY: {
    meaning:
      "key that seals the tokens and signing secrets in the warehouse, at least 32 characters; without it, companies are " +
      "those of the settings file",
    isSecret: true,
    inDotEnv: true
  },
  TRIBUTARY_PRIVACY_KEY: {
    meaning:
      "key of hashed fields, at least 32 characters; every process on a warehouse needs the same one. Another key gives " +
      "other hashes: versions keep the earlier ones",
    isSecret: true,
    inDotEnv: true
  },
  TRIBUTARY_DASHBOARD_PASSWORD: {
    meaning: "password of the dashboard, at least 8 characters, unless dashboard.password_env names another variable",
    isSecret: true,
    inDotEnv: true
  },
  TRIBUTARY_METRICS_TOKEN: {
    meaning: "bearer token of /metrics, unless monitoring.token_env names another variable; without it, none is needed",
    isSecret: true,
    inDotEnv: true
  },
  REFERENCE_SERVER_CONTROL_TOKEN: {
    meaning: "bearer token of the control plane of tributary reference-server, needed where other machines reach it",
    isSecret: true
  },
  TRIBUTARY_LOG_FORMAT: { default: "text", meaning: "form of the log: text or json" },
  TRIBUTARY_LOG_LEVEL: {
    default: "info",
    meaning: "mildest level of the log: trace, debug, info, warn, error, fatal or off"
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    meaning: "address of an OpenTelemetry collector, for traces and logs; without an endpoint nothing is exported"
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: { meaning: "address for traces alone, with its path" },
  OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: { meaning: "address for logs alone, with its path" },
  OTEL_EXPORTER_OTLP_PROTOCOL: { default: "http/protobuf", meaning: "form of an export: http/protobuf or http/json" },
  OTEL_EXPORTER_OTLP_HEADERS: { meaning: "headers of an export: name=value,…", isSecret: true },
  OTEL_EXPORTER_OTLP_COMPRESSION: { default: "none", meaning: "compression of an export: gzip or none" },
  OTEL_SDK_DISABLED: { default: "false", meaning: "true: nothing is exported" },
  OTEL_TRACES_EXPORTER: { default: "otlp", meaning: "none: no traces are exported" },
  OTEL_LOGS_EXPORTER: { default: "otlp", meaning: "none: no logs are exported" },
  OTEL_SERVICE_NAME: { default: "tributary", meaning: "name of the program in traces and logs" },
  OTEL_RESOURCE_ATTRIBUTES: { meaning: "further attributes of traces and logs: name=value,…" },
  OTEL_BSP_EXPORT_TIMEOUT: {
    default: "1000",
    meaning: "milliseconds that a command waits at its end for the export of its traces"
  },
  OTEL_BLRP_EXPORT_TIMEOUT: {
    default: "1000",
    meaning: "milliseconds that a command waits at its end for the export of its logs"
  },
  HTTPS_PROXY: {
    meaning:
      "HTTP proxy of requests to https addresses, http://user:password@host:port, also as https_proxy; localhost, 127.0.0.1 " +
      "and ::1 are reached directly; default: HTTP_PROXY",
    isSecret: true,
    inDotEnv: true
  },
  HTTP_PROXY: {
    meaning: "HTTP proxy of requests to http addresses, also as http_proxy",
    isSecret: true,
    inDotEnv: true
  },
  NO_PROXY: {
    meaning:
      "hosts that are reached directly, separated by commas, also as no_proxy: a name with all names below it, " +
      "*.name for those below it, an address, either with a port, or * for all",
    inDotEnv: true
  },
  NODE_EXTRA_CA_CERTS: { meaning: "file of certificates (PEM) that Node trusts beside its own" },
  NO_COLOR: { meaning: "any value: the help has no colors" },
  FORCE_COLOR: { meaning: "1: the help has colors without a terminal too" },
  CI: { meaning: "any value: progress is shown as lines instead of bars" },
  PATH: { meaning: "where psql is found; the embedded Postgres gets it" },
  LD_LIBRARY_PATH: { meaning: "folders of libraries; the embedded Postgres gets them after its own" },
  npm_command: { meaning: "exec, as npx sets it: messages show commands with npx" },
  TRIBUTARY_HANDED_OVER: { meaning: "set by the program itself, for the newer Node that it starts" }
} as const satisfies Readonly<Record<string, EnvironmentVariable>>

/** The variables by name. */
export const variableEntries: ReadonlyArray<readonly [name: string, variable: EnvironmentVariable]> =
  Object.entries(environmentVariables)
