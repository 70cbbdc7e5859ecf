import { html, useEffect, useRef, useState, useWidth } from '../ui.js'
import { route, setQuery } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { whole, score, signed, offBy, withinNoise, duration, money, clock, exactTime, none } from '../format.js'
import { AgentName } from '../parts/agent-name.js'
import { Status, over } from '../parts/status.js'
import { Ledger } from '../parts/ledger.js'
import { Barline, lineage, place, placed, targetOf, ticks } from '../parts/chart.js'
import { LinesDiff, words } from '../parts/lines-diff.js'
import { WordsDiff } from '../parts/words-diff.js'
import { resultFrom, useRun, useSince } from './run.js'

const sides = ['A', 'B']

// Compare shows two runs side by side, as they are told by the server: also while they go on.
export function Compare() {
  const { a, b } = route.value.query
  useEffect(() => {
    document.title = t('compare.title') + ' · Refrain'
  }, [])
  return html`<main id="main" tabindex="-1"><p class="crumb"><a href="/">${t('runs')}</a> /</p>
    <div class="row headrow"><h1>${t('compare.title')}</h1>${a && b && html`<button class="btn push" onClick=${() => setQuery({ a: b, b: a })}>${t('compare.swap')}</button>`}</div>
    ${a && b ? html`<${Two} key=${a + ' ' + b} ids=${[a, b]} />` : html`<section class="panel pad empty"><p>${t('compare.none')}</p></section>`}
  </main>`
}

function Two({ ids }) {
  const runs = ids.map(id => useRun(id))
  const heads = runs.map(([store]) => store.head.value)
  const since = heads.map(head => useSince(head))
  const problem = runs.findIndex(([, problem]) => problem)
  if (problem >= 0) return html`<section class="panel pad"><h2>${t('no.run')} <span class="mono">${ids[problem]}</span></h2><p class="soft" role="alert">${runs[problem][1]}</p></section>`
  if (heads.some(head => !head)) return html`<p class="mute" aria-busy="true">${t('loading')}</p>`
  const loops = heads.map(head => head.loop)
  return html`<div class="panel clip"><${Figures} heads=${heads} active=${heads.map((head, i) => head.active_ns + since[i])} /></div>
    <div class="grid two-up">
      ${loops.some(Boolean) && html`<${Scores} heads=${heads} />
      ${heads.map((head, i) => html`<section key=${i} class="panel" aria-labelledby=${'h-stop-' + i}><header><h2 id=${'h-stop-' + i}>${sides[i]}: ${head.loop?.stop ? t('why.stopped') : t('how.stop')}</h2></header>
        ${head.loop && html`<p class="pad stopline"><b>${head.loop.outlook.words.lead}</b> ${head.loop.outlook.words.rest}</p><${Ledger} outlook=${head.loop.outlook} since=${head.loop.stop ? 0 : since[i]} caption=${t(head.loop.stop ? 'ledger.done' : 'ledger.live')} />`}</section>`)}`}
      <${Results} heads=${heads} />
      <${Where} heads=${heads} />
      <${Definitions} ids=${ids} /></div>`
}

// Figures are the two runs in numbers, and how far the second is from the first.
function Figures({ heads, active }) {
  const row = (name, values, show, differ) => {
    if (values.every(v => v === undefined || v === '')) return null
    const by = differ && values.every(v => v !== undefined) && values[1] - values[0]
    return html`<tr><th scope="row">${name}</th>${values.map((v, i) => html`<td key=${i}>${v === undefined || v === '' ? none : show(v, heads[i])}
      ${i === 1 && by ? html` <span class="mute small">${differ(by)}</span>` : ''}</td>`)}</tr>`
  }
  const of = get => heads.map(get)
  const signedBy = show => by => (by > 0 ? '+' : '-') + show(Math.abs(by))
  return html`<table class="ledger pair"><caption class="sr">${t('compare.title')}</caption>
    <thead><tr><th scope="col"><span class="sr">${t('name')}</span></th>${heads.map((h, i) => html`<th key=${h.id} scope="col"><b class=${'side ' + sides[i]}>${sides[i]}</b> <a class="ttl" href=${'/runs/' + encodeURIComponent(h.id)}><${AgentName} name=${h.name} looks=${h.looks} /></a> <span class="mono mute small">${h.id}</span></th>`)}</tr></thead>
    <tbody>${row(t('status'), of(h => h.status), s => html`<${Status} status=${s} />`)}
      ${row(t('message'), of(h => h.message), s => html`<q>${s}</q>`)}
      ${row(t('started'), of(h => h.began), at => html`<time title=${exactTime(at)}>${clock(at)}</time>`)}
      ${row(t('best'), of(h => h.keys.best?.score), (v, h) => html`<b>${offBy(v, h.keys.best.off_by)}</b> <span class="soft">${t('in.n', { n: h.keys.best.iteration })}</span>`, by => [signed(by), withinNoise(...heads.map(h => h.keys.best)) && t('within.noise')].filter(Boolean).join(', '))}
      ${row(t('iterations'), of(h => h.keys.iteration), (v, h) => html`${v} <span class="soft">${h.keys.of > 0 && t('of', { bound: h.keys.of })}</span>`, by => signed(by))}
      ${row(t('active'), active, duration, signedBy(duration))}
      ${row(t('tokens'), of(h => h.keys.tokens), v => whole(v), by => signed(by))}
      ${row(t('cost'), of(h => h.keys.cost), (v, h) => html`${h.keys.cost_at_least && t('at.least') + ' '}${money(v)}`, signedBy(money))}</tbody></table>`
}

// Scores are those of both runs, over one another: the second is drawn dashed, with squares.
function Scores({ heads }) {
  const ref = useRef()
  const width = useWidth(ref)
  const [table, setTable] = useState(false)
  const runs = heads.map(h => (h.loop?.points || []).filter(p => p.score !== undefined))
  const points = runs.flat().sort((a, b) => a.number - b.number)
  return html`<section class="panel whole" aria-labelledby="h-score"><header><h2 id="h-score">${t('score')}</h2><span class="legend2 small soft"><b class="side A">A</b> <b class="side B">B</b></span>
      <span class="push seg s" role="group" aria-label=${t('axis')}>${[false, true].map(is => html`<button key=${is} aria-pressed=${table === is} onClick=${() => setTable(is)}>${t(is ? 'axis.table' : 'axis.iterations')}</button>`)}</span></header>
    <div class="pad"><div ref=${ref} class="chartbox">
      ${!points.length ? html`<p class="mute">${t(heads.some(h => h.loop?.scored) ? 'chart.none' : 'chart.unscored')}</p>` : table ? html`<${ScoreTable} heads=${heads} />` : html`<${Lines} heads=${heads} runs=${runs} points=${points} width=${width} />`}</div></div></section>`
}

function Lines({ heads, runs, points, width }) {
  const targets = [...new Map(heads.filter(h => h.loop?.target !== undefined).map(h => [h.loop.target, h.loop])).values()]
  // Two targets have the names of their runs, and the second a line of its own.
  const sideOf = l => (targets.length > 1 ? sides[heads.findIndex(h => h.loop === l)] : '')
  // The scale has room for both targets.
  const p = place({ points: points.concat(targets.map(l => ({ ...points[points.length - 1], score: l.target }))), outlook: {}, target: targets[0]?.target }, 'iterations', width)
  const { x, y } = p
  const texts = runs.flatMap((scored, i) => scored.filter(at => at.best).map(at => ({ key: i, text: `${sides[i]} ${score(at.score)}`, kind: 'halo v good', at: [[x(at) + 3, y(at.score) - 14, 'end'], [x(at) + 3, y(at.score) + 24, 'end'], [x(at) - 12, y(at.score) + 4, 'end'], [x(at) + 14, y(at.score) + 4, 'start']] })))
    .concat(targets.map(l => ({ key: 't' + l.target, text: [sideOf(l), targetOf(l)].filter(Boolean).join(' '), kind: 'good halo', at: [[p.left - 12, y(l.target) - 6, 'start'], [width - 4, y(l.target) - 6, 'end'], [width - 4, y(l.target) + 14, 'end']] }))) // on the right are the lines where the runs stopped
  const every = Math.max(1, Math.ceil(p.shownTo / Math.max(2, Math.floor(width / 46))))
  const says = heads.map((h, i) => t('compare.scores', { run: sides[i], scores: runs[i].slice(-8).map(at => score(at.score)).join(', ') || t('unscored') })).join('. ')
  return html`<svg class="chart" viewBox=${`0 0 ${width} ${p.height}`} width=${width} height=${p.height} role="img" aria-label=${says}>
    ${ticks(p.low, p.high).map(v => html`<line key=${'g' + v} class="g" x1=${p.left - 14} x2=${width - p.right + 12} y1=${y(v)} y2=${y(v)} /><text key=${'l' + v} x=${p.left - 20} y=${y(v) + 4} text-anchor="end">${score(v)}</text>`)}
    ${Array.from({ length: p.shownTo }, (_, i) => i + 1).filter(n => n === 1 || n % every === 0).map(n => html`<text key=${'x' + n} x=${x(n)} y=${p.height - 6} text-anchor="middle">${n}</text>`)}
    ${targets.map(l => html`<line key=${l.target} class=${'tgt ' + sideOf(l)} x1=${p.left - 14} x2=${width - p.right + 12} y1=${y(l.target)} y2=${y(l.target)} />`)}
    ${runs.map((scored, i) => html`<g key=${i} class=${'run ' + sides[i]}>
      ${heads[i].loop?.stop && scored.length > 0 && html`<${Barline} x=${x(heads[i].loop.stop.iteration) + 10 + 4 * i} top=${p.top - 4} bottom=${p.height - p.bottom} kind=${heads[i].loop.stop.kind} faint />`}
      ${lineage(scored).map(([from, at, kind]) => html`<line key=${at.number} class=${kind} x1=${x(from)} y1=${y(from.score)} x2=${x(at)} y2=${y(at.score)} />`)}
      ${scored.map(at => {
        const kind = at.undone || at.rejected ? 'rej' : at.best ? 'best' : at.provisional ? 'prov' : 'pt', r = at.best ? 6 : scored.length * 14 > width ? 2.5 : 4
        return i ? html`<rect key=${at.number} class=${kind} x=${x(at) - r} y=${y(at.score) - r} width=${2 * r} height=${2 * r} />` : html`<circle key=${at.number} class=${kind} cx=${x(at)} cy=${y(at.score)} r=${r} />`
      })}</g>`)}
    ${placed(texts).map(one => html`<text key=${one.key} class=${one.kind} x=${one.x} y=${one.y} text-anchor=${one.anchor}>${one.text}</text>`)}
  </svg>`
}

// ScoreTable says the same as the chart; a score leads to its iteration.
function ScoreTable({ heads }) {
  const by = heads.map(h => new Map((h.loop?.points || []).map(p => [p.number, p])))
  const numbers = [...new Set(by.flatMap(m => [...m.keys()]))].sort((a, b) => a - b)
  return html`<div class="scroll-x tablebox" tabindex="0" role="group" aria-label=${t('chart.table')}><table class="ledger"><caption class="sr">${t('chart.table')}</caption>
    <thead><tr><th scope="col">${t('iteration')}</th>${sides.map(s => html`<th key=${s} scope="col" class="num">${s}</th>`)}</tr></thead>
    <tbody>${numbers.map(n => html`<tr key=${n}><th scope="row">${n}</th>${by.map((m, i) => html`<td key=${i} class="num">${m.has(n) ? html`<a href=${`/runs/${encodeURIComponent(heads[i].id)}#${n}`}>${score(m.get(n).score)}</a>` : ''}</td>`)}</tr>`)}</tbody></table></div>`
}

// Results are what both handed back, and what the second changed in it.
function Results({ heads }) {
  const [a, b] = heads.map(h => h.result?.text)
  const edits = a && b && a !== b && words(a, b)
  return html`${heads.map((h, i) => html`<section key=${i} class="panel" aria-labelledby=${'h-result-' + i}><header><h2 id=${'h-result-' + i}>${sides[i]}: ${t('result')}</h2><span class="mute small">${h.result && resultFrom(h)}</span></header>
      <div class="pad resulttext" tabindex="0" role="group" aria-label=${`${sides[i]}: ${t('result')}`}>${h.result ? html`<p class="prose pre">${h.result.text}</p>` : html`<p class="mute">${over(h) ? t('result.none') : t('compare.not.yet')}</p>`}</div></section>`)}
    ${a && b && html`<section class="panel whole" aria-labelledby="h-changes"><header><h2 id="h-changes">${t('compare.changes')}</h2></header>
      <div class="pad resulttext" tabindex="0" role="group" aria-label=${t('compare.changes')}>${edits ? html`<${WordsDiff} edits=${edits} />` : a === b ? html`<p class="mute">${t('compare.same')}</p>` : html`<${LinesDiff} before=${a} after=${b} />`}</div></section>`}`
}

// Where is what the steps of both have taken, by name.
function Where({ heads }) {
  const by = heads.map(h => new Map((h.where || []).map(w => [w.step, w])))
  const steps = [...new Set(by.flatMap(m => [...m.keys()]))]
  if (!steps.length) return null
  const figures = [['times.run', w => whole(w.runs)], ['time', w => duration(w.time_ns)], ['tokens', w => w.tokens && whole(w.tokens)], ['cost', w => w.cost !== undefined && money(w.cost)]]
    .filter(([, show]) => by.some(m => [...m.values()].some(show)))
  return html`<section class="panel whole" aria-labelledby="h-where"><header><h2 id="h-where">${t('where.it.went')}</h2></header>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${t('where.it.went')}><table class="ledger"><caption class="sr">${t('where.it.went')}</caption>
    <thead><tr><th scope="col">${t('step')}</th>${figures.flatMap(([name]) => sides.map(s => html`<th key=${name + s} scope="col" class="num">${t(name)} ${s}</th>`))}</tr></thead>
    <tbody>${steps.map(step => html`<tr key=${step}><th scope="row"><${AgentName} name=${step} looks=${{ ...heads[0].looks, ...heads[1].looks }} /></th>${figures.flatMap(([name, show]) => by.map((m, i) => html`<td key=${name + i} class="num">${(m.has(step) && show(m.get(step))) || none}</td>`))}</tr>`)}</tbody></table></div></section>`
}

// Definitions are the changes between the texts that both runs keep.
function Definitions({ ids }) {
  const [texts, setTexts] = useState(null)
  useEffect(() => {
    let gone = false
    Promise.all(ids.map(api.ranWith)).then(both => gone || setTexts(both.map(d => d.text)), () => {}) // a run of a Go program keeps none
    return () => (gone = true)
  }, [])
  if (!texts) return null
  return html`<section class="panel whole" aria-labelledby="h-definition"><header><h2 id="h-definition">${t('compare.definition')}</h2></header>
    <div class="pad">${texts[0] === texts[1] ? html`<p class="mute">${t('compare.same.definition')}</p>` : html`<${LinesDiff} before=${texts[0]} after=${texts[1]} />`}</div></section>`
}
