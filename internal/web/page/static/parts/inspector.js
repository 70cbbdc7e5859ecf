import { html, useEffect, useRef, useState, useKeys } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { whole, percent, duration, money, clock, exactTime } from '../format.js'
import { Copy } from './copy.js'
import { Icon } from './icon.js'
import { Prompt } from './prompt.js'
import { AgentName, shownName } from './agent-name.js'
import { WordsDiff, Changes } from './words-diff.js'
import { Files } from './files.js'
import { Race } from './race.js'

// An iteration of a run with a workspace has all of these, others have no files.
export const tabs = ['output', 'prompt', 'state', 'events', 'raw', 'files']

// Inspector is what a step said, was told, changed and left in the log.
export function Inspector({ id, looks, row, files, tab: wanted, setTab, version, onFork, onBack }) {
  const [step, setStep] = useState(null)
  const [problem, setProblem] = useState('')
  const [text, setText] = useState(false)
  const at = row && (row.kind === 'iteration' ? row.key : row.data.address)
  const live = row?.data?.status === 'running'
  const offered = files && row?.kind === 'iteration' ? tabs : tabs.slice(0, -1)
  const tab = offered.includes(wanted) ? wanted : 'output'
  const ref = useRef()
  useEffect(() => {
    if (!at) return setStep(null)
    let over = false
    api.step(id, at).then(s => !over && (setStep(s), setProblem('')), e => !over && setProblem(e.message))
    return () => (over = true)
  }, [at, live && version, row?.data?.status])
  useKeys(Object.fromEntries(offered.map((name, i) => [String(i + 1), () => at && setTab(name)])), [at, offered.length])
  if (!row) return html`<section class="panel insp" aria-label=${t('inspector')}><p class="pad mute">${t('choose')}</p></section>`
  const d = row.data || {}
  const move = e => {
    const i = offered.indexOf(tab)
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: offered.length - 1 }[e.key]
    if (e.key === 'Escape') return onBack()
    if (to === undefined || !offered[to]) return
    e.preventDefault()
    setTab(offered[to])
    ref.current.querySelector(`#tab-${offered[to]}`).focus()
  }
  const count = { state: step?.changes?.length, events: step?.events_total }
  return html`<section class="panel insp" aria-label=${t('inspector')} ref=${ref}>
    <header class="plain"><h2>${row.kind === 'iteration' ? t('iteration.n', { n: row.number }) : html`<${AgentName} name=${d.name} looks=${looks} />`}</h2>
      ${row.kind !== 'iteration' && shownName(d.name, looks) !== d.name && html`<span class="mono mute small">${d.name}</span>`}
      ${row.iteration > 0 && html`<span class="mute">${t('iteration.n', { n: row.iteration })}</span>`}
      ${row.kind === 'iteration' && d.complete && onFork && html`<span class="push row"><button class="btn s" onClick=${() => onFork(row)}><${Icon} name="fork" />${t('fork.here')}</button></span>`}</header>
    <div class="pad meta"><span><b>${duration(d.took_ns)}</b></span>
      ${step?.input_tokens !== undefined && html`<span><b>${whole(step.input_tokens)}</b> ${t('in')}, <b>${whole(step.output_tokens)}</b> ${t('out')}</span>`}
      ${step?.cache && html`<span>${t('cache.share', { share: percent(step.cache.share) })}</span>`}
      ${step?.cost !== undefined && html`<span>${t('cost')} <b>${money(step.cost)}</b></span>`}
      ${step?.model && html`<span class="mono">${step.model}</span>`}
      ${d.attempt > 1 && html`<span>${t('attempt', { n: d.attempt })}</span>`}
      ${d.from > 0 && html`<span>${t('written.from', { n: d.from })}</span>`}</div>
    <div class="tabs" role="tablist" aria-label=${t('inspector')} onKeyDown=${move}>
      ${offered.map(name => html`<button key=${name} role="tab" id=${'tab-' + name} aria-controls="tabpanel" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1} onClick=${e => { setTab(name); e.currentTarget.scrollIntoView({ block: 'nearest', inline: 'nearest' }) }}>${t('tab.' + name)} ${count[name] > 0 && html`<span class="mute">${whole(count[name])}</span>`}</button>`)}
    </div>
    <div class="pad panelbody" role="tabpanel" id="tabpanel" aria-labelledby=${'tab-' + tab} tabindex="0">
      ${problem && html`<p class="st bad">${problem}</p>`}
      ${tab === 'output' && d.race && html`<${Race} race=${d.race} looks=${looks} />`}
      ${!step && !problem ? html`<p class="mute">${t('loading')}</p>` : tab === 'files' ? html`<${Files} key=${at} id=${id} loop=${row.loop} number=${row.number} it=${d} />` : step && html`<${Body} id=${id} tab=${tab} step=${step} live=${live} d=${d} text=${text} setText=${setText} />`}
    </div>
  </section>`
}

// escaped writes characters that cannot be seen, or turn the direction of a text, as JSON may.
const escaped = json => json.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, c => (c === '\n' ? c : [...Array(c.length).keys()].map(i => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0')).join('')))

function Body({ id, tab, step, live, d, text, setText }) {
  switch (tab) {
    case 'output':
      return html`${step.error && html`<pre class="block bad">${step.error}</pre>`}
        ${step.words && html`<div class="row gap"><div class="seg s" role="group" aria-label=${t('tab.output')}>
            <button aria-pressed=${!text} onClick=${() => setText(false)}>${t('changes')}</button><button aria-pressed=${text} onClick=${() => setText(true)}>${t('text')}</button></div>
          <span class="mute small">${t('against', { n: step.against })}</span><${Copy} text=${step.output} /></div>`}
        ${step.output === '' && !live && html`<p class="mute">${t('said.nothing')}</p>`}
        ${step.words && !text ? html`<${WordsDiff} edits=${step.words} />` : html`<div class="row">${!step.words && step.output && html`<${Copy} text=${step.output} />`}</div><p class="prose pre">${step.output}${live && html`<span class="caret pulse"></span>`}</p>`}
        ${step.shortened && html`<p class="mute small">${t('shortened')}</p>`}`
    case 'prompt':
      return d.address ? html`<${Prompt} id=${id} at=${d.address} version=${d.status} />` : html`<p class="mute">${t('no.prompt')}</p>`
    case 'state':
      return html`<${Changes} changes=${step.changes || []} none=${t('no.changes')} />`
    case 'events':
      if (!step.events?.length) return html`<p class="mute">${t('no.events')}</p>`
      return html`<ol class="evs">${step.events.map(e => html`<li key=${e.seq}><span class="mute mono">${e.seq}</span> <time title=${exactTime(e.time)}>${clock(e.time)}</time> <span>${e.text}</span></li>`)}</ol>
        ${step.events_total > step.events.length && html`<p class="mute small">${t('events.more', { n: step.events_total - step.events.length })}</p>`}`
    case 'raw':
      const raw = escaped(JSON.stringify(step.raw, null, 2))
      return html`<${Copy} text=${raw} /><pre class="raw">${raw}</pre>`
  }
}
