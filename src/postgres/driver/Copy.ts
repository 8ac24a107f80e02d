/**
 * COPY ... FROM STDIN, the fastest way to load rows, and its counterpart COPY ... TO STDOUT.
 *
 * Promise: {@link copyIn} ends in every case, with a count or with the server's reason: refused before it began,
 * stopped by a bad row, connection lost. It reads the chunks only as fast as the server takes them. When it is
 * interrupted, or the chunks themselves throw, the connection ends before the end of the data is sent: no row stays,
 * and the client cannot be used any more. After an error of the server the client can be used (inside a transaction,
 * for a rollback).
 */
import * as Effect from "effect/Effect"
import type { Client, Connection } from "pg"
import { type CopyToStreamQuery, from, to } from "pg-copy-streams"
import { destroy } from "./Connection.ts"
import { DatabaseError } from "../DatabaseError.ts"

/** How much is written before other work of this process can run, in bytes (or characters). */
const sliceSize = 1024 * 1024

/**
 * Sends chunks of rendered COPY text; succeeds with the number of rows.
 *
 * Chunks of 64 KB to 1 MB are best; they need not end at the end of a row. A chunk of bytes is not used any more once
 * the next one is requested, so that their producer may reuse one buffer.
 */
export const copyIn = (
  client: Client,
  sqlCopyStatement: string,
  chunks: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>
): Effect.Effect<number, DatabaseError> =>
  Effect.callback<number, DatabaseError>((resume) => {
    // The answer to any other statement makes pg-copy-streams throw an exception that cannot be caught.
    if (!takesInput.test(sqlCopyStatement)) return resume(Effect.fail(notCopy(sqlCopyStatement)))
    const iterator = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
    const stream = from(sqlCopyStatement)
    let isSettled = false
    const settle = (result: Effect.Effect<number, DatabaseError>) => {
      if (isSettled) return
      isSettled = true
      end(iterator)
      resume(result)
    }
    // The stream emits an error for each way of failing, possibly more than once: the listener stays.
    stream.on("error", (error) => settle(Effect.fail(DatabaseError.from("copy")(error))))
    stream.once("finish", () => settle(Effect.succeed(stream.rowCount)))

    const socket = (client as unknown as { readonly connection: Connection }).connection.stream
    /**
     * A small chunk may still be in the socket's queue when the next chunk is requested, so it is copied. A chunk above
     * the high-water mark is sent completely before the next one is requested.
     */
    const ours = (chunk: string | Uint8Array) =>
      typeof chunk === "string" || chunk.length >= socket.writableHighWaterMark ? chunk : Buffer.from(chunk)

    let sliced = 0
    // One chunk at a time, the next when the stream has handed the last one to the socket. With more in flight,
    // pg-copy-streams 7 keeps a queue and continues to send it after an error of the server, when it has no connection:
    // a TypeError in a listener of the socket, which cannot be caught.
    const send = ({ done, value }: IteratorResult<string | Uint8Array, unknown>): void => {
      if (isSettled) return
      if (done === true) return void stream.end()
      sliced += value.length
      stream.write(ours(value), (error) => {
        if (error !== null && error !== undefined) return
        if (sliced < sliceSize) return next()
        sliced = 0
        setImmediate(next)
      })
    }
    const next = (): void => {
      if (isSettled) return
      try {
        const result = iterator.next()
        if (!(result instanceof Promise)) return send(result)
        // The chunks come from another connection.
        result.then(send, (error) =>
          settle(Effect.andThen(destroy(client), Effect.fail(DatabaseError.from("copy")(error))))
        )
      } catch (defect) {
        settle(Effect.andThen(destroy(client), Effect.die(defect)))
      }
    }
    client.query(stream)
    next()

    return Effect.suspend(() => {
      isSettled = true
      end(iterator)
      return destroy(client)
    })
  })

/**
 * The output of `COPY (SELECT …) TO STDOUT`, for {@link copyIn} into another database or for a file; memory does not grow
 * with it. At its end `rowCount` is the number of rows.
 */
export const copyOut = (client: Client, sqlCopyStatement: string): CopyToStreamQuery =>
  client.query(to(sqlCopyStatement))

const takesInput = /^\s*copy\s[^;]*\sfrom\s+stdin\b[^;]*;?\s*$/i

const notCopy = (statement: string) =>
  new DatabaseError({
    operation: "copy",
    code: undefined,
    message: `"${statement}" is not of the form COPY ... FROM STDIN`,
    isRetryable: false
  })

/** Lets a generator run its `finally`; its errors are ignored. */
const end = (iterator: Iterator<unknown> | AsyncIterator<unknown>) => {
  try {
    const ended = iterator.return?.()
    if (ended instanceof Promise) ended.catch(() => {})
  } catch {
    // The outcome of the copy is decided already.
  }
}

/** A value as COPY text: backslash, tab, newline and carriage return escaped. The caller writes NULL (`\N`). */
export const escapeCopyText = (value: string): string =>
  needsEscape.test(value) ? value.replace(special, (character) => escapes[character] ?? character) : value

const needsEscape = /[\\\t\n\r]/
const special = /[\\\t\n\r]/g
const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" }
