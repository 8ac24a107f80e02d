/**
 * Refreshes the main part of a page while the page is visible: after two seconds, or after the longer time that the last
 * answer requests, so that an open page costs little. After ten answers without a change and without input, the interval
 * is at least six seconds. Changes are morphed into place. Focus, selection, scroll position, open details and forms with
 * input stay. While the server does not answer, the page reports that and continues automatically.
 *
 * Keeps ages moving between the answers, and reports the reader's time zone, in which the server writes times.
 */
;(() => {
  "use strict"
  const everyMs = 2000
  const restingMs = 6000
  /** The longer interval begins after this many answers without a change. */
  const restsAfter = 10
  let unchanged = 0
  let requestedMs = 0
  let minimumMs = 0
  let inputMs = 0
  let etag = null
  let isAsking = false
  let answeredAt = new Date()

  const main = () => document.querySelector("main[hx-trigger]")
  /** What the pages belong to. */
  const name = () => document.querySelector(".brand")?.textContent ?? "The server"
  const write = (place, text) => {
    if (place !== null && place.textContent !== text) place.textContent = text
  }
  const timeOf = (at) => at.toLocaleTimeString("sv-SE")
  const notice = (text) => write(document.getElementById("notice"), text)

  // ------------------------------------------------------------------------------------------------------------- ages

  /** As `duration` of Components.ts; a test compares the two. */
  const duration = (ms) => {
    if (ms < 1000) return `${Math.round(ms)} ms`
    if (ms < 90000) return `${Math.round(ms / 1000)} s`
    if (ms < 90 * 60000) return `${Math.round(ms / 60000)} min`
    if (ms < 36 * 3600000) return `${Math.round(ms / 3600000)} h`
    return `${Math.round(ms / 86400000)} d`
  }
  const isAge = /^(?:in \d+ (?:ms|s|min|h|d)|\d+ (?:ms|s|min|h|d) ago)$/
  let aheadMs = null
  /** How far the clock of the data is ahead of this one; the page states its time. */
  const compareClocks = () => {
    const now = document.getElementById("main")?.dataset.now
    aheadMs = now === undefined ? null : Date.parse(now) - Date.now()
  }
  const moveAges = () => {
    if (aheadMs === null || document.visibilityState !== "visible") return
    const now = Date.now() + aheadMs
    for (const place of document.querySelectorAll("main time")) {
      if (!isAge.test(place.textContent)) continue
      const ms = now - Date.parse(place.dateTime)
      write(place, ms < 0 ? `in ${duration(-ms)}` : `${duration(ms)} ago`)
    }
  }

  // ------------------------------------------------------------------------------------------------------------- zone

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const showZone = () => {
    const shown = document.getElementById("main")?.dataset.zone
    const place = document.getElementById("zone")
    if (shown !== undefined) write(place, shown)
    return place === null || shown === zone
  }

  // ------------------------------------------------------------------------------------------------- times by keyboard

  // A table of many times is one stop of the Tab key: its first time, or the last one that had the focus. Arrow keys move
  // between its times.
  const limitStops = () => {
    for (const table of document.querySelectorAll(".table")) {
      const times = [...table.querySelectorAll("time")]
      const stop = times.find((time) => time === document.activeElement) ?? times.find(isStop) ?? times[0]
      for (const time of times) time.tabIndex = time === stop ? 0 : -1
    }
  }
  const stops = new WeakSet()
  const isStop = (time) => stops.has(time)
  const timesOf = (row, index) => [...(row?.cells[index]?.querySelectorAll("time") ?? [])]
  /** The time above or below in the same column. */
  const beyond = (time, direction) => {
    const cell = time.closest("th, td")
    for (let row = cell.parentElement[direction]; row !== null; row = row[direction]) {
      const [found] = timesOf(row, cell.cellIndex)
      if (found !== undefined) return found
    }
  }
  const nextTime = (time, key) => {
    if (key === "ArrowUp") return beyond(time, "previousElementSibling")
    if (key === "ArrowDown") return beyond(time, "nextElementSibling")
    const times = [...time.closest(".table").querySelectorAll("time")]
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key]
    return step === undefined ? undefined : times[times.indexOf(time) + step]
  }
  document.addEventListener("keydown", (event) => {
    const time = document.activeElement
    if (!(time instanceof HTMLTimeElement)) return
    if (event.key === "Escape") time.blur()
    if (time.closest(".table") === null || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
    const next = nextTime(time, event.key)
    if (next === undefined) return
    event.preventDefault()
    stops.delete(time)
    stops.add(next)
    next.focus()
    limitStops()
  })

  // ---------------------------------------------------------------------------------------------------------- refresh

  const hasLibraries = typeof htmx !== "undefined" && typeof Idiomorph !== "undefined"
  if (hasLibraries) {
    // A form may have input, and open details are the reader's choice: neither is replaced.
    Object.assign(Idiomorph.defaults, { ignoreActiveValue: true })
    Object.assign(Idiomorph.defaults.callbacks, {
      beforeNodeMorphed: (node) => !(node instanceof HTMLFormElement),
      beforeAttributeUpdated: (name, node) =>
        !(name === "open" && node instanceof HTMLDetailsElement) &&
        !(name === "tabindex" && node instanceof HTMLTimeElement)
    })
  } else notice("This page is not refreshed: a part of it could not be loaded. Load it again.")

  const ask = () => {
    const place = main()
    if (place === null || !hasLibraries || isAsking || document.visibilityState !== "visible") return
    const now = performance.now()
    const isResting = unchanged >= restsAfter
    // After input, one request is sent soon.
    const pauseMs = inputMs > requestedMs ? everyMs : Math.max(everyMs, minimumMs, isResting ? restingMs : 0)
    // A timer may run a little early.
    if (now - requestedMs < pauseMs - 100) return
    requestedMs = now
    isAsking = true
    htmx.trigger(place, "again")
  }
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (etag !== null) detail.headers["If-None-Match"] = etag
  })
  // The last state is more useful than an error page.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.xhr.status >= 500) detail.shouldSwap = false
  })
  document.addEventListener("htmx:afterSwap", () => {
    compareClocks()
    showZone()
    limitStops()
  })
  document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => {
    isAsking = false
    unchanged = xhr.status === 304 ? unchanged + 1 : 0
    minimumMs = Number(xhr.getResponseHeader("Tributary-Refresh-Ms") ?? 0)
    if (xhr.status === 0) {
      etag = null
      notice(
        `${name()} does not answer. This page shows the state of ${timeOf(answeredAt)} and refreshes automatically.`
      )
      return
    }
    if (xhr.status >= 500) {
      etag = null
      notice(
        `This page cannot be refreshed now. It shows the state of ${timeOf(answeredAt)} and refreshes automatically.`
      )
      return
    }
    answeredAt = new Date()
    if (xhr.status !== 304) etag = xhr.getResponseHeader("ETag")
    notice("")
    followVersion(xhr.getResponseHeader("Tributary-Assets"))
  })

  // During a rolling update, servers of two versions answer in turn. A version reloads a page once, while the reader does
  // nothing, and again only if that led to the other version and the reader did nothing for long.
  const idleMs = 5000
  const longIdleMs = 600000
  const followVersion = (version) => {
    const own = document.querySelector("meta[name=assets]")?.content
    if (version === null || own === undefined || version === own) return
    const known = new Set((sessionStorage.getItem("assets") ?? "").split(" ")).add(own)
    if (performance.now() - inputMs < (known.has(version) ? longIdleMs : idleMs)) return
    sessionStorage.setItem("assets", [...known, version].join(" "))
    location.reload()
  }

  const wake = () => {
    unchanged = 0
    inputMs = performance.now()
  }
  for (const sign of ["pointerdown", "keydown", "visibilitychange"]) document.addEventListener(sign, wake)
  document.addEventListener("visibilitychange", ask)
  setInterval(ask, everyMs)

  // -------------------------------------------------------------------------------------------------------- beginning

  compareClocks()
  limitStops()
  setInterval(moveAges, 1000)
  // The first page of a browser is in UTC. Its next state, and every later page, is in the reader's zone.
  if (!showZone()) {
    document.cookie = `tributary_zone=${zone}; path=/; max-age=31536000; samesite=strict${location.protocol === "https:" ? "; secure" : ""}`
    requestedMs = -everyMs
    // htmx is ready then.
    document.addEventListener("DOMContentLoaded", ask)
  }
})()
