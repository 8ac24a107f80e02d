import pg from "pg"
const c = new pg.Client({ host: "127.0.0.1", port: 55555, user: "tributary", password: process.argv[2]!, database: "postgres" })
await c.connect()
const out: string[] = []
for (let i = 0; i < 5; i++) { let t = performance.now(); await c.query(`create database e${i}`); out.push((performance.now()-t).toFixed(0)); t = performance.now(); await c.query(`drop database e${i}`); out.push("d"+(performance.now()-t).toFixed(0)) }
console.log(out.join(" "))
await c.end()
