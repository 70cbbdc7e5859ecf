// Everything has an address: the path says the page, the query its filters, and what follows the
// # what is open in it, such as #4/writer/state.
import { signal, batch, base } from './ui.js'

// decoded is what an encoded text says; one that is badly encoded stands for itself.
export const decoded = text => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// here is the path of the address, from the root of the page.
const here = () => (location.pathname.startsWith(base + '/') ? location.pathname.slice(base.length) : location.pathname)

const read = () => ({
  path: here(),
  query: Object.fromEntries(new URLSearchParams(location.search)),
  hash: decoded(location.hash.slice(1)),
})

export const route = signal(read())
addEventListener('popstate', () => (route.value = read()))
addEventListener('hashchange', () => (route.value = read()))

export function go(to, { replace } = {}) {
  const next = new URL(to.startsWith('/') ? base + to : to, location.href)
  history[replace ? 'replaceState' : 'pushState'](null, '', next)
  const before = route.value.path
  batch(() => (route.value = read()))
  if (before !== route.value.path) scrollTo(0, 0)
}

// setQuery changes the filters in the address, without a step in the history.
export function setQuery(values) {
  const q = new URLSearchParams(location.search)
  for (const [key, value] of Object.entries(values)) value ? q.set(key, value) : q.delete(key)
  go(here() + (q.size ? '?' + q : '') + location.hash, { replace: true })
}

export function setHash(hash) {
  go(here() + location.search + (hash ? '#' + encodeURI(hash) : ''), { replace: true })
}

// compared is the address of the comparison of two runs.
export const compared = (a, b) => `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`

// Links within the page do not load it again.
document.addEventListener('click', e => {
  const a = e.target.closest && e.target.closest('a[href^="/"]')
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.hasAttribute('download')) return
  if (a.pathname.startsWith(base + '/api/')) return
  e.preventDefault()
  go(a.href)
})
