/**
 * Refreshes the main part of a page: every two seconds while the page is visible, every six seconds after ten answers
 * without a change and without input. Changes are morphed into place. Focus, selection, scroll position, open details
 * and forms with input stay. While the server does not answer, the page reports that and continues automatically.
 */
;(() => {
  "use strict"
  const everyMs = 2000
  const restingMs = 6000
  /** The longer interval begins after this many answers without a change. */
  const restsAfter = 10
  let unchanged = 0
  let askedAt = 0
  let etag = null
  let isAsking = false
  let answeredAt = new Date()

  const main = () => document.querySelector("main[hx-trigger]")
  /** What the pages belong to. */
  const name = () => document.querySelector(".brand")?.textContent ?? "The server"
  const notice = (text) => {
    const place = document.getElementById("notice")
    if (place !== null && place.textContent !== text) place.textContent = text
  }

  // A form may have input, and open details are the reader's choice: neither is replaced.
  Object.assign(Idiomorph.defaults, { ignoreActiveValue: true })
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeMorphed: (node) => !(node instanceof HTMLFormElement),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement)
  })

  const ask = () => {
    const place = main()
    if (place === null || isAsking || document.visibilityState !== "visible") return
    const now = performance.now()
    if (unchanged >= restsAfter && now - askedAt < restingMs - everyMs / 2) return
    askedAt = now
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
  document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => {
    isAsking = false
    unchanged = xhr.status === 304 ? unchanged + 1 : 0
    if (xhr.status === 0) {
      etag = null
      notice(
        `${name()} does not answer. This page shows the state of ${answeredAt.toLocaleTimeString()} and refreshes automatically.`
      )
      return
    }
    if (xhr.status >= 500) {
      etag = null
      notice(
        `This page cannot be refreshed now. It shows the state of ${answeredAt.toLocaleTimeString()} and refreshes automatically.`
      )
      return
    }
    answeredAt = new Date()
    if (xhr.status !== 304) etag = xhr.getResponseHeader("ETag")
    notice("")
    const version = xhr.getResponseHeader("Tributary-Assets")
    if (version !== null && version !== document.querySelector("meta[name=assets]")?.content) location.reload()
  })
  const wake = () => {
    unchanged = 0
  }
  for (const sign of ["pointerdown", "keydown", "visibilitychange"]) document.addEventListener(sign, wake)
  document.addEventListener("visibilitychange", ask)
  setInterval(ask, everyMs)
})()
