// The only file that imports the vendored libraries for drawing.
import { h, render } from './vendor/preact.js'
import { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from './vendor/hooks.js'
import { signal, computed, batch } from './vendor/signals.js'
import htm from './vendor/htm.js'

// base is the path below which the server is shown: "" at the root, or such as "/refrain".
export const base = new URL('.', import.meta.url).pathname.slice(0, -1)

// A link of the page is written from its root.
export const html = htm.bind((type, props, ...children) => h(type, type === 'a' && props?.href?.startsWith?.('/') ? { ...props, href: base + props.href } : props, ...children))
export { h, render, useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, signal, computed, batch }

// useKeys listens for keys of the page while no field has the focus.
export function useKeys(keys, deps = []) {
  useEffect(() => {
    const on = e => {
      if (e.ctrlKey || e.metaKey || e.altKey || !singleKeys.value) return
      const t = e.composedPath()[0]
      if (t.closest && t.closest('input, textarea, select, [contenteditable=true], dialog, .cm-editor')) return
      const f = keys[e.key]
      if (f && f(e) !== false) e.preventDefault()
    }
    document.addEventListener('keydown', on)
    return () => document.removeEventListener('keydown', on)
  }, deps)
}

// singleKeys says whether single letters are commands; people who dictate switch them off.
export const singleKeys = signal(localStorage.getItem('keys') !== 'off')
export function setSingleKeys(on) {
  singleKeys.value = on
  localStorage.setItem('keys', on ? 'on' : 'off')
}

// useWidth is the width of an element's box in pixels, so that a chart is drawn at its size.
export function useWidth(ref, before = 720) {
  const [width, set] = useState(before)
  useLayoutEffect(() => {
    const seen = new ResizeObserver(entries => set(Math.round(entries[0].contentRect.width)))
    if (ref.current) {
      set(Math.round(ref.current.getBoundingClientRect().width))
      seen.observe(ref.current)
    }
    return () => seen.disconnect()
  }, [])
  return width
}

// announce says a sentence to a screen reader, once.
export function announce(text) {
  const at = document.getElementById('said')
  if (at) at.textContent = text
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    return done
  }
}

// focusField opens what a field is in, and gives it the focus.
export function focusField(id) {
  const field = document.getElementById(id)
  for (let box = field?.closest('details'); box; box = box.parentElement.closest('details')) box.open = true
  field?.focus()
}
