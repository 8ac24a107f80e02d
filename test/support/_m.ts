import { Effect } from "effect"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import { connect, query } from "../../src/postgres/Connection.ts"
import { copyIn } from "../../src/postgres/Copy.ts"
const time = <A, E, R>(name: string, e: Effect.Effect<A, E, R>) => Effect.gen(function*(){ const t = performance.now(); const a = yield* e; console.log(name, (performance.now()-t).toFixed(0)); return a })
await Effect.runPromise(Effect.scoped(Effect.gen(function*(){
  const durable = process.argv[3] !== "no"
  const s = yield* time("start", start({ root: process.argv[2]!, port: 0, durable }))
  const c = yield* time("connect", connect(s))
  for (let i = 0; i < 3; i++) {
    yield* time("create", query(c, "x", `create database d${i}`))
    yield* time("drop", query(c, "x", `drop database d${i} with (force)`))
  }
  for (let i = 0; i < 2; i++) {
    yield* time("create file_copy", query(c, "x", `create database d${i} strategy file_copy`))
    yield* time("drop", query(c, "x", `drop database d${i}`))
  }
  // copy: 1 KB rows
  yield* query(c, "x", "create table t (id bigint, a text, b numeric, c text)")
  const pad = "x".repeat(900)
  const chunks: string[] = []
  let buf = ""
  for (let i = 0; i < 200000; i++) { buf += `${i}\tname ${i}\t1.10\t${pad}\n`; if (buf.length > 256*1024) { chunks.push(buf); buf = "" } }
  chunks.push(buf)
  const flat = chunks.map(c => Buffer.from(c))
  for (const [n, cs] of [["strings 256K", chunks], ["buffers 256K", flat], ["one row each", chunks.flatMap(c => c.split(/(?<=\n)/))]] as const) {
    yield* query(c, "x", "truncate t")
    const t = performance.now(); const cpu = process.cpuUsage()
    const rows = yield* copyIn(c, "copy t from stdin", cs)
    const ms = performance.now()-t, u = process.cpuUsage(cpu)
    console.log("copy", n, rows, ms.toFixed(0), "ms", (rows/ms).toFixed(0), "k rows/s; node cpu ms", ((u.user+u.system)/1000).toFixed(0))
  }
})))
