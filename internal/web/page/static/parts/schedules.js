import { html, useEffect, useState } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { operates } from '../server.js'
import { clock, exactTime, none } from '../format.js'
import { Status, ofRow } from './status.js'

// LastOne is the last time of a schedule: its run and why that ended, or why there is none.
function LastOne({ s }) {
  const { last } = s
  if (!last) return none
  const time = html`<time title=${exactTime(last.time)}>${clock(last.time)}</time>`
  const link = last.run && html`<a class="mono" href=${'/runs/' + encodeURIComponent(last.run)}>${last.run}</a>`
  if (last.outcome === 'skipped') return html`${time} ${t('schedule.skipped')} ${link}`
  if (last.outcome === 'failed') return html`${time} <span class="st bad">${t('schedule.not.started')}</span><span class="two">${last.why}</span>`
  if (s.run_status === 'removed') return html`${time} ${t('schedule.removed')}`
  const why = s.run_status === 'completed' && s.run_why ? t('reason.' + s.run_why) : s.run_why
  return html`${time} <${Status} status=${ofRow(s.run_status, s.run_why)} /> ${why}<span class="two">${link}</span>`
}

// NextOne is when the next run starts.
const NextOne = ({ s }) =>
  html`${s.next ? html`<time title=${exactTime(s.next)}>${clock(s.next)}</time>` : none}
    ${s.paused && html`<span class="two soft">${t('schedule.paused', { by: s.paused_by || '' })}</span>`}
    ${s.queued && html`<span class="two soft">${t('schedule.queued', { time: clock(s.queued) })}</span>`}`

// Schedules are those of the file schedules.yaml in the server's folder; nothing if there are none.
export function Schedules() {
  const [all, setAll] = useState({ schedules: [], problems: [] })
  const [problem, setProblem] = useState('')
  const load = () => api.schedules().then(setAll, e => e.status === 404 || setProblem(e.message)) // a run in a file has no folder
  useEffect(() => {
    load()
    const timer = setInterval(() => document.hidden || load(), 10_000)
    return () => clearInterval(timer)
  }, [])
  const act = s => api.actOnSchedule(s.name, s.paused ? 'continue' : 'pause').then(() => {
    setProblem('')
    return load()
  }, e => setProblem(e.message))
  if (!all.schedules.length && !all.problems.length && !problem) return ''
  return html`<div class="row headrow"><h2>${t('schedules')}</h2></div>
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${all.problems.map(p => html`<p class="panel pad st bad" key=${p}>${p}</p>`)}
    ${all.schedules.length > 0 && html`<div class="panel clip"><table class="tbl schedules"><caption class="sr">${t('schedules')}</caption>
      <thead><tr><th scope="col">${t('name')}</th><th scope="col">${t('schedule.times')}</th><th scope="col">${t('schedule.next')}</th><th scope="col">${t('schedule.last')}</th><th scope="col"><span class="sr">${t('action')}</span></th></tr></thead>
      <tbody>${all.schedules.map(s => html`<tr key=${s.name}><td><b>${s.name}</b> <span class="mono mute small">${s.definition}</span></td><td class="mono soft">${s.times}</td><td data-label=${t('schedule.next')}><${NextOne} s=${s} /></td><td data-label=${t('schedule.last')}><${LastOne} s=${s} /></td>
        <td>${operates.value && html`<button class="btn s" aria-label=${t(s.paused ? 'schedule.continue.name' : 'schedule.pause.name', { name: s.name })} onClick=${() => act(s)}>${t(s.paused ? 'schedule.continue' : 'pause')}</button>`}</td></tr>`)}</tbody></table></div>`}`
}
