// What the page asks of the server. Nothing else in the page calls fetch.
import { signal, base } from './ui.js'
import { t } from './words.js'

// Problem is an answer of the server that says what is wrong (RFC 9457).
class Problem extends Error {
  constructor(status, body) {
    const { title, detail } = body
    super(title && detail && title !== detail ? `${title}: ${detail}` : detail || title || `HTTP ${status}`)
    this.status = status
    this.body = body
    this.problems = body.problems || []
  }
}

// Away is that no server answers: it is stopped, or a proxy says so for it.
class Away extends Error {}

const cut = e => {
  throw e instanceof TypeError ? new Away(t('link.away')) : e
}

// away counts what waits for a server that is away: what a person sends, and what the page reads.
export const away = { sent: signal(0), read: signal(0) }

// patiently does what needs an answer again until the server is there. An abort of signal ends it.
async function patiently(counts, act, signal) {
  let waits = 0
  try {
    for (;;) {
      try {
        return await act()
      } catch (e) {
        if (!(e instanceof Away)) throw e
      }
      if (!waits++) counts.value++
      await new Promise(done => setTimeout(done, 1000))
      signal?.throwIfAborted()
    }
  } finally {
    if (waits) counts.value--
  }
}

const token = () => sessionStorage.getItem('token')
export const setToken = t => sessionStorage.setItem('token', t)

async function call(method, path, { body, type, headers = {}, signal } = {}) {
  const sent = { Accept: 'application/json', 'Accept-Language': document.documentElement.lang, ...headers }
  if (token()) sent.Authorization = 'Bearer ' + token()
  if (body !== undefined) {
    sent['Content-Type'] = type || 'application/json'
    if (!type) body = JSON.stringify(body)
  }
  const answer = await fetch(base + '/api/v1' + path, { method, body, headers: sent, signal }).catch(cut)
  if (!answer.ok) {
    let problem = {}
    try {
      problem = await answer.json()
    } catch {
      // Something before our server has answered, say a proxy.
      if ([502, 503, 504].includes(answer.status)) throw new Away(t('link.away'))
    }
    throw new Problem(answer.status, problem)
  }
  return answer
}

const json = (method, path, sent = {}) =>
  patiently(method === 'GET' ? away.read : away.sent, async () => {
    const answer = await call(method, path, sent)
    return answer.status === 204 ? null : await answer.json().catch(cut)
  }, sent.signal)

// once gives a request a key, so that sending it again does not do it again. A browser has
// randomUUID only for https and for its own machine.
const once = () => ({ 'Idempotency-Key': Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('') })
const run = id => '/runs/' + encodeURIComponent(id)
const definition = name => '/definitions/' + encodeURIComponent(name)
const query = values => {
  const q = new URLSearchParams()
  for (const [key, value] of Object.entries(values)) for (const one of [].concat(value)) if (one !== undefined && one !== '' && one !== null) q.append(key, one)
  return q.size ? '?' + q : ''
}

// saved downloads a file. A link would send no token.
async function saved(path, type, name) {
  const answer = await call('GET', path, { headers: { Accept: type } })
  const at = URL.createObjectURL(await answer.blob())
  const a = document.createElement('a')
  a.href = at
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(at), 60_000)
}

export const api = {
  get: path => json('GET', path),
  runs: filter => json('GET', '/runs' + query(filter)),
  followRuns: (filter, on, state) => follow('/runs' + query(filter), on, state),
  // An abort of signal gives up what waits for the server.
  start: (request, signal) => json('POST', '/runs', { body: request, headers: once(), signal }),
  iterations: (id, loop, from, limit) => json('GET', run(id) + '/view/iterations' + query({ loop, from, limit })),
  prompt: (id, address, request, signal) => json('GET', run(id) + '/prompt' + query({ address, request: request || '' }), { signal }),
  transcript: (id, address, signal) => json('GET', run(id) + '/transcript' + query({ address }), { signal }),
  step: (id, address) => json('GET', run(id) + '/view/step' + query({ address })),
  // ranWith is the definition that a run keeps.
  ranWith: id => json('GET', run(id) + '/definition'),
  act: (id, verb, body = {}, signal) => json('POST', run(id) + ':' + verb, { body, headers: once(), signal }),
  remove: (id, signal) => json('DELETE', run(id), { signal }),
  // The files of a run's workspace that differ between two places; see the server's routes.
  files: (id, places) => json('GET', run(id) + '/files' + query(places)),
  filesByIteration: id => json('GET', run(id) + '/files/iterations'),
  fileDiff: (id, path, places) => json('GET', run(id) + '/files/diff' + query({ path, ...places })),
  savePatch: id => saved(run(id) + '/files/patch', 'text/x-diff', id + '.patch'),
  download: id => saved(run(id) + '/export', 'application/jsonl', id + '.jsonl'),

  removeDefinition: (name, etag, signal) => json('DELETE', definition(name), { headers: { 'If-Match': etag }, signal }),
  evals: () => json('GET', '/evals'),
  evalReport: id => json('GET', '/evals/' + encodeURIComponent(id)),
  definitions: () => json('GET', '/definitions'),
  schedules: () => json('GET', '/schedules'),
  // verb is pause or continue.
  actOnSchedule: (name, verb) => json('POST', '/schedules/' + encodeURIComponent(name) + ':' + verb, { body: {} }),
  definition: name => json('GET', definition(name)),
  async save(name, text, etag, signal) {
    const headers = etag ? { 'If-Match': etag } : { 'If-None-Match': '*' }
    const answer = await patiently(away.sent, () => call('PUT', definition(name), { body: text, type: 'application/yaml', headers }), signal)
    return answer.headers.get('ETag')
  },
  outline: (text, name, signal) => json('POST', '/definitions:outline' + query({ name }), { body: text, type: 'application/yaml', signal }),
  edit: (text, changes) => json('POST', '/definitions:edit', { body: { text, changes } }),
  try: request => json('POST', '/definitions:try', { body: request }),
  complete: async (text, line, column) => {
    // Nobody waits for it: an editor without completions is still one.
    const answer = await call('POST', '/definitions:complete', { body: { text, line, column } }).catch(() => null)
    return answer ? answer.json() : {}
  },
  study: choice => json('GET', '/runs:backtest' + query(choice)),
}

// follow keeps a stream of server-sent events open, from where it was, as long as the page can
// be seen: a browser allows six connections to a host, and a hidden tab has no use for one.
// on is called with the name and the value of each; state with 'live', 'off' or 'gone'.
export function follow(path, on, state = () => {}) {
  let source, closed, last, again, wait = 500
  const open = () => {
    if (closed || source || document.hidden) return
    const at = last === undefined ? '' : (path.includes('?') ? '&' : '?') + 'after=' + encodeURIComponent(last)
    const control = new AbortController()
    source = control
    read(path + at, control.signal).then(ended => finish(ended), err => finish(err.name === 'AbortError' ? 'hidden' : err))
  }
  const finish = how => {
    source = undefined
    if (closed || how === 'hidden') return
    if (how === 'done') return state('done')
    if (how instanceof Problem && how.status < 500) return state('gone', how)
    state('off')
    again = setTimeout(open, wait)
    wait = Math.min(wait * 2, 10_000)
  }
  // read is EventSource with headers: a token does not belong into an address.
  const read = async (at, signal) => {
    const answer = await call('GET', at, { headers: { Accept: 'text/event-stream' }, signal })
    state('live')
    wait = 500
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = '', done = false
    for (;;) {
      const { value, done: over } = await reader.read()
      if (over) return done ? 'done' : 'cut'
      text += value
      const parts = text.split(/\r?\n\r?\n/)
      text = parts.pop()
      for (const part of parts) {
        let name = 'message', data = ''
        for (const line of part.split(/\r?\n/)) {
          if (line.startsWith('event:')) name = line.slice(6).trim()
          else if (line.startsWith('data:')) data += line.slice(5).trimStart() + '\n'
          else if (line.startsWith('id:')) last = line.slice(3).trim()
        }
        if (name === 'end') done = true
        if (data) on(name, JSON.parse(data))
      }
    }
  }
  const seen = () => {
    if (!document.hidden) open()
    else if (source) source.abort()
  }
  document.addEventListener('visibilitychange', seen)
  open()
  return () => {
    closed = true
    clearTimeout(again)
    document.removeEventListener('visibilitychange', seen)
    if (source) source.abort()
  }
}
