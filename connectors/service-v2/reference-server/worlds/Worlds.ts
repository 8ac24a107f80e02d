/**
 * The worlds of a server and their snapshots.
 *
 * Promise: worlds share nothing that one of them can change: each has its own records, clock, tokens, limits, faults,
 * subscriptions and journal. Making one costs the same for every number of records, because records are shared until a
 * world writes their table. A snapshot never changes.
 */
import { ControlError } from "../control/Input.ts"
import type { SeedOptions } from "../seed/seed.ts"
import { readSnapshot } from "../snapshot/read.ts"
import type { World, WorldState } from "../World.ts"

/** Names of worlds and snapshots, as they stand in addresses. */
export const nameGrammar = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** A program that never deletes its worlds or snapshots fails, before it fills the memory of the server. */
export const worldsMax = 1_000
export const snapshotsMax = 1_000

/** The path of a world before the paths of its API and its control plane; empty for the main world. */
export const pathOf = (name: string | null): string => (name === null ? "" : `/worlds/${name}`)

const worldPath = /^\/worlds\/([^/?]+)(?=\/)/

/** The world's name at the beginning of an address, and the rest of the address. */
export const splitWorld = (url: string): { readonly name: string | null; readonly url: string } => {
  const match = worldPath.exec(url)
  return match === null ? { name: null, url } : { name: match[1]!, url: url.slice(match[0].length) }
}

/** The first free name of `world-1`, `world-2` and so on. */
const freeName = (prefix: string, used: ReadonlyMap<string, unknown>): string => {
  let number = 1
  while (used.has(`${prefix}-${number}`)) number++
  return `${prefix}-${number}`
}

export class Worlds {
  /** The world without a name. */
  readonly main: World
  /** The options with which the server was started, for a reset. */
  readonly started: SeedOptions
  private readonly make: (start: SeedOptions | WorldState) => World
  private readonly named = new Map<string, World>()
  private readonly snapshots = new Map<string, WorldState>()

  /** `start` is the state of the main world; default: the data of `started`. */
  constructor(
    make: (start: SeedOptions | WorldState) => World,
    started: SeedOptions,
    start: SeedOptions | WorldState = started
  ) {
    this.make = make
    this.started = started
    this.main = make(start)
  }

  /** The main world for null; undefined when there is no world of the name. */
  find(name: string | null): World | undefined {
    return name === null ? this.main : this.named.get(name)
  }

  names(): ReadonlyArray<string> {
    return [...this.named.keys()].sort()
  }

  all(): ReadonlyArray<World> {
    return [this.main, ...this.named.values()]
  }

  /** Makes a world from a snapshot, or from the present state of the main world; returns its name. */
  create(name: string | null, from: string | null): string {
    const chosen = name ?? freeName("world", this.named)
    if (this.named.has(chosen))
      throw new ControlError(`there is a world ${chosen} already: delete it, or choose another name`)
    if (this.named.size >= worldsMax)
      throw new ControlError(`there are ${worldsMax} worlds already, the most that a server has: delete some`)
    this.named.set(chosen, this.make(from === null ? this.main.state() : this.snapshot(from)))
    return chosen
  }

  /** Ends a world; its deliveries under way are cancelled. */
  remove(name: string): void {
    const world = this.named.get(name)
    if (world === undefined) throw new ControlError(`there is no world ${name}`)
    world.events.close()
    this.named.delete(name)
  }

  /** Keeps the present state of a world; returns the snapshot's name. */
  save(world: World, name: string | null): string {
    return this.keep(name ?? freeName("snapshot", this.snapshots), world.state())
  }

  keep(name: string, state: WorldState): string {
    if (this.snapshots.has(name)) {
      throw new ControlError(`there is a snapshot ${name} already: delete it, or choose another name`)
    }
    if (this.snapshots.size >= snapshotsMax)
      throw new ControlError(`there are ${snapshotsMax} snapshots already, the most that a server keeps: delete some`)
    this.snapshots.set(name, state)
    return name
  }

  snapshot(name: string): WorldState {
    const state = this.snapshots.get(name)
    if (state === undefined) throw new ControlError(`there is no snapshot ${name}; GET /snapshots lists them`)
    return state
  }

  snapshotNames(): ReadonlyArray<string> {
    return [...this.snapshots.keys()].sort()
  }

  forget(name: string): void {
    this.snapshot(name)
    this.snapshots.delete(name)
  }

  /** Reads the text of a snapshot file; throws a {@link ControlError} that names the line. */
  read(text: string): WorldState {
    return readSnapshot(this.main.store.catalogue, text)
  }

  async tick(): Promise<void> {
    await Promise.all(this.all().map((world) => world.events.tick()))
  }

  close(): void {
    for (const world of this.all()) world.events.close()
  }
}
