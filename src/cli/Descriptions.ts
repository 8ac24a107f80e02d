/** The commands of the program in the order of the help, each with what it does. */
export const descriptions = {
  demo: "Run everything end to end on this machine: no account, nothing to install",
  init: "Prompt for the service, its token and the warehouse, check them, and write the configuration",
  doctor:
    "Check everything that sync and serve need, each problem with its remedy; exit code 2: configuration or database, " +
    "3: refused by the source, 5: unreachable",
  radar:
    "Compare an installation with the documentation by reading only, and recommend settings; exit code 4: differences, " +
    "3: refused by the source, 5: unreachable",
  plan: "Estimate the requests and minutes of a sync or a backfill at the rate budget",
  sync: "Bring the warehouse up to date: read the changes of every resource since the last sync",
  backfill: "Read a past range, or everything, again beside live syncing; resumable, safe to repeat",
  status: "Show the content of the warehouse, its freshness, and the last errors",
  verify: "Compare the warehouse with the source, row by row and value by value; exit code 0: equal, 4: unequal",
  explain: "Show every version of a record, with the run and the request or event that it came from",
  forget: "Remove the values of one record from its earlier versions and from what else is kept of it; keys stay",
  budget: "Show the rate budget of each company, and the end of its pause",
  alerts: "Show the conditions of alerts and their messages, silence them, and test a route",
  company:
    "Add, list, pause, resume, move and remove companies of the warehouse; running processes apply it within seconds",
  installation:
    "Add, list, show, change and remove installations of the service, each with its own readings, limits and way there",
  processes: "Show the live processes of serve, and the companies that each owns",
  query: "Query the warehouse in SQL (the datasets are erp, erp_history and tributary)",
  psql: "Open psql on the warehouse, as a login that may only read",
  postgres: "Keep the embedded Postgres running for other programs, stop it, and show its state",
  mcp: "Answer an assistant's questions about the warehouse over the Model Context Protocol; it never writes",
  changes: "Print every change of every record as lines of JSON, and send changes to endpoints",
  export: "Write the tables of the warehouse to files, as of one moment: Parquet, CSV or NDJSON",
  close:
    "Close a month: a signed file and a PDF of what was verified, with counts, sums and digests; and what changed it since",
  schema: "Plan and apply the warehouse's tables, columns and views; print rights and dbt sources",
  serve: "Sync by schedule, receive webhook deliveries, push, and serve the dashboard, until stopped",
  webhooks: "Show and change the webhook subscriptions at the source, and replay events",
  push: "Write records to the source, each at most once, also when the command is interrupted or repeated",
  "reference-server": "Serve the API on loopback for tests and demos; prints one JSON line when it is ready",
  completions: "Print the script by which a shell completes commands, flags, resources and companies"
} as const

export type CommandName = keyof typeof descriptions
