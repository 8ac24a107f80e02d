/**
 * A lint rule: a test uses no time of the machine and no chance.
 *
 * A test that sleeps, measures or draws passes or fails by the load of the machine. `it.effect` gives it a clock that
 * only the test moves; `test/support/numbers.ts` gives it numbers from a seed.
 */

/** Members of an object, and what to use in their place. */
const members = {
  "Date.now": "Clock.currentTimeMillis",
  "Effect.sleep": "TestClock.adjust, or wait for the event",
  "Math.random": "numbers() of test/support/numbers.ts",
  "it.live": "it.effect",
  "performance.now": "no duration: assert what happened"
}
const timers = new Set(["setInterval", "setTimeout"])
const timerModules = new Set(["node:timers", "node:timers/promises", "timers", "timers/promises"])

const noMachineTime = {
  create(context) {
    const report = (node, name, instead) =>
      context.report({ node, message: `${name} depends on the machine: use ${instead}` })
    return {
      MemberExpression({ object, property }) {
        const name = `${object.name}.${property.name}`
        if (Object.hasOwn(members, name)) report(property, name, members[name])
      },
      CallExpression({ callee }) {
        const name = callee.name ?? (callee.object?.name === "globalThis" ? callee.property.name : undefined)
        if (timers.has(name)) report(callee, name, members["Effect.sleep"])
      },
      NewExpression({ callee, arguments: args }) {
        if (callee.name === "Date" && args.length === 0) report(callee, "new Date()", members["Date.now"])
      },
      ImportDeclaration(node) {
        if (timerModules.has(node.source.value)) report(node, node.source.value, members["Effect.sleep"])
      },
      Property({ key }) {
        if (key.name === "excludeTestServices") report(key, key.name, "the test clock")
      }
    }
  }
}

export default { meta: { name: "time" }, rules: { "no-machine-time": noMachineTime } }
