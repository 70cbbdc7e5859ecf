import { html, useRef, useState, useWidth } from '../ui.js'
import { t } from '../words.js'
import { score, offBy, duration, none } from '../format.js'

// ticks are round values, at most so many, that lie within a range.
export function ticks(low, high, most = 5) {
  const span = high - low || 1
  const rough = span / most
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map(m => m * power).find(s => span / s <= most) || 10 * power
  const out = []
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) out.push(Math.round(v / step) * step + 0)
  return out
}

// wide is about how wide a text of a chart is, in pixels.
const wide = text => 8 * text.length

// targetOf names the line of a loop's target.
export const targetOf = loop => t('target', { target: score(loop.target) })

// placed gives texts their places, the most important first: each gets the first of its places where
// it lies on no other text, and is left out if it has none. A place is [x, y, anchor].
export function placed(texts) {
  const taken = []
  return texts.flatMap(one => {
    for (const [x, y, anchor] of one.at) {
      const left = x - { start: 0, middle: 0.5, end: 1 }[anchor] * wide(one.text)
      const box = { left, right: left + wide(one.text), top: y - 11, bottom: y + 3 }
      if (taken.some(b => box.left < b.right && b.left < box.right && box.top < b.bottom && b.top < box.bottom)) continue
      taken.push(box)
      return [{ ...one, x, y, anchor }]
    }
    return []
  })
}

// limitOf returns the most iterations of a loop; 0 for no limit, and for a chart of several runs.
const limitOf = loop => loop.outlook.sentence?.limit || 0

// place is the box in which a chart is drawn, and where a value lies in it.
export function place(loop, axis, width) {
  const points = loop.points
  const forecast = loop.outlook.forecast
  const limit = limitOf(loop)
  const last = points.length ? points[points.length - 1].number : 1
  const shownTo = Math.max(last + (forecast?.predictable ? forecast.high || forecast.iterations || 0 : 0), Math.min(limit, last + 4), 2)
  const values = points.flatMap(p => (p.score === undefined ? [] : [p.score - (p.off_by || 0), p.score + (p.off_by || 0)]))
  if (loop.target !== undefined) values.push(loop.target)
  if (forecast?.predictable) for (const b of forecast.band || []) values.push(b.low, b.high)
  let low = Math.min(...values), high = Math.max(...values)
  if (!values.length) [low, high] = [0, 1]
  if (low === high) [low, high] = [low - 1, high + 1]
  const room = (high - low) * 0.08
  low -= room
  high += room
  const left = Math.max(38, 24 + Math.max(...ticks(low, high).map(v => wide(score(v)))))
  const right = width < 480 ? 12 : Math.max(72, 20 + (loop.target === undefined ? 0 : wide(targetOf(loop))))
  const top = 26, bottom = 26, height = width < 480 ? 220 : 272
  const inner = width - left - right
  const time = axis === 'time'
  const first = points.length ? points[0].began_ns : 0
  const span = Math.max(1, (loop.now_ns || 0) - first, ...points.map(p => p.ended_ns - first))
  const x = p => {
    if (time && typeof p === 'object') return left + ((p.ended_ns - first) / span) * inner
    const n = typeof p === 'object' ? p.number : p
    return left + ((n - 1) / Math.max(1, shownTo - 1)) * inner
  }
  const y = v => top + (1 - (v - low) / (high - low)) * (height - top - bottom)
  return { left, right, top, bottom, height, width, low, high, x, y, shownTo, time, first, span }
}

// Barline is where a loop ends, or may.
export function Barline({ x, top, bottom, kind, faint }) {
  return html`<g class=${faint ? 'faint' : ''}><rect class=${kind} x=${x - 4} y=${top} width="1.4" height=${bottom - top} /><rect class=${kind} x=${x - 0.5} y=${top} width="4" height=${bottom - top} /></g>`
}

const described = p => {
  const words = [t('chart.point', { n: p.number, score: p.score === undefined ? t('unscored') : offBy(p.score, p.off_by) })]
  if (p.leg) words.push(t('chart.leg', { n: p.leg }))
  if (p.best) words.push(t('best'))
  if (p.undone) words.push(t('status.undone'))
  else if (p.rejected) words.push(t('rejected'))
  if (p.provisional) words.push(t('provisional'))
  return words.join(', ')
}

// lineage are the lines between scores, from each version to those that were written from it: [from,
// to, kind].
export function lineage(scored) {
  const by = new Map(scored.map(at => [at.number, at]))
  return scored.filter(at => by.has(at.from)).map(at => [by.get(at.from), at, at.undone || at.rejected ? 'dead' : at.provisional ? 'toprov' : 'ln'])
}

// textsOf are the texts in a chart, the most important first: the scores that matter, then the names
// of lines, then all other scores.
function textsOf(loop, p, scored, selected, bars) {
  const last = scored[scored.length - 1]
  const rank = at => (at.best || at.provisional ? 0 : at.number === selected || at === last || at === scored[0] ? 2 : 3)
  const texts = scored.map(at => {
    const text = at.best ? t('chart.best', { score: offBy(at.score, at.off_by) }) : at.undone ? t('chart.undone', { score: score(at.score) }) : at.provisional ? t('chart.sofar', { score: score(at.score) }) : score(at.score)
    const x = p.x(at), y = p.y(at.score)
    // A text over the last point would stand on the barline, one over the first on the scale.
    const [dx, anchor] = loop.stop && at.number === loop.stop.iteration ? [3, 'end'] : x - wide(text) / 2 < p.left - 14 ? [-8, 'start'] : [0, 'middle']
    const places = [[x + dx, y - 14, anchor], [x + dx, y + 24, anchor], [x - 12, y + 4, 'end']]
    return { rank: rank(at), key: at.number, text, kind: 'halo v ' + (at.best ? 'good' : at.undone ? 'warn' : at.provisional ? 'now' : ''), at: at.undone ? [places[1], places[0]] : at.best ? places : places.slice(0, 2) }
  })
  for (const b of bars) if (b.label) texts.push({ rank: 1, key: b.kind, text: b.label, kind: b.kind === 'ghost' ? 'now' : '', at: [[b.x, p.top - 10, 'middle'], [b.x - 8, p.top - 10, 'end']] })
  if (loop.target !== undefined) {
    const y = p.y(loop.target)
    const right = p.width < 480 ? [[p.width - 4, y - 6, 'end'], [p.width - 4, y + 14, 'end']] : [[p.width - p.right + 16, y + 4, 'start']]
    texts.push({ rank: 1, key: 'target', text: targetOf(loop), kind: 'good halo', at: [...right, [p.left - 12, y - 6, 'start'], [p.left - 12, y + 14, 'start']] })
  }
  return texts.sort((a, b) => a.rank - b.rank)
}

// Chart is the score by iteration. The line follows the lineage: from each iteration to those that
// were written from its version; an undone one is a dead end.
export function Chart({ loop, axis, selected, onSelect }) {
  const ref = useRef()
  const width = useWidth(ref)
  const [focus, setFocus] = useState(-1)
  const points = loop.points
  const scored = points.filter(p => p.score !== undefined)
  const p = place(loop, axis, width)
  const { x, y } = p
  const byNumber = new Map(points.map(p => [p.number, p]))
  const foot = p.height - p.bottom
  const forecast = loop.outlook.forecast
  const limit = limitOf(loop)
  const crowded = scored.length * 14 > width
  const labelled = at => !crowded || at.best || at.provisional || at === scored[0] || at.number === selected || (at.undone && scored.length * 30 < width)
  const columns = []
  if (p.time) {
    for (const v of ticks(0, p.span / 1e9, Math.max(2, Math.floor(width / 110)))) {
      columns.push(html`<text key=${'x' + v} x=${p.left + ((v * 1e9) / p.span) * (width - p.left - p.right)} y=${p.height - 6} text-anchor="middle">${duration(v * 1e9)}</text>`)
    }
  } else {
    const every = Math.max(1, Math.ceil(p.shownTo / Math.max(2, Math.floor(width / 46))))
    for (let n = 1; n <= p.shownTo; n++) {
      if (n !== 1 && n % every) continue
      const now = byNumber.get(n)?.provisional || byNumber.get(n)?.running
      columns.push(html`<text key=${'x' + n} class=${now ? 'now' : ''} x=${x(n)} y=${p.height - 6} text-anchor="middle">${n}</text>`)
    }
  }
  const move = (e, i) => {
    const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: scored.length - 1 }[e.key]
    if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault()
      onSelect(scored[i].number)
    } else if (to !== undefined && scored[to]) {
      e.preventDefault()
      setFocus(to)
      ref.current.querySelectorAll('g[role=button]')[to]?.focus()
    }
  }
  const tab = focus < 0 ? scored.length - 1 : Math.min(focus, scored.length - 1)
  const plateau = loop.plateau
  const atLimit = !p.time && loop.stop && loop.stop.iteration === limit
  const lastNumber = points.length ? points[points.length - 1].number - (points[points.length - 1].running ? 1 : 0) : 0
  const legs = scored.slice(1).flatMap((at, i) => (at.leg && at.leg !== scored[i].leg ? [{ x: (x(scored[i]) + x(at)) / 2, leg: at.leg }] : []))
  const likely = !p.time && forecast?.predictable && forecast.iterations && Math.min(lastNumber + forecast.iterations, limit || Infinity)
  const band = !p.time && forecast?.predictable ? forecast.band || [] : []
  const cone = band.length > 1 ? 'M' + band.map(b => `${x(b.iteration)} ${y(b.high)}`).join('L') + 'L' + [...band].reverse().map(b => `${x(b.iteration)} ${y(b.low)}`).join('L') + 'Z' : ''
  const mid = band.length > 1 ? 'M' + band.map(b => `${x(b.iteration)} ${y(b.mid)}`).join('L') : ''
  const bars = []
  if (!p.time && limit > 0 && limit <= p.shownTo && !atLimit) bars.push({ x: x(limit), kind: 'lim', faint: true, label: t('limit', { n: limit }) })
  if (likely > 0) bars.push({ x: x(likely), kind: 'ghost', faint: true, label: t('likely.stop', { n: likely }) })
  if (loop.stop && scored.length) bars.push({ x: (p.time ? x(points[points.length - 1]) : x(loop.stop.iteration || lastNumber)) + 10, kind: loop.stop.kind, label: atLimit && t('limit', { n: limit }) })
  return html`<div ref=${ref} class="chartbox">
    ${!scored.length && html`<p class="mute">${loop.scored ? t('chart.none') : t('chart.unscored')}</p>`}
    ${scored.length > 0 && html`<svg class="chart" viewBox=${`0 0 ${width} ${p.height}`} width=${width} height=${p.height} role="group" aria-label=${t('chart.label', { n: scored.length })}>
      ${ticks(p.low, p.high).map(v => html`<line key=${'g' + v} class="g" x1=${p.left - 14} x2=${width - p.right + 12} y1=${y(v)} y2=${y(v)} /><text key=${'l' + v} x=${p.left - 20} y=${y(v) + 4} text-anchor="end">${score(v)}</text>`)}
      ${columns}
      ${plateau && !p.time && html`<path class="plat" d=${`M${x(plateau.from)} ${foot - 8}v5H${x(plateau.to)}v-5`} />`}
      ${loop.target !== undefined && html`<line class="tgt" x1=${p.left - 14} x2=${width - p.right + 12} y1=${y(loop.target)} y2=${y(loop.target)} />`}
      ${cone && html`<path class="cone" d=${cone} /><path class="mid" d=${mid} />`}
      ${legs.map(l => html`<line key=${'leg' + l.leg} class="leg" x1=${l.x} x2=${l.x} y1=${p.top - 4} y2=${foot} />`)}
      ${bars.map(b => html`<${Barline} key=${b.kind} ...${b} top=${p.top - 4} bottom=${foot} />`)}
      ${lineage(scored).map(([from, at, kind]) => html`<line key=${at.number} class=${kind} x1=${x(from)} y1=${y(from.score)} x2=${x(at)} y2=${y(at.score)} />`)}
      ${placed(textsOf(loop, p, scored.filter(labelled), selected, [...bars, ...legs.map(l => ({ x: l.x, kind: 'leg' + l.leg, label: t('chart.leg', { n: l.leg }) }))])).map(one => html`<text key=${one.key} aria-hidden=${typeof one.key === 'number'} class=${one.kind} x=${one.x} y=${one.y} text-anchor=${one.anchor}>${one.text}</text>`)}
      ${scored.map((at, i) => html`<g key=${at.number} role="button" tabindex=${i === tab ? 0 : -1} aria-label=${described(at)} aria-pressed=${at.number === selected} onFocus=${() => setFocus(i)} onKeyDown=${e => move(e, i)} onClick=${() => onSelect(at.number)}>
        ${at.off_by > 0 && !crowded && html`<path class="whisk" d=${`M${x(at) - 3} ${y(at.score + at.off_by)}h6m-3 0V${y(at.score - at.off_by)}m-3 0h6`} />`}
        <circle class="hit" cx=${x(at)} cy=${y(at.score)} r="12" />
        ${at.undone || at.rejected
          ? html`<circle class="rej" cx=${x(at)} cy=${y(at.score)} r="6" /><path class="rej cross" d=${`M${x(at) - 2.4} ${y(at.score) - 2.4}l4.8 4.8m0 -4.8l-4.8 4.8`} />`
          : html`<circle class=${at.best ? 'best' : at.provisional ? 'prov pulse' : 'pt'} cx=${x(at)} cy=${y(at.score)} r=${at.best ? 7 : at.provisional ? 6 : crowded ? 3 : 5} />`}
      </g>`)}
    </svg>`}
  </div>`
}

// ChartTable says the same as the chart.
export function ChartTable({ loop, onSelect }) {
  return html`<div class="scroll-x tablebox" tabindex="0" role="group" aria-label=${t('chart.table')}><table class="ledger">
    <caption class="sr">${t('chart.table')}</caption>
    <thead><tr><th scope="col">${t('iteration')}</th><th scope="col" class="num">${t('score')}</th><th scope="col" class="num">${t('change')}</th><th scope="col">${t('from')}</th><th scope="col"></th></tr></thead>
    <tbody>${loop.points.map(p => html`<tr key=${p.number}><th scope="row"><button class="linklike" onClick=${() => onSelect(p.number)}>${p.number}</button></th>
      <td class="num">${p.score === undefined ? none : offBy(p.score, p.off_by)}</td><td class="num">${p.delta === undefined ? '' : score(p.delta)}</td>
      <td>${p.from || none}</td><td class="of">${[p.leg && t('chart.leg', { n: p.leg }), p.best && t('best'), p.undone && t('status.undone'), p.provisional && t('provisional')].filter(Boolean).join(', ')}</td></tr>`)}</tbody>
  </table></div>`
}

// Spark is the chart of a row in a list: the line, the best, the end.
export function Spark({ scores, target, end, width = 96, height = 26 }) {
  const values = scores.filter(s => s.score !== undefined)
  if (!values.length) return html`<span class="mute small">${t('unscored')}</span>`
  const all = values.map(s => s.score).concat(target === undefined ? [] : [target])
  let low = Math.min(...all), high = Math.max(...all)
  if (low === high) [low, high] = [low - 1, high + 1]
  const last = Math.max(scores.length - 1, 1)
  const x = i => 4 + (i / last) * (width - 20)
  const y = v => 3 + (1 - (v - low) / (high - low)) * (height - 6)
  let path = '', pen = false
  const marks = []
  scores.forEach((s, i) => {
    if (s.score === undefined) return
    if (s.undone) {
      marks.push(html`<circle key=${i} class="rej" cx=${x(i)} cy=${y(s.score)} r="2" />`)
      return
    }
    path += `${pen ? 'L' : 'M'}${x(i)} ${y(s.score)}`
    pen = true
    if (s.best) marks.push(html`<circle key=${i} class="best" cx=${x(i)} cy=${y(s.score)} r="3" />`)
  })
  const at = x(scores.length - 1) + 6
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label=${t('spark', { scores: values.slice(-8).map(s => score(s.score)).join(', ') })}>
    ${target !== undefined && html`<line class="tgt" x1="0" x2=${width} y1=${y(target)} y2=${y(target)} />`}
    <path class="ln" d=${path} />${marks}
    ${end && html`<g class=${'end ' + end}><rect x=${at} y="3" width="1.2" height=${height - 6} /><rect x=${at + 3} y="3" width="3" height=${height - 6} /></g>`}
  </svg>`
}
