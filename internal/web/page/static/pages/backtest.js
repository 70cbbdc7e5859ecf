import { html, useEffect, useRef, useState, useWidth } from '../ui.js'
import { setQuery, route } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { lock } from '../server.js'
import { whole, setting, score, signed, percent, money, none } from '../format.js'
import { Icon } from '../parts/icon.js'
import { ticks } from '../parts/chart.js'

// Backtest moves one number of a stop policy and shows where past runs would have stopped. Nothing
// is run. The server has computed every value at which anything changes: between them is a level.
export function Backtest() {
  const { definition = '', field = '', rules = '' } = route.value.query
  const [study, setStudy] = useState(null)
  const [chosen, choose] = useState({ at: 0 })
  const [problem, setProblem] = useState('')
  useEffect(() => {
    document.title = t('backtest') + ' · Refrain'
    let over = false
    api.study({ definition, field, rules }).then(
      s => {
        if (over) return
        setProblem('')
        setStudy(s)
        choose({ at: s.at })
      },
      e => {
        if (over) return
        if (e.status === 401) lock()
        else setProblem(e.message)
      },
    )
    return () => (over = true)
  }, [definition, field, rules])
  const level = study?.levels?.[chosen.at]
  const exact = chosen.exact ?? level?.value
  const move = at => study.levels[at] && choose({ at })
  const take = v => choose({ at: levelOf(study.levels, v), exact: v })
  return html`<main id="main" tabindex="-1">
    <div class="row headrow"><h1>${t('backtest')}</h1><span class="mute">${t('backtest.what')}</span></div>
    <div class="filters"><label class="bt-pick">${t('the.definition')} <select id="bt-def" onChange=${e => setQuery({ definition: e.target.value, field: '', rules: '' })}><option value="">${t('choose.one')}</option>
        ${(study?.definitions || []).map(d => html`<option key=${d.name} value=${d.name} selected=${d.name === definition}>${d.name} (${t('n.runs', { n: d.runs })})</option>`)}</select></label>
      ${study?.fields && html`<label class="bt-pick">${t('move')} <select id="bt-field" onChange=${e => setQuery({ field: e.target.value })}>${study.fields.map(f => html`<option key=${f.field} value=${f.field} selected=${f.field === study.field}>${fieldName(f.field)}${f.now === undefined ? '' : ': ' + setting(f.now)}</option>`)}</select></label>`}
      ${study?.older > 0 && html`<div class="seg" role="group" aria-label=${t('rules')}>${['recorded', 'today'].map(r => html`<button key=${r} aria-pressed=${study.rules === r} onClick=${() => setQuery({ rules: r === 'today' ? r : '' })}>${t('rules.' + r)}</button>`)}</div>`}</div>
    ${study?.older > 0 && html`<p class="mute small">${t('rules.older', { n: study.older })}</p>`}
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${study && !definition && html`<section class="panel pad empty"><p>${study.definitions.length ? t('backtest.choose') : t('backtest.none')}</p></section>`}
    ${study && definition && !study.levels && html`<section class="panel pad empty"><p>${t('backtest.no.runs', { name: definition })}</p></section>`}
    ${level && html`<div class="grid cols bt-top"><section class="panel" aria-labelledby="h-curve"><header><h2 id="h-curve">${t('saved.by')}</h2>
          <span class="push row"><label class="mono" for="bt-value">${study.field}</label><input id="bt-value" class="n" inputmode="decimal" value=${exact} onChange=${e => Number.isFinite(Number(e.target.value.replace(',', '.'))) && take(Number(e.target.value.replace(',', '.')))} /></span></header>
        <${Curve} study=${study} at=${chosen.at} exact=${exact} move=${move} take=${take} />
        <p class="pad mute small">${study.levels.length > 1 ? t('ticks', { n: study.levels.length - 1 }) : t('ticks.none')}</p></section>
      <${Balance} study=${study} level=${level} exact=${exact} move=${move} /></div>
    <div class="panel clip bt-runs"><table class="tbl bt"><caption class="sr">${t('runs')}</caption><thead><tr><th scope="col">${t('run')}</th><th scope="col">${t('score.by.iteration')} <span class="legend"><i class="would"></i>${t('would.stop')} <i class="did"></i>${t('did.stop')}</span></th><th scope="col" class="num">${t('stops.after')}</th><th scope="col">${t('result')}</th><th scope="col">${t('because')}</th><th scope="col" class="num">${t('saves')}</th></tr></thead>
      <tbody>${grouped(study, level).map(([verdict, rows]) => html`<tr class="grp" key=${verdict}><td colspan="6">${t('group.' + verdict)} <span class="mute">${whole(rows.length)}</span></td></tr>${rows.map(([run, end]) => html`<${Row} key=${run.id} run=${run} end=${end} />`)}`)}</tbody></table></div>`}
  </main>`
}

// fieldName is what a field means, for a person.
const fieldName = field => t('field.' + field)

// levelOf is the level that holds a value.
const holds = (l, v) => (v > l.from || (l.includes_from && v === l.from)) && (l.to === undefined || v < l.to || (l.includes_to && v === l.to))
function levelOf(levels, v) {
  const at = levels.findIndex(l => holds(l, v))
  return at >= 0 ? at : v <= levels[0].from ? 0 : levels.length - 1
}

// grouped puts losses first: the price of a number has to be seen.
function grouped(study, level) {
  const out = ['lost', 'kept', 'unknown', 'same'].map(v => [v, []])
  study.runs.forEach((run, i) => {
    const end = run.ends[level.ends[i]]
    out.find(([v]) => v === end.verdict)[1].push([run, end])
  })
  return out.filter(([, rows]) => rows.length)
}

function Balance({ study, level, exact, move }) {
  const safe = study.levels[study.safe]
  const share = level.all.iterations ? level.saved.iterations / level.all.iterations : 0
  const takes = [{ op: 'fix', path: study.agent, name: study.field, value: String(exact) + (study.unit || '') }]
  return html`<section class="panel" aria-labelledby="h-balance"><header><h2 id="h-balance">${study.now === undefined ? t('in.place.none', { value: setting(exact) }) : exact === study.now ? t('in.place.same', { value: setting(exact) }) : t('in.place', { value: setting(exact), was: setting(study.now) })}</h2></header>
    <dl class="balance" aria-live="polite"><div><dt>${t('iterations')}</dt><dd>${signed(-level.saved.iterations)}</dd><dd class="mute small">${t('of.all', { all: whole(level.all.iterations) })}${share ? ', ' + percent(share) : ''}</dd></div>
      <div><dt>${t('saved.cost')}</dt><dd>${level.all.cost ? money(level.saved.cost || 0) : none}</dd><dd class="mute small">${level.all.cost ? t('of.all', { all: money(level.all.cost) }) + '; ' + costsThen(level) : t('cost.unknown')}</dd></div>
      <div><dt>${t('results.kept')}</dt><dd>${whole(level.kept + level.same)}</dd><dd class="mute small">${t('of.all', { all: whole(level.runs) })}</dd></div>
      <div><dt>${t('lost')}</dt><dd class=${level.lost ? 'down' : ''}>${whole(level.lost)}</dd><dd class="mute small">${[level.loss && t('lost.by', { loss: score(level.loss) }), level.unknown && t('n.unknown', { n: level.unknown })].filter(Boolean).join('; ') || t('lost.none')}</dd></div></dl>
    <div class="pad">${safe && safe.saved.iterations > 0 ? html`<p><b>${t('safe.is', { value: setting(safe.value) })}</b> ${t('safe.saves', { n: safe.saved.iterations })}</p>` : html`<p class="soft">${t('safe.nothing')}</p>`}
      <p class="row gap">${safe && safe !== level && safe.saved.iterations > 0 && html`<button class="btn primary" onClick=${() => move(study.safe)}>${t('safe.move', { value: setting(safe.value) })}</button>`}
        ${study.file && exact !== study.now && html`<a class="btn" href=${`/definitions/${encodeURIComponent(study.file)}?edit=${encodeURIComponent(JSON.stringify(takes))}`}>${t('put.in.file', { value: setting(exact) })}</a>`}</p></div></section>`
}

// costsThen says what the runs would have cost, and what the providers' caches have saved of that.
function costsThen({ all, saved }) {
  const cached = (all.cache_saved || 0) - (saved.cache_saved || 0)
  const cost = money(Math.max(0, all.cost - (saved.cost || 0)))
  return cached > 0 ? t('costs.then.cached', { cost, saved: money(cached) }) : t('costs.then', { cost })
}

// Row is one run: its scores, and where it would stop.
function Row({ run, end }) {
  const looks = { kept: ['good', 'ok'], lost: ['warn', 'below'], same: ['off', 'ok'], unknown: ['off', 'ask'] }[end.verdict]
  const result = end.verdict === 'lost' && end.loss ? t('loses', { loss: score(end.loss) }) : t('verdict.' + end.verdict)
  const best = end.best === undefined ? '' : end.best_was !== undefined && end.best !== end.best_was ? t('best.in.place', { best: score(end.best), was: score(end.best_was) }) : t('chart.best', { score: score(end.best) })
  const even = end.verdict === 'kept' && end.loss > 0 && t('within.noise')
  const fewer = end.saved.iterations
  return html`<tr><td class="s2"><a class="ttl" href=${'/runs/' + encodeURIComponent(run.id)}>${run.message || run.id}</a> ${run.message && html`<span class="mono mute small">${run.id}</span>`}</td>
    <td class="lane"><${Lane} run=${run} end=${end} /></td>
    <td class="num">${end.stops ? whole(end.stops) + (end.verdict === 'unknown' ? '+' : '') : none} ${end.stops !== end.was && end.verdict !== 'unknown' && html`<span class="mute">${t('was', { n: end.was })}</span>`}</td>
    <td><span class=${'st ' + looks[0]}><${Icon} name=${looks[1]} />${result}</span> <span class="two">${[best, even].filter(Boolean).join(', ')}</span></td>
    <td>${end.reason ? t('reason.' + end.reason) : html`<span class="soft small">${end.note || none}</span>`}</td>
    <td class="num">${fewer > 0 ? t('n.iterations', { n: fewer }) : none}</td></tr>`
}

// Lane is the scores of a run, with a barline where it would stop and a pale one where it did.
function Lane({ run, end }) {
  const width = 300, height = 34
  const scores = run.scores
  const values = scores.flatMap(s => (s.score === undefined ? [] : [s.score])).concat(run.target === undefined ? [] : [run.target])
  let low = Math.min(...values), high = Math.max(...values)
  if (low === high) [low, high] = [low - 1, high + 1]
  const x = n => 6 + ((n - 1) / Math.max(1, scores.length - 1)) * (width - 40)
  const y = v => 5 + (1 - (v - low) / (high - low)) * (height - 10)
  const stop = end.verdict === 'unknown' ? scores.length : end.stops
  const part = (from, to) => scores.map((s, i) => [s, i + 1]).filter(([s, n]) => s.score !== undefined && !s.undone && n >= from && n <= to).map(([s, n], i) => `${i ? 'L' : 'M'}${x(n)} ${y(s.score)}`).join('')
  return html`<svg class="spark lane" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${t('lane', { scores: scores.slice(-8).map(s => score(s.score)).join(', '), n: stop, was: end.was })}>
    ${run.target !== undefined && html`<line class="tgt" x1="0" x2=${width} y1=${y(run.target)} y2=${y(run.target)} />`}
    <path class="dead" d=${part(stop, scores.length)} /><path class="ln" d=${part(1, stop)} />
    ${scores.length <= 60 && scores.map((s, i) => s.score !== undefined && html`<circle key=${i} class=${s.undone ? 'rej' : i + 1 > stop ? 'after' : s.score === end.best ? 'best' : 'dot'} cx=${x(i + 1)} cy=${y(s.score)} r=${s.score === end.best && i < stop ? 3.2 : 2.2} />`)}
    ${end.verdict === 'unknown' && html`<path class="dead" d=${`M${x(scores.length) + 14} ${height / 2}H${width}`} />`}
    <g class="did"><rect x=${x(end.was) + 8} y="4" width="1.2" height=${height - 8} /><rect x=${x(end.was) + 10.5} y="4" width="2.4" height=${height - 8} /></g>
    ${end.verdict !== 'unknown' && html`<g class="would"><rect x=${x(stop) + 8} y="2" width="1.4" height=${height - 4} /><rect x=${x(stop) + 11} y="2" width="3.4" height=${height - 4} /></g>`}
  </svg>`
}

// Curve is what each value saves, with the slider below it at the same scale.
function Curve({ study, at, exact, move, take }) {
  const ref = useRef()
  const width = useWidth(ref)
  const h = 190, left = 44, right = 16, top = 24, bottom = 30
  const levels = study.levels
  const bounds = levels.flatMap(l => [l.from, l.to, l.value]).filter(v => v !== undefined).concat(study.now === undefined ? [] : [study.now])
  const low = Math.min(...bounds)
  let high = Math.max(...bounds)
  if (low === high) high = low + 1
  const x = v => left + ((Math.min(high, Math.max(low, v)) - low) / (high - low)) * (width - left - right)
  const most = Math.max(1, ...levels.map(l => l.saved.iterations))
  const least = Math.min(0, ...levels.map(l => l.saved.iterations))
  const y = v => top + (1 - (v - least) / (most - least)) * (h - top - bottom)
  const end = i => levels[i + 1]?.from ?? levels[i].to ?? high
  const d = levels.map((l, i) => `${i ? `V${y(l.saved.iterations)}` : `M${x(l.from)} ${y(l.saved.iterations)}`}H${x(end(i))}`).join('')
  const area = `${d}V${y(0)}H${x(levels[0].from)}Z`
  // The band says where results are lost; neighbours of one kind are one piece.
  const band = []
  levels.forEach((l, i) => {
    const kind = l.lost ? 'lost' : l.unknown ? 'unknown' : 'kept'
    const last = band[band.length - 1]
    if (last && last.kind === kind) last.to = end(i)
    else band.push({ kind, from: l.from, to: end(i) })
  })
  const level = levels[at]
  const says = `${setting(exact)}: ${t('n.saved', { n: level.saved.iterations })}, ${t('n.lost', { n: level.lost })}`
  const key = e => {
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - 10, PageUp: at + 10, Home: 0, End: levels.length - 1 }[e.key]
    if (to === undefined) return
    e.preventDefault()
    move(Math.max(0, Math.min(levels.length - 1, to)))
  }
  return html`<div class="pad curve"><div ref=${ref}><svg class="chart" viewBox=${`0 0 ${width} ${h}`} width=${width} height=${h} aria-hidden="true">
      ${ticks(least, most, 4).filter(Number.isInteger).map(v => html`<line key=${v} class="g" x1=${left} x2=${width - right} y1=${y(v)} y2=${y(v)} /><text x=${left - 8} y=${y(v) + 4} text-anchor="end">${whole(v)}</text>`)}
      <path class="area" d=${area} /><path class="ln" d=${d} />
      ${levels.length < 200 && levels.slice(1).map(l => html`<path key=${'t' + l.from} class="tick" d=${`M${x(l.from)} ${h - bottom + 1}v6`} />`)}
      ${band.map(b => html`<rect key=${b.from + b.kind} class=${'verdict ' + b.kind} x=${x(b.from)} y=${h - bottom + 9} width=${Math.max(2, x(b.to) - x(b.from))} height="6" />`)}
      ${study.now !== undefined && html`<line class="nowline" x1=${x(study.now)} x2=${x(study.now)} y1=${top} y2=${h - bottom} /><text x=${Math.max(left + 20, Math.min(width - 40, x(study.now)))} y=${top - 8} text-anchor="middle">${exact === study.now ? '' : t('now.at', { value: setting(study.now) })}</text>`}
      <g class="at"><rect x=${x(exact) - 3} y=${top} width="1.4" height=${h - top - bottom + 16} /><rect x=${x(exact) - 0.5} y=${top} width="3.4" height=${h - top - bottom + 16} /></g>
      ${ticks(low, high, Math.max(2, Math.floor(width / 90))).map(v => html`<text key=${'x' + v} x=${x(v)} y=${h - 2} text-anchor="middle">${score(v)}</text>`)}
    </svg></div>
    <label class="sr" for="bt-slider">${fieldName(study.field)}</label>
    <input id="bt-slider" type="range" min=${low} max=${high} step="any" value=${exact} aria-valuetext=${says} onKeyDown=${key} onInput=${e => move(levelOf(levels, Number(e.target.value)))} style=${{ marginLeft: left - 11 + 'px', width: width - left - right + 22 + 'px' }} />
    <p class="row small bandwords"><span class="good">${t('band.kept')}</span><span class="warn">${t('band.lost')}</span><span class="mute">${t('band.unknown')}</span></p></div>`
}
