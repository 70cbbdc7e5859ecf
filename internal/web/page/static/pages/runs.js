import { html, useEffect, useRef, useState, useKeys } from '../ui.js'
import { route, setQuery, compared } from '../route.js'
import { t } from '../words.js'
import { api, away } from '../api.js'
import { link, lock, operates, writes } from '../server.js'
import { score, duration, clock, exactTime, dayName, none } from '../format.js'
import { Icon } from '../parts/icon.js'
import { Status, limits, ofRow } from '../parts/status.js'
import { Spark } from '../parts/chart.js'
import { New } from '../parts/new.js'

// A loop ends by a criterion of its own, or at one of limits.
const own = ['exit_loop', 'escalated', 'impossible', 'blocked', 'condition', 'target_reached', 'converged', 'no_progress']

// asked is what each filter asks of the server.
const asked = {
  all: {}, asks: { status: 'waiting' }, running: { status: 'running' }, completed: { status: 'completed', stop_reason: own },
  limit: { status: 'completed', stop_reason: limits }, failed: { status: 'failed' }, hold: { status: ['paused', 'interrupted', 'canceled', 'not_begun'] },
}

// shown is a row in the words of the page.
const shown = r => ({ ...r, id: r.run, status: ofRow(r.status, r.stop_reason), live: r.status === 'running' })

// most is how many runs the server sends at once.
const most = 500

const filters = Object.keys(asked)

// options are the values that the rows have, and the one that is chosen.
const options = (values, chosen) => [...new Set([...values, chosen])].filter(Boolean).sort()

// groups puts what goes on above the days.
function groups(runs) {
  const out = []
  const live = runs.filter(r => r.live || r.status === 'asks')
  if (live.length) out.push([t('now'), live])
  for (const r of runs) {
    if (live.includes(r)) continue
    const day = dayName(r.updated)
    const last = out[out.length - 1]
    if (last && last[0] === day && last !== out[0]) last[1].push(r)
    else if (last && last[0] === day && !live.length) last[1].push(r)
    else out.push([day, [r]])
  }
  return out
}

// why says in a line what the run waits for, or what it came to.
function why(r) {
  if (r.waits?.length) return r.waits[0].text
  if (r.error) return r.error.split('\n')[0]
  if (r.paused) return r.paused === 'by the page' ? t('paused.page') : r.paused
  return r.stop_reason ? t('reason.' + r.stop_reason) : ''
}

// Scores draws the last scores of a run.
function Scores({ run: r }) {
  if (!r.scores) return r.score === undefined && r.iteration ? html`<span class="mute small">${t('unscored')}</span>` : ''
  return html`<${Spark} scores=${r.scores} target=${r.target} end=${r.live ? '' : r.status === 'limit' ? 'warn' : r.status === 'failed' ? 'bad' : r.status === 'completed' ? 'good' : ''} />`
}

function Row({ run: r, focused, onFocus, chosen, onChoose }) {
  const href = '/runs/' + encodeURIComponent(r.id)
  return html`<tr class=${focused ? 'focused' : ''} onMouseDown=${onFocus}>
    <td class="nowrap s1"><input type="checkbox" aria-label=${t('compare.this', { run: r.id })} checked=${chosen} onChange=${onChoose} /><${Status} status=${r.status} /></td>
    <td class="s2"><a class="ttl" href=${href} data-run=${r.id} onFocus=${onFocus}>${r.name || r.id}</a> <span class="mono mute small">${r.id}</span>${r.input && html`<span class="two input" title=${r.input}>${r.input}</span>`}</td>
    <td class="num s3">${r.iteration || none}</td>
    <td class="num s4"><b>${r.score === undefined ? html`<span class="mute">${none}</span>` : score(r.score)}</b></td>
    <td class="s5"><${Scores} run=${r} /></td>
    <td class="s6">${why(r)}${r.waits?.length > 0 && r.deadline && html`<span class="two">${t('until', { time: clock(r.deadline) })}</span>`}</td>
    <td class="num soft s7">${r.seconds ? duration(r.seconds * 1e9) : none}</td>
    <td class="num mute s9"><time title=${exactTime(r.started)}>${clock(r.started)}</time></td>
  </tr>`
}

// Runs is the list: what asks and what goes on first, then the days.
export function Runs() {
  const q = route.value.query
  const [page, setPage] = useState(null)
  const [problem, setProblem] = useState('')
  const [limit, setLimit] = useState(50)
  const [at, setAt] = useState(-1)
  const [chosen, setChosen] = useState([]) // two to compare: a third takes the place of the first
  const choose = r => setChosen(chosen.some(c => c.id === r.id) ? chosen.filter(c => c.id !== r.id) : [...chosen.slice(-1), r])
  const [older, newer] = [...chosen].sort((a, b) => Date.parse(a.started) - Date.parse(b.started))
  const [making, setMaking] = useState(false)
  const search = useRef()
  // Each text that is searched for is a stream of its own: it waits for a pause in the typing.
  const [typed, setTyped] = useState(q.q || '')
  const pause = useRef()
  const type = text => {
    setTyped(text)
    clearTimeout(pause.current)
    pause.current = setTimeout(() => {
      pause.current = undefined
      setQuery({ q: text })
    }, 250)
  }
  useEffect(() => () => clearTimeout(pause.current), [])
  useEffect(() => {
    if (!pause.current) setTyped(q.q || '')
  }, [q.q])
  const filter = { ...asked[q.status || 'all'], definition: q.definition, q: q.q, limit, scores: 1, ...(q.reason && { stop_reason: q.reason }) }
  const key = JSON.stringify(filter)
  useEffect(() => {
    const take = p => {
      setPage({ ...p, runs: p.runs.map(shown) })
      setProblem('')
    }
    const stop = api.followRuns(filter, (name, value) => name === 'runs' && take(value), (s, e) => {
      if (s === 'gone' && e?.status === 401) return lock()
      if (s === 'gone') setProblem(e?.message || '')
      link.value = s === 'gone' ? 'idle' : s
    })
    // Nothing is streamed to a page that cannot be seen; its title says when a run asks.
    const timer = setInterval(() => document.hidden && !away.read.value && api.runs(filter).then(take, () => {}), 10_000)
    return () => {
      stop()
      clearInterval(timer)
      link.value = 'idle'
    }
  }, [key])
  useEffect(() => {
    const asks = (page?.runs || []).filter(r => r.status === 'asks').length
    document.title = (asks ? `? ${asks} · ` : '') + t('runs') + ' · Refrain'
  }, [page])
  const runs = page?.runs || []
  const parts = groups(runs)
  const flat = parts.flatMap(p => p[1])
  const moveTo = i => {
    const r = flat[Math.max(0, Math.min(flat.length - 1, i))]
    if (!r) return
    setAt(flat.indexOf(r))
    document.querySelector(`a[data-run="${CSS.escape(r.id)}"]`)?.focus()
  }
  useKeys({ j: () => moveTo(at + 1), k: () => moveTo(at - 1), '/': () => search.current.focus() }, [flat, at])
  const status = q.status || 'all'
  const count = s => runs.filter(r => r.status === s).length
  const names = options(runs.map(r => r.name), q.definition)
  const reasons = options(runs.map(r => r.stop_reason), q.reason)
  return html`<main id="main" tabindex="-1">
    <div class="row"><h1>${t('runs')}</h1><span class="mute">${[count('running') && t('n.running', { n: count('running') }), count('asks') && t('n.asks', { n: count('asks') })].filter(Boolean).join(', ')}</span>
      <span class="push row">${runs.length > 1 && (newer ? html`<a class="btn" href=${compared(older.id, newer.id)}>${t('compare.two', { a: older.id, b: newer.id })}</a>` : html`<button class="btn" disabled>${t(older ? 'compare.one' : 'compare.choose')}</button>`)} ${writes.value && html`<button class="btn" onClick=${() => setMaking(true)}><${Icon} name="plus" />${t('new.agent')}</button>`} ${operates.value && html`<a class="btn primary" href="/definitions"><${Icon} name="play" />${t('run.a.loop')}</a>`}</span></div>
    <div class="filters">
      <div class="seg scroll" role="group" aria-label=${t('status')}>${filters.map(f => html`<button key=${f} aria-pressed=${status === f} onClick=${() => setQuery({ status: f === 'all' ? '' : f })}>${f === 'asks' && html`<${Icon} name="ask" />`}${t('filter.' + f)}</button>`)}</div>
      <label class="sr" for="by-definition">${t('definition')}</label>
      <select id="by-definition" value=${q.definition || ''} onChange=${e => setQuery({ definition: e.target.value })}><option value="">${t('all.definitions')}</option>${names.map(d => html`<option key=${d} value=${d} selected=${d === q.definition}>${d}</option>`)}</select>
      <label class="sr" for="by-reason">${t('reason')}</label>
      <select id="by-reason" value=${q.reason || ''} onChange=${e => setQuery({ reason: e.target.value })}><option value="">${t('any.reason')}</option>${reasons.map(r => html`<option key=${r} value=${r} selected=${r === q.reason}>${t('reason.' + r)}</option>`)}</select>
      <div class="search push"><${Icon} name="find" /><label class="sr" for="search">${t('search')}</label><input id="search" ref=${search} type="search" placeholder=${t('search.in')} value=${typed} onInput=${e => type(e.target.value)} onKeyDown=${e => e.key === 'Escape' && e.target.blur()} /><kbd>/</kbd></div>
    </div>
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${page && !runs.length && html`<section class="panel pad empty"><p>${q.status || q.q || q.definition || q.reason ? t('runs.none.match') : t('runs.none')}</p>
      ${!(q.status || q.q) && html`<p class="soft">${t('runs.first')} <code>refrain run FILE</code></p>
        ${writes.value && html`<p class="row"><button class="btn" onClick=${() => setMaking(true)}><${Icon} name="plus" />${t('new.agent')}</button></p>`}`}</section>`}
    ${runs.length > 0 && html`<div class="panel clip"><table class="tbl runs"><caption class="sr">${t('runs.caption')}</caption>
      <thead><tr><th scope="col">${t('status')}</th><th scope="col">${t('run')}</th><th scope="col" class="num">${t('iteration')}</th><th scope="col" class="num">${t('best')}</th><th scope="col">${t('score')}</th><th scope="col">${t('why')}</th><th scope="col" class="num">${t('active')}</th><th scope="col" class="num">${t('started')}</th></tr></thead>
      <tbody>${parts.map(([day, list]) => html`<tr class="grp" key=${'g' + day}><td colspan="8">${day}</td></tr>${list.map(r => html`<${Row} key=${r.id} run=${r} focused=${flat[at]?.id === r.id} chosen=${chosen.some(c => c.id === r.id)} onChoose=${() => choose(r)} onFocus=${() => setAt(flat.indexOf(r))} />`)}`)}</tbody></table></div>
      <div class="row below"><span class="mute">${t('n.runs', { n: runs.length })}</span>
        ${page.next && (limit < most ? html`<button class="btn s" onClick=${() => setLimit(limit + 50)}>${t('more.50')}</button>` : html`<span class="mute">${t('more.search')}</span>`)}
        <span class="push mute small hide-s"><kbd>J</kbd> <kbd>K</kbd> ${t('keys.move')} · <kbd>Enter</kbd> ${t('keys.open')} · <kbd>/</kbd> ${t('keys.search')}</span></div>`}
    ${making && html`<${New} onClose=${() => setMaking(false)} />`}
  </main>`
}
