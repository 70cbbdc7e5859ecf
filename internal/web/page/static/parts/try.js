import { html, useState, announce } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { whole, duration } from '../format.js'
import { Icon } from './icon.js'
import { Chart } from './chart.js'
import { Ledger } from './ledger.js'

const courses = ['gets_better', 'never_enough', 'gets_worse', 'wavers']

// Try plays the text as it stands, without a model: a script answers in the place of everything that
// reaches outside. Nothing is saved, and no run is made.
export function Try({ text, errors, query }) {
  const [course, setCourse] = useState(courses[0])
  const [got, setGot] = useState(null)
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const play = async () => {
    setBusy(true)
    try {
      const tried = await api.try({ text, course, input: query || undefined })
      setGot({ ...tried, text })
      setProblem('')
      announce(tried.loops.map(l => says(l)).join(' '))
    } catch (e) {
      setProblem(e.message)
    } finally {
      setBusy(false)
    }
  }
  return html`<section class="panel try" aria-labelledby="h-try"><header><h2 id="h-try">${t('try')}</h2><span class="push mute small">${t('try.free')}</span></header>
    <div class="pad row"><div class="seg scroll" role="group" aria-label=${t('try.course')}>${courses.map(c => html`<button key=${c} type="button" aria-pressed=${course === c} onClick=${() => setCourse(c)}>${t('course.' + c)}</button>`)}</div>
      <button type="button" class="btn push" disabled=${busy || errors > 0} onClick=${play}><${Icon} name=${busy ? 'run' : 'play'} spin=${busy} />${errors ? t('try.fix', { n: errors }) : t('try.do')}</button></div>
    ${problem && html`<p class="pad st bad" role="alert">${problem}</p>`}
    ${got && html`${got.text !== text && html`<p class="pad st warn small"><${Icon} name="warn" />${t('try.old')}</p>`}
      ${got.error && html`<pre class="block bad">${got.error}</pre>`}
      ${!got.loops.length && html`<p class="pad">${t('try.no.loop')}</p>`}
      ${got.loops.map(l => html`<${Loop} key=${l.name} l=${l} many=${got.loops.length > 1} />`)}
      <footer>${got.stand_ins.length ? html`${t('try.replaced')} ${groups(got.stand_ins)}. ` : t('try.all.real')} ${got.loops.some(l => l.elapsed_ns) && t('try.time', { time: duration(got.step_time_ns) })}</footer>`}
  </section>`
}

// says is what a loop came to, in a sentence.
const says = l => (l.ended ? `${l.shown.outlook.words.lead} ${l.shown.outlook.words.rest || ''}` : t('try.endless', { n: whole(l.iterations) }))

function Loop({ l, many }) {
  const w = l.shown.outlook.words
  return html`<div class="pad tried">${many && html`<h3 class="mono">${l.name}</h3>`}
    <p class="say">${l.ended ? html`<b>${w.lead}</b> ${w.rest}` : html`<span class="st bad"><${Icon} name="warn" />${t('try.endless', { n: whole(l.iterations) })}</span> ${l.guard && html`<span class="mono">${l.guard}</span>`}`}</p>
    <p class="soft small">${t('n.iterations', { n: l.iterations })}${l.elapsed_ns ? ', ' + duration(l.elapsed_ns) : ''}${l.shown.scored && !l.scripted ? '. ' + t('try.computed') : ''}</p>
    ${l.shown.scored && html`<${Chart} loop=${l.shown} axis="iterations" onSelect=${() => {}} />`}</div>
    ${l.ended && html`<${Ledger} outlook=${l.shown.outlook} caption=${t('ledger.done')} />`}`
}

// groups names what is replaced: "writer, judge (model); test (command)".
function groups(all) {
  const by = new Map()
  for (const s of all) by.set(s.kind, [...(by.get(s.kind) || []), s.agent])
  return [...by].map(([kind, names]) => `${names.join(', ')} (${t('standin.' + kind)})`).join('; ')
}
