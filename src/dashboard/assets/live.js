/**
 * Keeps the main part of a page as it stands now: asks for it every two seconds while somebody can see it, every six where
 * nothing has changed for a while and nobody does anything, and morphs what changed into place. Focus, selection, scroll,
 * open details and forms that are being filled in stay as they are. While nobody answers, the page says so, and goes on
 * by itself.
 */
;(() => {
  "use strict"
  const everyMs = 2000
  const restingMs = 6000
  /** After so many answers that brought nothing new. */
  const restsAfter = 10
  let unchanged = 0
  let askedAt = 0
  let etag = null
  let isAsking = false
  let answeredAt = new Date()

  const main = () => document.querySelector("main[hx-trigger]")
  const notice = (text) => {
    const place = document.getElementById("notice")
    if (place !== null && place.textContent !== text) place.textContent = text
  }

  // A form with a search in it is somebody's hand at work; what details are open is for who reads to say.
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
  // What was seen last says more than that nothing can be said now.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.xhr.status >= 500) detail.shouldSwap = false
  })
  document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => {
    isAsking = false
    unchanged = xhr.status === 304 ? unchanged + 1 : 0
    if (xhr.status === 0) {
      etag = null
      notice(
        `Tributary does not answer. What you see is as of ${answeredAt.toLocaleTimeString()}; this page goes on by itself.`
      )
      return
    }
    if (xhr.status >= 500) {
      etag = null
      notice(
        `This page cannot be brought up to date now. What you see is as of ${answeredAt.toLocaleTimeString()}; it goes on by itself.`
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
