import { html, useEffect, useState } from '../ui.js'
import { compared } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { lock } from '../server.js'
import { whole, score, signed, percent, duration, money, clock, exactTime, none } from '../format.js'
import { Icon } from '../parts/icon.js'

// A verdict has a glyph and a color, always with its word.
const looks = { passed: ['good', 'ok'], better: ['good', 'ok'], same: ['good', 'ok'], failed: ['bad', 'cross'], worse: ['bad', 'cross'] }
const states = { always: ['good', 'ok'], sometimes: ['warn', 'below'], never: ['bad', 'cross'], error: ['bad', 'bang'] }

const Mark = ({ of, word, prefix }) => html`<span class=${'st nowrap ' + of[0]}><${Icon} name=${of[1]} />${t(prefix + word)}</span>`
const unknown = ['off', 'wait']
const Verdict = ({ verdict }) => html`<${Mark} of=${looks[verdict] || unknown} word=${verdict} prefix="verdict.eval." />`

// useAnswer is what the server answers, and why it does not.
function useAnswer(ask, deps) {
  const [answer, set] = useState({})
  useEffect(() => {
    let gone = false
    ask().then(value => gone || set({ value }), e => gone || (e.status === 401 ? lock() : set({ problem: e.message })))
    return () => (gone = true)
  }, deps)
  return answer
}

const address = id => '/evals/' + encodeURIComponent(id)

// Evals is the list of the store's evals, the newest first.
export function Evals() {
  const { value, problem } = useAnswer(api.evals, [])
  useEffect(() => {
    document.title = t('evals') + ' · Refrain'
  }, [])
  const list = value?.evals
  return html`<main id="main" tabindex="-1"><div class="row headrow"><h1>${t('evals')}</h1><span class="mute">${t('evals.what')}</span></div>
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${list && !list.length && html`<section class="panel pad empty"><p>${t('evals.none')}</p><p class="soft"><code>refrain eval FILE --cases CASES</code></p></section>`}
    ${list?.length > 0 && html`<div class="panel"><div class="scroll-x" tabindex="0" role="group" aria-label=${t('evals')}><table class="ledger evals"><caption class="sr">${t('evals')}</caption>
      <thead><tr><th scope="col">${t('eval')}</th><th scope="col">${t('verdict')}</th><th scope="col">${t('cases')}</th><th scope="col" class="num">${t('cost')}</th><th scope="col" class="num">${t('started')}</th></tr></thead>
      <tbody>${list.map(e => html`<tr key=${e.eval}><th scope="row"><a class="ttl" href=${address(e.eval)}>${e.name}${e.against && ' ' + t('eval.against', { name: e.against })}</a> <span class="mono mute small">${e.eval}</span></th>
        <td>${e.over ? html`<${Verdict} verdict=${e.verdict} />` : html`<span class="st off">${t('eval.goes.on')}</span>`}</td>
        <td class="nowrap">${e.set} <span class="mute">${whole(e.cases)}</span></td><td class="num">${e.cost === null ? t('unknown.cost') : money(e.cost)}</td>
        <td class="num nowrap mute"><time title=${exactTime(e.began)}>${clock(e.began)}</time></td></tr>`)}</tbody></table></div></div>`}
  </main>`
}

// Eval is one eval: its figures, and its cases with the largest loss first. A case leads to its runs, side by side if there are two versions.
export function Eval({ id }) {
  const { value: e, problem } = useAnswer(() => api.evalReport(id), [id])
  useEffect(() => {
    document.title = id + ' · Refrain'
  }, [id])
  const crumb = html`<p class="crumb"><a href="/evals">${t('evals')}</a> / <span class="mono">${id}</span></p>`
  if (problem) return html`<main id="main" tabindex="-1">${crumb}<section class="panel pad"><h1>${t('no.eval')}</h1><p class="soft" role="alert">${problem}</p></section></main>`
  if (!e) return html`<main id="main" tabindex="-1" aria-busy="true">${crumb}<p class="mute">${t('loading')}</p></main>`
  const versions = [e.new, e.old].filter(Boolean)
  return html`<main id="main" tabindex="-1">${crumb}
    <div class="row headrow"><h1>${e.new.name}${e.old && ' ' + t('eval.against', { name: e.old.name })}</h1><${Verdict} verdict=${e.verdict} /></div>
    ${e.reason && html`<p class="soft" lang="en">${e.reason}</p>`}
    <div class="grid"><section class="panel" aria-labelledby="h-figures"><header><h2 id="h-figures">${t('versions')}</h2><span class="mute small">${e.set}</span></header>
      <${Figures} e=${e} versions=${versions} /></section>
    <section class="panel" aria-labelledby="h-cases"><header><h2 id="h-cases">${t('cases')}</h2><span class="mute small">${e.old && t('losses.first')}</span></header>
      <${Cases} e=${e} /></section></div>
  </main>`
}

// isRatio says that versions are compared by the ratio of a metric, of which less is better.
const isRatio = metric => metric === 'cost' || metric === 'seconds'

const figure = (metric, v) => (v === null || v === undefined ? none : metric === 'cost' ? money(v) : metric === 'seconds' ? duration(v * 1e9) : score(v))

function Figures({ e, versions }) {
  const range = (c, show) => (c?.difference === null || !c ? none : show(c.difference) + (c.low === null || c.high === null ? '' : ` (${show(c.low)} … ${show(c.high)})`))
  const share = v => (v < 0 ? '' : '+') + percent(v)
  const row = (name, show, differ) => html`<tr><th scope="row">${name}</th>${versions.map((v, i) => html`<td key=${i} class="num">${show(v)}</td>`)}${e.old && html`<td class="num nowrap">${differ}</td>`}</tr>`
  const decides = range(e.comparison, isRatio(e.decide) ? share : signed)
  return html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('versions')}><table class="ledger"><caption class="sr">${t('versions')}</caption>
    <thead><tr><th scope="col"><span class="sr">${t('name')}</span></th>${versions.map((v, i) => html`<th key=${i} scope="col" class="num">${e.old && html`<b class=${'side ' + 'AB'[i]}>${'AB'[i]}</b> `}${v.name}</th>`)}${e.old && html`<th scope="col" class="num">${t('eval.difference', { level: score(100 * e.level) })}</th>`}</tr></thead>
    <tbody>${row(e.decide === 'passed' ? t('eval.passed') : e.decide, v => figure(isRatio(e.decide) ? '' : e.decide, v.decided.mean), decides)}
      ${['always', 'sometimes', 'never', 'error', 'not_evaluated'].map(s => versions.some(v => v[s]) && row(t('state.' + s), v => whole(v[s]), ''))}
      ${row(t('cost'), v => (v.cost === null ? t('unknown.cost') : money(v.cost)), range(e.cost_ratio, share))}
      ${row(t('active'), v => duration(v.seconds * 1e9), range(e.seconds_ratio, share))}</tbody></table></div>`
}

// lossOf is by how much the first version is worse in a case; what cannot be compared comes last.
function lossOf(c, metric) {
  const a = c.new?.value, b = c.old?.value
  const known = v => v !== null && v !== undefined
  if (!known(a)) return -Infinity
  return (known(b) ? b - a : -a) * (isRatio(metric) ? -1 : 1)
}

// why is the first reason for which a run of a case did not pass.
function why(outcome) {
  for (const r of outcome?.runs || []) {
    if (r.error) return r.error
    const failed = r.passed === false && r.checks.find(c => c.passed === false && !c.informational)
    if (failed) return failed.name + ': ' + failed.reason
  }
  return ''
}

function Cases({ e }) {
  const list = e.cases.map(c => [lossOf(c, e.decide), c]).sort((x, y) => y[0] - x[0]).map(([, c]) => c)
  const Side = ({ of }) => (of ? html`<${Mark} of=${states[of.state] || unknown} word=${of.state.replace(' ', '_')} prefix="state." /> <span class="mute">${e.decide !== 'passed' && figure(e.decide, of.value)}</span>` : none)
  // The runs of a case with one number are seen side by side.
  const links = c => (c.new?.runs || []).map((a, i) => {
    const b = e.old && c.old?.runs[i]
    return { n: i + 1, href: b ? compared(a.id, b.id) : '/runs/' + encodeURIComponent(a.id), fell: a.passed === false && (!b || b.passed) }
  })
  return html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('cases')}><table class="ledger cases"><caption class="sr">${t('cases')}</caption>
    <thead><tr><th scope="col">${t('case')}</th><th scope="col">${e.old ? 'A' : t('eval.result')}</th>${e.old && html`<th scope="col">B</th>`}<th scope="col">${t('runs')}</th><th scope="col">${t('eval.why')}</th></tr></thead>
    <tbody>${list.map(c => {
      const all = links(c)
      const first = all.find(l => l.fell) || all[0]
      return html`<tr key=${c.id}><th scope="row" class="nowrap">${first ? html`<a class="ttl" href=${first.href}>${c.id}</a>` : c.id}</th><td class="nowrap"><${Side} of=${c.new} /></td>${e.old && html`<td class="nowrap"><${Side} of=${c.old} /></td>`}
        <td class="nowrap">${all.map(l => html`<a key=${l.n} href=${l.href} aria-label=${t('case.run', { name: c.id, n: l.n })}>${l.n}</a> `)}</td><td class="soft because">${why(c.new)}</td></tr>`
    })}</tbody></table></div>`
}
