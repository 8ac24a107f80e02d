/** The desired state of subscriptions: which actions lead to it. */
import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import type { Subscription } from "../../src/connector/Subscriptions.ts"
import { actionsFor, descriptionOf, type KnownState } from "../../src/subscriptions/DesiredState.ts"
import type { StoredSecrets } from "../../src/subscriptions/SigningSecrets.ts"

const desired = { url: "https://hooks.example.com/hooks/main", events: ["a.created", "a.updated"] }
const stored: StoredSecrets = { state: "stored", next: null }

const subscription = (id: string, more: Partial<Subscription> = {}): Subscription => ({
  id,
  url: desired.url,
  events: desired.events,
  description: descriptionOf("main"),
  paused: false,
  failCount: 0,
  lastDeliveryAt: null,
  disabledAt: null,
  cancelled: false,
  ...more
})

/** `Change 1` for each action; the secrets are those of the subscriptions with these ids. */
const actions = (
  listed: ReadonlyArray<Subscription>,
  secrets: Readonly<Record<string, StoredSecrets>>,
  more: Partial<KnownState> = {}
) =>
  actionsFor(desired, {
    name: "main",
    listed,
    secrets: new Map(Object.entries(secrets)),
    isConfigured: false,
    isUnauthorized: false,
    ofOthers: [],
    ...more
  }).map((action) => ("subscription" in action ? `${action._tag} ${action.subscription.id}` : action._tag))

describe("the desired state of subscriptions", () => {
  it("creates one where none is ours, and changes none that matches", () => {
    const elsewhere = subscription("7", { url: "https://elsewhere.example.com" })
    assert.deepStrictEqual(actions([elsewhere], {}), ["Create"])
    assert.deepStrictEqual(actions([elsewhere, subscription("8")], { "8": stored }), [])
    const spelt = subscription("8", {
      url: "https://HOOKS.example.com:443/hooks/main",
      events: desired.events.toReversed()
    })
    assert.deepStrictEqual(actions([spelt], { "8": stored }), [])
  })

  it("changes what does not deliver, and cancels all but the oldest with a secret", () => {
    for (const state of [{ paused: true }, { disabledAt: "2026-01-01T00:00:00Z" }, { events: ["a.created"] }])
      assert.deepStrictEqual(actions([subscription("8", state)], { "8": stored }), ["Change 8"])
    const three = [subscription("10"), subscription("9"), subscription("8")]
    assert.deepStrictEqual(actions(three, { "9": stored, "10": stored }), ["Cancel 8", "Cancel 10"])
  })

  it("moves the only one that was ours, and warns of several", () => {
    const [one, two] = ["8", "9"].map((id) => subscription(id, { url: "https://old.example.com/hooks/main" }))
    assert.deepStrictEqual(actions([one!], { "8": stored }), ["Change 8"])
    assert.deepStrictEqual(actions([one!, two!], { "8": stored, "9": stored }), ["Create", "Warn", "Warn"])
    const ofOthers = [{ id: "8", url: one!.url, company: "other" }]
    assert.deepStrictEqual(actions([one!], {}, { ofOthers }), ["Create", "Warn"])
  })

  it("finishes a rotation before another, and leaves configured secrets alone", () => {
    const next = { id: 1n, secret: Redacted.make("next") }
    assert.deepStrictEqual(actions([subscription("8")], { "8": { ...stored, next } }), ["FinishRotation 8"])
    assert.deepStrictEqual(actions([subscription("8")], {}), ["Rotate 8"])
    assert.deepStrictEqual(actions([subscription("8")], { "8": stored }, { isUnauthorized: true }), ["Rotate 8"])
    const foreign = subscription("8", { description: "made by hand" })
    assert.deepStrictEqual(actions([foreign], {}, { isConfigured: true }), [])
    assert.deepStrictEqual(actions([foreign], {}, { isConfigured: true, isUnauthorized: true }), ["Warn"])
  })
})
