import { html, useEffect, useMemo, useRef, useState, useKeys, announce } from '../ui.js'
import { route, go, setHash, compared } from '../route.js'
import { t, lang } from '../words.js'
import { api, away, follow } from '../api.js'
import { allowed, link, lock, operates, readOnly, writes } from '../server.js'
import { Store } from '../store.js'
import { whole, score, offBy, duration, percent, money, bytes, clock, exactTime, none } from '../format.js'
import { Copy } from '../parts/copy.js'
import { Icon } from '../parts/icon.js'
import { Status, over } from '../parts/status.js'
import { Notify, useNotices } from '../parts/notify.js'
import { Ledger } from '../parts/ledger.js'
import { Chart, ChartTable } from '../parts/chart.js'
import { Tree } from '../parts/tree.js'
import { Inspector, tabs } from '../parts/inspector.js'
import { Question } from '../parts/question.js'
import { Ask, limitFields, limitsOf } from '../parts/ask.js'
import { Fork } from '../parts/fork.js'
import { Race } from '../parts/race.js'
import { RunIt, readyToRun } from '../parts/run-it.js'
import { Findings } from '../parts/findings.js'
import { AgentName, shownName } from '../parts/agent-name.js'
import { Changes, HandOver, useFiles } from '../parts/files.js'

// useRun keeps a store in step with a run.
export function useRun(id) {
  const store = useMemo(() => new Store(id), [id])
  const [problem, setProblem] = useState('')
  useEffect(() => {
    const stop = follow(`/runs/${encodeURIComponent(id)}/view?lang=${lang.value}`, (name, value) => name === 'view' && store.setHead(value), (s, e) => {
      if (s === 'gone' && e?.status === 401) lock()
      else if (s === 'gone') setProblem(e?.message || t('link.gone'))
      link.value = s === 'done' || s === 'gone' ? 'idle' : s
    })
    // Nothing is streamed to a page that cannot be seen; its title says when the run asks or has ended.
    const timer = setInterval(() => document.hidden && !away.read.value && api.get(`/runs/${encodeURIComponent(id)}/view?lang=${lang.value}`).then(head => store.setHead(head), () => {}), 5_000)
    return () => {
      stop()
      clearInterval(timer)
      link.value = 'idle'
    }
  }, [id, lang.value])
  return [store, problem]
}

// useSince is the active time since the last event, in nanoseconds. What the server tells of time is as of
// that event; the head and the ledger add this to it.
export function useSince(head) {
  const [extra, setExtra] = useState(0)
  useEffect(() => {
    setExtra(0)
    if (!head?.clock_running) return
    const began = performance.now()
    const timer = setInterval(() => link.value === 'live' && setExtra((performance.now() - began) * 1e6), 1000)
    return () => clearInterval(timer)
  }, [head?.seq, head?.clock_running])
  return extra
}

function title(head) {
  const n = head.keys.iteration ? `${head.keys.iteration}${head.keys.of ? '/' + head.keys.of : ''}` : ''
  const best = head.keys.best ? score(head.keys.best.score) : ''
  const sign = { running: '●', asks: '?', completed: '✓', limit: '■', failed: '×' }[head.status] || '‖'
  return [sign, n, best && '· ' + best, shownName(head.name, head.looks), '· Refrain'].filter(Boolean).join(' ')
}

function Sentence({ head, since }) {
  const s = head.sentence
  if (!s) return null
  return html`<section class="panel lead" aria-label=${t('how.it.stands')}>
    <p class="say"><b>${s.lead}</b> ${s.rest}${s.basis && html`<span class="basis">${s.basis}</span>`}</p>
    <${Figures} head=${head} since=${since} />
  </section>`
}

// cacheShare says how much of the input came from the provider's cache, and what that has saved.
const cacheShare = c => html`${percent(c.share)} ${c.saved ? html`<span>${t(c.saved > 0 ? 'cache.saved' : 'cache.more', { cost: money(Math.abs(c.saved)) })}</span>` : ''}`

function Figures({ head, since }) {
  const k = head.keys
  return html`<dl class="keys">
    <div><dt>${t('iteration')}</dt><dd>${k.iteration || none} ${k.of > 0 && html`<span>${t('of', { bound: k.of })}</span>`}</dd></div>
    ${k.best && html`<div><dt>${t('best')}</dt><dd>${offBy(k.best.score, k.best.off_by)} <span>${t('in.n', { n: k.best.iteration })}</span></dd></div>`}
    <div><dt>${t('active')}</dt><dd>${duration(head.active_ns + since)}${head.forked_ns > 0 && html` <span>${t('with.fork', { time: duration(head.forked_ns + head.active_ns + since) })}</span>`}</dd></div>
    ${k.tokens > 0 && html`<div><dt>${t('tokens')}</dt><dd>${whole(k.tokens)}</dd></div>`}
    ${k.cost !== undefined && html`<div><dt>${t('cost')}</dt><dd>${k.cost_at_least && html`<span>${t('at.least')}</span> `}${money(k.cost)}</dd></div>`}
    ${k.cache && html`<div><dt>${t('from.cache')}</dt><dd>${cacheShare(k.cache)}</dd></div>`}
  </dl>`
}

// resultFrom says which step and iteration a result is of.
export const resultFrom = ({ result: r, looks }) => [r.by && shownName(r.by, looks), r.iteration > 0 && t('from.iteration', { n: r.iteration }), r.best && t('the.best')].filter(Boolean).join(', ')

function Result({ head, onState, files, onSee, say }) {
  const r = head.result
  return html`<section class=${'panel result ' + (head.loop?.stop?.kind || (head.status === 'failed' ? 'bad' : 'good'))} aria-labelledby="h-result">
    <header><h2 id="h-result">${t('result')}</h2><span class="mute small">${r && resultFrom(head)}</span>
      ${r && html`<span class="push row"><${Copy} text=${r.text} label=${t('copy')} /></span>`}</header>
    ${r ? html`<div class="pad resulttext" tabindex="0" role="group" aria-label=${t('result')}><p class="prose pre">${r.text}</p></div>`
        : html`<div class="pad"><p class="soft">${t('result.none')} ${onState && html`<button class="linklike" onClick=${onState}>${t('result.state')}</button>`}</p></div>`}
    ${head.files && html`<${HandOver} head=${head} files=${files} onSee=${onSee} say=${say} />`}
    <footer><${Figures} head=${head} since=${0} /></footer>
  </section>`
}

// ahead is what runs now in the iteration under way of a loop, and what begins after it; next is empty if that is another iteration.
function ahead(store, address) {
  const loop = store.loop(address)
  const below = steps => {
    const at = (steps || []).findIndex(s => s.status === 'running' || s.status === 'paused')
    if (at < 0) return { next: (steps || []).find(s => s.status === 'pending')?.name }
    const s = steps[at]
    const inner = s.loop ? ahead(store, s.address) : s.steps?.length ? below(s.steps) : {}
    const next = s.status === 'paused' ? s.name : steps.slice(at + 1).find(s => s.status === 'pending')?.name
    return { now: inner.now || s.name, next: inner.next || next }
  }
  return below(loop?.iterations.get(loop.total)?.steps)
}

// Standstill says that a pause was taken, and before which step it comes, or who has paused the run and how it goes on.
function Standstill({ head, store, pausing }) {
  if (!pausing && !head.paused) return null
  const { now, next } = head.loop ? ahead(store, head.loop.address) : {}
  const shown = name => shownName(name, head.looks)
  if (!head.paused) return html`<p class="banner" role="status"><${Icon} name="pause" /><span><b>${t('pausing')}</b> ${t(!now ? 'pausing.soon' : next ? 'pausing.next' : 'pausing.after', { now: now && shown(now), next: next && shown(next) })}</span></p>`
  const { by, reason } = head.paused
  return html`<p class="banner" role="status"><${Icon} name="pause" /><span><b>${by === thePage ? t('paused.page') : by ? t('paused.by', { by }) : t('paused')}</b> ${reason && html`<q>${reason}</q>`} ${head.can?.resume && (next ? t('resume.next', { step: shown(next) }) : t('resume.iteration'))}</span></p>`
}

function Actions({ head, say, ask, pausing, setPausing }) {
  const can = head.can || {}
  const act = async (verb, body) => {
    try {
      await api.act(head.id, verb, body)
    } catch (e) {
      say(e.message)
      setPausing(false)
    }
  }
  const pause = () => {
    setPausing(true)
    act('pause', { by: thePage })
  }
  const again = () => Promise.all([readyToRun(head.definition), api.ranWith(head.id)]).then(([outline, before]) => ask({ again: { outline, before } }), e => say(e.message))
  const save = () => api.download(head.id).catch(e => say(e.message))
  return html`<div class="acts">
    ${!over(head) && !readOnly.value && html`<${Notify} say=${say} />`}
    ${can.pause && html`<button class="btn" disabled=${pausing} onClick=${pause}><${Icon} name="pause" />${t(pausing ? 'status.pausing' : 'pause')}</button>`}
    ${can.resume && html`<button class="btn primary" onClick=${() => act('resume')}><${Icon} name="play" />${t('resume')}</button>`}
    ${can.retry && html`<button class="btn primary" onClick=${() => act('resume', { retry: true })}><${Icon} name="play" />${t('try.again')}</button>`}
    ${over(head) && head.definition && operates.value && html`<button class="btn" onClick=${again}><${Icon} name="play" />${t('run.again')}</button>`}
    ${can.more && html`<button class="btn" onClick=${() => ask('more')}><${Icon} name="play" />${t('go.on.more')}</button>`}
    ${can.fork && html`<button class="btn" onClick=${() => ask('fork')}><${Icon} name="fork" />${t('fork')}</button>`}
    ${over(head) && head.loop?.scored && html`<a class="btn" href=${'/backtest?definition=' + encodeURIComponent(head.name)}>${t('backtest.it')}</a>`}
    ${writes.value && (head.status === 'completed' || head.status === 'limit') && html`<button class="btn" onClick=${() => ask('case')}>${t('make.case')}</button>`}
    ${can.cancel && html`<button class="btn" onClick=${() => ask('cancel')}>${t('cancel')}</button>`}
    <button class="btn" onClick=${save}><${Icon} name="download" />${t('export')}</button>
    ${can.remove && html`<button class="btn danger" onClick=${() => ask('remove')}>${t('remove.it')}</button>`}
  </div>`
}

function Checkpoints({ head, onFork, onMore }) {
  const list = head.checkpoints || []
  if (!list.length) return null
  return html`<section class="panel" aria-labelledby="h-checkpoints"><header><h2 id="h-checkpoints">${t('checkpoints')}</h2>${head.can?.fork && html`<span class="push mute small">${t('fork.is.new')}</span>`}</header>
    <table class="ledger cps"><caption class="sr">${t('checkpoints')}</caption><thead><tr><th scope="col">${t('after.iteration')}</th><th scope="col" class="num">${t('score')}</th><th scope="col" class="num">${t('state')}</th><th scope="col"><span class="sr">${t('action')}</span></th></tr></thead>
    <tbody>${list.map((c, i) => html`<tr key=${c.iteration}><th scope="row"><b>${c.iteration}</b> ${c.best && html`<span class="tag good">${t('best')}</span>`}${c.undone && html`<span class="tag warn">${t('status.undone')}</span>`}${c.iteration === 0 && html`<span class="mute">${t('before.first')}</span>`}</th>
      <td class="num">${c.score === undefined ? '' : offBy(c.score, c.off_by)}</td><td class="num soft">${c.bytes ? bytes(c.bytes) : ''}</td>
      <td class="num">${i === 0 && head.can?.more ? html`<button class="btn s" onClick=${onMore}>${t('go.on.more')}</button>` : head.can?.fork && html`<button class="btn s fork" onClick=${() => onFork({ iteration: c.iteration })}><${Icon} name="fork" />${t('fork.here')}</button>`}</td></tr>`)}</tbody></table>
  </section>`
}

function Where({ head }) {
  if (!head.where?.length) return null
  return html`<section class="panel" aria-labelledby="h-where"><header><h2 id="h-where">${t('where.it.went')}</h2></header>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${t('where.it.went')}><table class="ledger"><caption class="sr">${t('where.it.went')}</caption>
    <thead><tr><th scope="col">${t('step')}</th><th scope="col" class="num">${t('times.run')}</th><th scope="col" class="num">${t('time')}</th><th scope="col" class="num">${t('tokens')}</th><th scope="col" class="num">${t('cost')}</th></tr></thead>
    <tbody>${head.where.map(w => html`<tr key=${w.step}><th scope="row"><${AgentName} name=${w.step} looks=${head.looks} /></th><td class="num">${whole(w.runs)}</td><td class="num">${duration(w.time_ns)}</td><td class="num">${w.tokens ? whole(w.tokens) : none}</td><td class="num">${w.cost === undefined ? none : money(w.cost)}</td></tr>`)}</tbody></table></div></section>`
}

// Acts say who has done what to the run.
function Acts({ acts }) {
  return html`<section class="panel" aria-labelledby="h-acts"><header><h2 id="h-acts">${t('acts')}</h2></header>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${t('acts')}><table class="ledger"><caption class="sr">${t('acts')}</caption>
    <tbody>${acts.map((a, i) => html`<tr key=${i}><th scope="row">${a.by}</th><td>${t('act.' + a.deed)}</td><td>${a.text && html`<q>${a.text}</q>`}</td><td class="num"><time title=${exactTime(a.at)}>${clock(a.at)}</time></td></tr>`)}</tbody></table></div></section>`
}

// thePage is who asks for a pause here; it stands in the log.
const thePage = 'the page'

// parse reads what the address names: "4/writer/state" is a tab of a step in iteration 4.
function parse(hash) {
  const [n, name, tab] = hash.split('/')
  return { iteration: Number(n) || 0, name: name || '', tab: tabs.includes(tab) ? tab : 'output' }
}

// way is the steps from one of an iteration's down to that with a name; empty if there is none.
function way(steps, name) {
  for (const s of steps || []) {
    if (s.name === name) return [s]
    const below = way(s.steps, name)
    if (below.length) return [s, ...below]
  }
  return []
}

export function Run({ id }) {
  const [store, problem] = useRun(id)
  const head = store.head.value && { ...store.head.value, can: allowed(store.head.value.can || {}) }
  const since = useSince(head)
  const [axis, setAxis] = useState('iterations')
  const [loopAt, setLoopAt] = useState('')
  const [onlyErrors, setOnlyErrors] = useState(false)
  const [following, setFollowing] = useState(true)
  const [open, setOpen] = useState(new Set())
  const [row, setRow] = useState(null)
  const [tab, setTabIn] = useState(parse(route.value.hash).tab)
  const [asking, setAsking] = useState(null)
  const [said, say] = useState('')
  const [made, setMade] = useState(null)
  const [cell, setCell] = useState(null)
  const [pausing, setPausing] = useState(false)
  const ended = !!head && over(head)
  const files = useFiles(id, ended && !!head.files, {}, [head?.seq])
  const version = store.version.value

  const main = head?.loop
  const loop = head && ((head.loops || []).find(l => l.address === loopAt) || main)
  useEffect(() => {
    if (main) store.want(main.address)
  }, [main?.address])

  // Open what the address names, once its iteration is known: at first, and when another one is put
  // into the open page.
  const opened = useRef('')
  const { hash } = route.value
  const name = hash => {
    opened.current = hash
    setHash(hash)
  }
  useEffect(() => {
    const want = parse(hash)
    if (!main || hash === opened.current || !want.iteration) return
    const it = store.loop(main.address)?.iterations.get(want.iteration)
    if (!it) {
      store.load(main.address, want.iteration)
      return
    }
    opened.current = hash
    setFollowing(false)
    setTabIn(want.tab)
    const key = `${main.address}[${want.iteration}]`
    const steps = way(it.steps, want.name)
    setOpen(new Set([...open, key, ...steps.slice(0, -1).map(s => s.address)]))
    const s = steps.at(-1)
    setRow(s ? { key: s.address, kind: 'step', data: s, iteration: it.number } : { key, kind: 'iteration', data: it, number: it.number, loop: main.address })
    requestAnimationFrame(() => document.querySelector(`[data-key="${CSS.escape(s?.address || key)}"]`)?.scrollIntoView({ block: 'center' }))
  }, [main?.address, version, hash])

  // The iteration under way is open while it is followed, and folds when the next one begins.
  const running = main && `${main.address}[${main.total}]`
  const unfolded = useRef('')
  useEffect(() => {
    if (!main || !following) return
    setOpen(now => new Set([...now].filter(key => key !== unfolded.current).concat(running)))
    unfolded.current = running
  }, [running, following])

  // The loops of a race are in sight.
  const races = (head?.races || []).map(s => s.address).join()
  useEffect(() => {
    if (races) setOpen(now => new Set([...now, ...races.split(',')]))
  }, [races])

  const sentence = head?.sentence && `${head.sentence.lead} ${head.sentence.rest || ''}`
  useEffect(() => {
    if (sentence) announce(sentence)
  }, [head?.keys.iteration, head?.status])
  useEffect(() => {
    if (head) document.title = title(head)
  })
  useNotices(head)
  useKeys({
    a: () => document.querySelector('#ask .q')?.focus(),
    l: () => setFollowing(true),
  })

  const stands = pausing && head?.status === 'running' ? 'pausing' : head?.status
  useEffect(() => {
    if (stands !== 'pausing') setPausing(false)
  }, [stands])

  if (problem) return html`<main id="main" tabindex="-1"><p class="crumb"><a href="/">${t('runs')}</a> / <span class="mono">${id}</span></p><section class="panel pad"><h1>${t('no.run')}</h1><p class="soft" role="alert">${problem}</p></section></main>`
  if (!head) return html`<main id="main" tabindex="-1" aria-busy="true"><p class="mute">${t('loading')}</p></main>`

  // A row that is chosen shows what it is now, not what it was when it was chosen.
  const current = row && fresh(store, row)
  const select = r => {
    setRow(r)
    const n = r.kind === 'iteration' ? r.number : r.iteration
    if (n) name(r.kind === 'iteration' ? `${n}` : `${n}/${r.data.name}/${tab}`)
  }
  const setTab = to => {
    setTabIn(to)
    if (row?.kind === 'step' && row.iteration) name(`${row.iteration}/${row.data.name}/${to}`)
    else if (row?.loop === main.address) name(to === 'output' ? `${row.number}` : `${row.number}//${to}`)
  }
  const selectIteration = n => {
    store.load(main.address, n)
    const key = `${main.address}[${n}]`
    setFollowing(false)
    setOpen(new Set([...open, key]))
    setRow({ key, kind: 'iteration', data: store.loop(main.address)?.iterations.get(n), number: n, loop: main.address })
    name(`${n}`)
  }
  // A loop that nothing scores has no curve.
  const drawn = loop && (loop.scored || loop.points.some(p => p.score !== undefined))
  const see = path => {
    if (path) setCell({ path, key: 'all' })
    const at = document.getElementById('h-changes')
    at?.scrollIntoView()
    at?.focus()
  }
  return html`<main id="main" tabindex="-1">
    <p class="crumb"><a href="/">${t('runs')}</a> / <span class="mono">${id}</span><${Copy} text=${id} /></p>
    <div class="head"><div><div class="row"><h1><${AgentName} name=${head.name} looks=${head.looks} /></h1>${shownName(head.name, head.looks) !== head.name && html`<span class="mono mute small">${head.name}</span>`}<${Status} status=${stands} box />
        ${head.questions?.length > 0 && html`<a href="#ask" class="st ask" onClick=${e => { e.preventDefault(); document.querySelector('#ask .q')?.focus() }}><${Icon} name="ask" />${t('n.questions', { n: head.questions.length })}</a>`}</div>
      <p class="said">${head.message && html`<q>${head.message}</q> · `}<time title=${exactTime(head.began)}>${t('started.at', { time: clock(head.began) })}</time>
        ${head.definition && html` · <a href=${'/definitions/' + encodeURIComponent(head.definition)}>${t('definition')} ${head.definition}</a>`}
        ${head.parent && html` · <a href=${'/runs/' + encodeURIComponent(head.parent.session_id)}>${t('forked.from', { run: head.parent.session_id })}</a> · <a href=${compared(head.parent.session_id, id)}>${t('compare.them')}</a>`}</p></div>
      <${Actions} head=${head} say=${say} ask=${setAsking} pausing=${stands === 'pausing'} setPausing=${setPausing} /></div>
    ${said && html`<p class="panel pad st bad" role="alert">${said} <button class="btn quiet s" onClick=${() => say('')}>${t('close')}</button></p>`}
    ${made && html`<p class="panel pad st good" role="status">${t('make.case.done', { file: made.file, name: made.case })}</p>`}
    ${readOnly.value && html`<p class="banner" role="note">${t('read.only')}</p>`}
    <${Standstill} head=${head} store=${store} pausing=${stands === 'pausing'} />
    ${(head.questions || []).map((q, i) => html`<${Question} key=${q.id} id=${id} question=${q} first=${i === 0} open=${head.can.answer} />`)}
    ${!ended && html`<${Sentence} head=${head} since=${since} />`}
    ${head.error && html`<section class="panel pad errorbox" aria-label=${t('status.failed')}><p class="st bad"><${Icon} name="cross" />${t('failed.with')}</p><pre class="block">${head.error}</pre></section>`}
    <div class="grid cols">
      ${ended && html`<${Result} head=${head} onState=${main?.total > 0 && (() => { selectIteration(main.total); setTabIn('state') })} files=${files} onSee=${see} say=${say} />`}
      ${loop && ended && html`<${Stops} loop=${loop} head=${head} loopAt=${loopAt} setLoopAt=${setLoopAt} />`}
      ${drawn && html`<section class="panel tall" aria-labelledby="h-score"><header><h2 id="h-score">${t('score')}</h2><span class="mute small hide-s ell" title=${loop.judged}>${loop.judged}</span>
          <span class="push seg s" role="group" aria-label=${t('axis')}>${['iterations', 'time', 'table'].map(a => html`<button key=${a} aria-pressed=${axis === a} onClick=${() => setAxis(a)}>${t('axis.' + a)}</button>`)}</span></header>
        <div class="pad">${axis === 'table' ? html`<${ChartTable} loop=${loop} onSelect=${selectIteration} />` : html`<${Chart} loop=${loop} axis=${axis} selected=${row?.number} onSelect=${selectIteration} />`}</div>
        ${!ended && html`<${Findings} findings=${(head.findings || []).slice(0, 1)} definition=${head.definition} />`}</section>`}
      ${loop && !ended && html`<${Stops} whole=${!drawn} loop=${loop} head=${head} since=${since} loopAt=${loopAt} setLoopAt=${setLoopAt} />`}
      ${(head.races || []).map(s => s.race && html`<section key=${s.address} class="panel" aria-labelledby=${'h-race-' + s.address}><header><h2 id=${'h-race-' + s.address}>${t('race')}</h2><span class="mute small"><${AgentName} name=${s.name} looks=${head.looks} /></span></header><${Race} race=${s.race} looks=${head.looks} onLoop=${head.loops?.length > 1 && setLoopAt} /></section>`)}
      ${loop && ended && html`<${Checkpoints} head=${head} onFork=${from => setAsking({ fork: from })} onMore=${() => setAsking('more')} />`}
      ${(ended || !drawn) && head.findings?.length > 0 && html`<section class="panel" aria-labelledby="h-findings"><header><h2 id="h-findings">${t('findings')}</h2><span class="push mute small">${head.findings.length}</span></header><${Findings} findings=${head.findings} definition=${head.definition} /></section>`}
      ${ended && html`<${Where} head=${head} />`}
      ${head.acts?.length > 0 && html`<${Acts} acts=${head.acts} />`}
      ${main && html`<section class="panel iterations" aria-labelledby="h-iterations"><header><h2 id="h-iterations">${t('iterations')}</h2>${head.races?.length > 0 && html`<span class="mute small"><${AgentName} name=${main.label} looks=${head.looks} /></span>`}
          ${!ended && !readOnly.value && (following ? html`<span class="st now small"><${Icon} name="run" spin=${head.status === 'running'} />${t('following')}</span>` : html`<button class="btn s" onClick=${() => setFollowing(true)}>${t('back.to.live')}</button>`)}
          <span class="push row"><button class="btn quiet s" aria-pressed=${onlyErrors} onClick=${() => setOnlyErrors(!onlyErrors)}>${t('errors.only')}</button></span></header>
        <${Tree} store=${store} loop=${main.address} races=${head.races} finalizer=${head.finalizer} selected=${row?.key} onSelect=${select} onlyErrors=${onlyErrors}
          follow=${following && !ended} setFollow=${setFollowing} open=${open} setOpen=${setOpen} /></section>`}
      <${Inspector} id=${id} looks=${head.looks} row=${current} files=${!!head.files} tab=${tab} setTab=${setTab} version=${version} onFork=${head.can?.fork && (r => setAsking({ fork: { iteration: r.number, loop: r.loop } }))} onBack=${() => document.querySelector(`[data-key="${CSS.escape(row.key)}"]`)?.focus()} />
      ${ended && head.files && html`<${Changes} head=${head} files=${files} cell=${cell} setCell=${setCell} />`}
    </div>
    ${asking?.again && html`<${RunIt} name=${head.definition} ...${asking.again} onClose=${() => setAsking(null)} />`}
    ${asking === 'cancel' && html`<${Ask} title=${t('cancel.title', { name: head.name })} what=${t('cancel.what')} verb=${t('cancel.do')} danger onClose=${() => setAsking(null)} onSend=${(_, signal) => api.act(id, 'cancel', {}, signal)} />`}
    ${asking === 'remove' && html`<${Ask} title=${t('remove.title', { name: head.name })} what=${t('remove.what')} verb=${t('remove')} danger onClose=${() => setAsking(null)} onSend=${async (_, signal) => { await api.remove(id, signal); go('/') }} />`}
    ${asking === 'case' && html`<${Ask} title=${t('make.case.title')} what=${t('make.case.what')} verb=${t('make.case.do')} onClose=${() => setAsking(null)} fields=${[{ name: 'file', label: t('make.case.file'), placeholder: 'cases.yaml' }]} onSend=${async (v, signal) => setMade(await api.act(id, 'case', { file: v.file }, signal))} />`}
    ${asking === 'more' && html`<${Ask} title=${t('more.title')} what=${t('more.what')} verb=${t('go.on')} onClose=${() => setAsking(null)} fields=${limitFields(head)} onSend=${(v, signal) => api.act(id, 'resume', { limits: limitsOf(v) }, signal)} />`}
    ${(asking === 'fork' || asking?.fork) && html`<${Fork} head=${head} ...${asking.fork} onClose=${() => setAsking(null)} />`}
  </main>`
}

function Stops({ loop, head, whole, since = 0, loopAt, setLoopAt }) {
  const many = head.loops?.length > 1
  return html`<section class=${'panel tall' + (whole ? ' whole' : '')} aria-labelledby="h-stop"><header><h2 id="h-stop">${loop.stop ? t('why.stopped') : t('how.stop')}</h2>${!loop.stop && html`<span class="mute small hide-s">${t('first.wins')}</span>`}
      ${many && html`<label class="sr" for="which-loop">${t('loop')}</label><select id="which-loop" class="s push" value=${loopAt || head.loop.address} onChange=${e => setLoopAt(e.target.value)}>${head.loops.map(l => html`<option key=${l.address} value=${l.address} selected=${l.address === (loopAt || head.loop.address)}>${l.label}</option>`)}</select>`}</header>
    ${loop.stop && html`<p class="pad stopline"><b>${loop.outlook.words.lead}</b> ${loop.outlook.words.rest}</p>`}
    <${Ledger} outlook=${loop.outlook} since=${loop.stop ? 0 : since} caption=${loop.stop ? t('ledger.done') : t('ledger.live')} /></section>`
}

// fresh finds the row again in what is known now.
function fresh(store, row) {
  if (row.kind === 'iteration') return { ...row, data: store.loop(row.loop)?.iterations.get(row.number) || row.data }
  const find = steps => {
    for (const s of steps || []) {
      if (s.address === row.key) return s
      const below = find(s.steps)
      if (below) return below
    }
  }
  const beside = find(store.head.value?.races)
  if (beside) return { ...row, data: beside }
  for (const loop of store.loops.values()) {
    const it = loop.iterations.get(row.iteration)
    const s = it && find(it.steps)
    if (s) return { ...row, data: s }
  }
  return row
}
