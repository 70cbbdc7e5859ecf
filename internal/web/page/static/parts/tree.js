import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../ui.js'
import { t, lang } from '../words.js'
import { whole, score, signed, offBy, duration } from '../format.js'
import { Icon } from './icon.js'
import { glyphOf } from './status.js'
import { AgentName } from './agent-name.js'
import { LaneTags, raced } from './race.js'

// A row of the tree is {key, kind: iteration|step|final|more, level, data, loop, iteration}. key is
// the address, so that a row stays itself while others come and go above it.

// rows lists what is open, from the iterations that are known.
function rows(store, loopAddress, open, level, onlyErrors, out) {
  const loop = store.loop(loopAddress)
  if (!loop) {
    out.push({ key: loopAddress + '…', kind: 'more', level, loop: loopAddress, from: 1 })
    return out
  }
  for (let n = 1; n <= loop.total; n++) {
    const it = loop.iterations.get(n)
    const key = `${loopAddress}[${n}]`
    if (onlyErrors && it && !it.failed && !it.running) continue
    out.push({ key, kind: 'iteration', level, data: it, number: n, loop: loopAddress, best: level ? it?.best : n === store.head.value?.keys.best?.iteration })
    if (it && open.has(key)) for (const s of it.steps || []) step(store, s, open, level + 1, onlyErrors, out, n)
  }
  return out
}

function step(store, s, open, level, onlyErrors, out, iteration) {
  const key = s.address || `${iteration}/${s.name}`
  out.push({ key, kind: 'step', level, data: s, iteration })
  if (!open.has(key)) return
  if (s.loop) rows(store, s.address, open, level + 1, onlyErrors, out)
  for (const below of raced(s).steps || []) step(store, below, open, level + 1, onlyErrors, out, iteration)
}

const expandable = row =>
  row.kind === 'iteration' ? !row.data || (row.data.steps || []).length > 0 : row.kind === 'step' && (!!row.data.loop || (row.data.steps || []).length > 0)

function IterationName({ row }) {
  const it = row.data
  return html`<span class="t">${t('iteration.n', { n: row.number })}</span>
    ${row.best && html`<span class="tag good">${t('best')}</span>`}
    ${it?.undone && html`<span class="tag warn">${t('status.undone')}</span>`}
    ${it?.left && html`<span class="tag"><${Icon} name="exit" />${t('left.here')}</span>`}
    ${(it?.within_noise || it?.note) && html`<span class="key">${[it.within_noise && t('within.noise'), it.note].filter(Boolean).join('; ')}</span>`}`
}

function StepName({ s, looks }) {
  return html`<span class="t"><${AgentName} name=${s.name} looks=${looks} /></span>
    ${s.asks && html`<span class="tag ask">${t('status.asks')}</span>`}
    ${s.can_exit && !s.exit && html`<span class="tag"><${Icon} name="exit" />${t('may.stop')}</span>`}
    ${s.exit && html`<span class="tag"><${Icon} name="exit" />${t('asked.stop')}</span>`}
    ${s.cached && html`<span class="tag">${t('cached')}</span>`}
    ${s.attempt > 1 && html`<span class="tag warn">${t('attempt', { n: s.attempt })}</span>`}
    <${LaneTags} lane=${s.lane} />
    <span class="key">${s.error || (s.race && `${s.race.words.lead} ${s.race.words.rest}`) || s.doing || s.note || ''}${s.status === 'running' && s.says ? html`<span class="say2">${s.says}</span><span class="caret pulse"></span>` : s.key ? html` → ${s.key}` : ''}</span>`
}

const glyph = row => {
  if (row.kind === 'final') return ['g-ok', 'star']
  if (row.kind === 'iteration' && row.data?.undone) return ['g-warn', 'undo']
  const s = row.data?.status || 'pending'
  if (row.kind === 'step' && s === 'completed') {
    if (row.data.loop) return ['g-ok', 'loop']
    if (row.data.parallel) return ['g-ok', 'parallel']
  }
  const [colour, name] = glyphOf(row.data?.asks ? 'asks' : s)
  return [colour === 'off' ? 'g-wait' : colour === 'good' ? 'g-ok' : 'g-' + colour, name]
}

// margin is how many rows are drawn above and below those in sight.
const margin = 8

const height = () => (matchMedia('(max-width: 720px)').matches ? 44 : 30)

// Tree shows the iterations and the steps in them. Only the rows in sight are in the document.
export function Tree({ store, loop, races, finalizer, selected, onSelect, onlyErrors, follow, setFollow, open, setOpen }) {
  const box = useRef()
  const [view, setView] = useState({ top: 0, height: 600 })
  const rowHeight = height()
  const list = useMemo(() => {
    const out = []
    // The iterations of the loop that is shown follow by themselves.
    const apart = s => ({ ...s, loop: s.loop && s.address !== loop, steps: (s.steps || []).map(apart) })
    if (!onlyErrors) for (const s of races || []) step(store, apart(s), open, 0, onlyErrors, out)
    rows(store, loop, open, 0, onlyErrors, out)
    if (finalizer) out.push({ key: finalizer.address || 'finalizer', kind: 'final', level: 0, data: finalizer })
    return out
  }, [store.version.value, loop, races, open, onlyErrors, finalizer])
  const focused = list.findIndex(r => r.key === selected)

  // A layout effect ends before its element is gone; the others end a frame later.
  useLayoutEffect(() => {
    // Once a frame, and the rows are drawn anew only when others have come into sight.
    let frame = 0
    const measure = () => {
      frame = 0
      const top = Math.max(0, -box.current.getBoundingClientRect().top)
      const next = { top: Math.floor(top / rowHeight / margin) * margin * rowHeight, height: innerHeight }
      setView(was => (was.top === next.top && was.height === next.height ? was : next))
    }
    const soon = () => (frame ||= requestAnimationFrame(measure))
    measure()
    addEventListener('scroll', soon, { passive: true })
    addEventListener('resize', soon)
    return () => {
      cancelAnimationFrame(frame)
      removeEventListener('scroll', soon)
      removeEventListener('resize', soon)
    }
  }, [rowHeight])

  const first = Math.max(0, Math.floor(view.top / rowHeight) - margin)
  const last = Math.min(list.length, Math.ceil((view.top + view.height) / rowHeight) + 2 * margin)
  const seen = list.slice(first, last)
  if (focused >= 0 && (focused < first || focused >= last)) seen.push(list[focused]) // a row with the focus stays

  useEffect(() => {
    const missing = seen.filter(r => (r.kind === 'iteration' && !r.data) || r.kind === 'more')
    if (missing.length) store.load(missing[0].loop, missing[0].number || 1)
    for (const r of seen) if (r.kind === 'step' && r.data.loop && open.has(r.key)) store.want(r.data.address)
  })

  // While it is followed, the row of what runs stays in sight.
  useLayoutEffect(() => {
    if (!follow) return
    const i = list.findLastIndex(r => r.kind === 'iteration' && r.level === 0)
    if (i < 0) return
    const at = box.current.getBoundingClientRect().top + i * rowHeight
    if (at > innerHeight - 120) scrollBy(0, at - innerHeight + 160)
  }, [list.length, follow])
  useEffect(() => {
    const stop = e => {
      if (e.type === 'wheel' ? e.deltaY < 0 : true) setFollow(false)
    }
    addEventListener('wheel', stop, { passive: true })
    return () => removeEventListener('wheel', stop)
  }, [])

  const toggle = (row, on) => {
    const next = new Set(open)
    on ? next.add(row.key) : next.delete(row.key)
    setOpen(next)
    if (on && row.kind === 'step' && row.data.loop) store.want(row.data.address)
  }
  const focusRow = i => {
    const row = list[Math.max(0, Math.min(list.length - 1, i))]
    if (!row) return
    onSelect(row)
    requestAnimationFrame(() => box.current?.querySelector(`[data-key="${CSS.escape(row.key)}"]`)?.focus())
  }
  const keys = e => {
    const i = focused
    const row = list[i]
    if (!row) return
    switch (e.key) {
      case 'ArrowDown': focusRow(i + 1); break
      case 'ArrowUp': focusRow(i - 1); break
      case 'Home': focusRow(0); break
      case 'End': focusRow(list.length - 1); break
      case 'ArrowRight':
        if (expandable(row) && !open.has(row.key)) toggle(row, true)
        else focusRow(i + 1)
        break
      case 'ArrowLeft':
        if (open.has(row.key)) toggle(row, false)
        else for (let j = i - 1; j >= 0; j--) if (list[j].level < row.level) { focusRow(j); break }
        break
      case 'Enter': case ' ':
        if (expandable(row)) toggle(row, !open.has(row.key))
        break
      default: return
    }
    e.preventDefault()
    setFollow(false)
  }
  // A column is as wide as the longest figure in it.
  const widest = texts => Math.max(44, ...texts.map(s => 8 * s.length)) + 'px'
  const given = seen.filter(r => r.data)
  const widths = { '--score': widest(given.map(r => scoreOf(r.data))), '--change': widest(given.map(r => (r.data.delta === undefined ? '' : signed(r.data.delta) + ' '))) }
  const longest = Math.max(1, ...seen.filter(r => r.level === 0 && r.data).map(r => r.data.took_ns || 0))

  // A row that is as it was is not drawn anew: Preact leaves alone what it is given again.
  const drawn = useRef(new Map())
  const before = drawn.current
  drawn.current = new Map()
  const draw = (row, i) => {
    const is = [row.data, i, row.key === selected, open.has(row.key), focused < 0 && i === 0, row.best, lang.value, store.head.value?.looks]
    const was = before.get(row.key)
    const now = was && is.every((v, n) => v === was.is[n]) ? was : { is, row: drawRow(row, ...is) }
    drawn.current.set(row.key, now)
    return now.row
  }
  const rowOf = e => {
    const key = e.target.closest('[data-key]')?.dataset.key
    return key && list.find(r => r.key === key)
  }
  const click = e => {
    const row = rowOf(e)
    if (!row) return
    if (e.target.closest('.fold')) return toggle(row, !open.has(row.key))
    onSelect(row)
    setFollow(false)
    if (expandable(row) && !open.has(row.key)) toggle(row, true)
  }
  const enter = e => {
    const row = rowOf(e)
    if (row && row.key !== selected) onSelect(row)
  }
  return html`<div class="tree" role="treegrid" aria-label=${t('tree')} aria-rowcount=${list.length + 1} style=${widths} onKeyDown=${keys}>
    <div class="tr h" role="row" aria-rowindex="1"><span role="columnheader">${t('step')}</span><span role="columnheader" class="num">${t('score')}</span><span role="columnheader" class="num">${t('change')}</span><span role="columnheader" class="num">${t('time')}</span><span role="columnheader" class="num">${t('tokens')}</span></div>
    <div ref=${box} class="treebox" role="presentation" style=${{ height: list.length * rowHeight + 'px', '--longest': longest, '--h': rowHeight + 'px' }} onClick=${click} onFocusIn=${enter}>
      ${seen.map((row, i) => draw(row, i < last - first ? first + i : focused))}
    </div>
  </div>`
}

// scoreOf is the score of a row with its error, that of a loop which has raced too.
const scoreOf = d => (d.score !== undefined ? offBy(d.score, d.off_by) : d.lane?.score !== undefined ? offBy(d.lane.score, d.lane.off_by) : '')

function drawRow(row, d, i, sel, isOpen, entry, best, language, looks) {
  const [colour, name] = glyph(row)
  const can = expandable(row)
  const running = d?.status === 'running'
  return html`<div key=${row.key} data-key=${row.key} class=${`tr${row.kind !== 'step' ? ' it' : ''}${running ? ' run' : ''}`} role="row" aria-rowindex=${i + 2} aria-level=${row.level + 1}
      aria-expanded=${can ? isOpen : null} aria-selected=${sel} tabindex=${sel || entry ? 0 : -1} style=${{ '--lv': row.level, '--i': i }}>
    <span class="nm" role="gridcell">${can ? html`<span class="fold"><${Icon} name=${isOpen ? 'down' : 'right'} /></span>` : html`<span class="nofold"></span>`}
      <span class=${colour}><${Icon} name=${name} spin=${running && name === 'run'} /></span><span class="sr">${t('status.' + (d?.undone ? 'undone' : d?.asks ? 'asks' : d?.status || 'pending'))}</span>
      ${row.kind === 'iteration' ? html`<${IterationName} row=${row} />` : row.kind === 'final' ? html`<span class="t"><${AgentName} name=${d.name} looks=${looks} /></span><span class="key">${t('finalizer')}</span>` : row.kind === 'more' ? html`<span class="key">${t('loading')}</span>` : html`<${StepName} s=${d} looks=${looks} />`}</span>
    <span class="num" role="gridcell">${!d ? '' : d.provisional ? html`<b class="now">${score(d.score)}</b>` : scoreOf(d)}</span>
    <span class=${'num ' + (d?.within_noise ? 'mute' : d?.delta > 0 ? 'up' : 'down')} role="gridcell">${d?.delta === undefined ? '' : signed(d.delta)}</span>
    <span class="num soft tm" role="gridcell" style=${{ '--took': row.level === 0 && d ? d.took_ns || 0 : 0 }}>${d?.took_ns ? duration(d.took_ns) : ''}</span>
    <span class="num soft" role="gridcell">${d?.tokens ? whole(d.tokens) : ''}</span>
  </div>`
}
