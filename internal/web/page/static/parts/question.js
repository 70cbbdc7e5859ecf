import { html, useEffect, useRef, useState } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { clock } from '../format.js'
import { Icon } from './icon.js'
import { Fields, content, filled } from './fields.js'

// Question is one that a step asks a person. What is typed is lost neither by a new drawing nor
// by an answer that was too late.
export function Question({ id, question: q, first, open }) {
  const [text, setText] = useState('')
  const [keys, setKeys] = useState(() => Object.fromEntries(Object.entries(q.keys || {}).map(([k, v]) => [k, typeof v === 'string' ? v : JSON.stringify(v)])))
  const [state, setState] = useState('open')
  const [problem, setProblem] = useState('')
  const ref = useRef()
  const send = async answer => {
    setState('sending')
    setProblem('')
    try {
      await api.act(id, 'answer', { question: q.id, ...answer })
      setState('sent')
    } catch (e) {
      setState(e.status === 409 ? 'late' : 'open')
      setProblem(e.message)
    }
  }
  useEffect(() => { // the link of a notification
    if (first && location.hash === '#ask') ref.current?.querySelector('.q')?.focus()
  }, [])
  const label = 'q-' + q.id
  const busy = state !== 'open'
  const why = text ? { reason: text } : {}
  const otherwise = { true: t('yes'), false: t('no') }[q.default] ?? (typeof q.default === 'string' ? q.default : JSON.stringify(q.default))
  const waits = q.deadline && [t('until', { time: clock(q.deadline) }), q.default !== undefined && t('then', { answer: otherwise })].filter(Boolean).join(', ')
  let controls
  if (q.kind === 'edit') {
    const read = () => Object.fromEntries(Object.entries(keys).map(([k, v]) => {
      if (typeof q.keys[k] === 'string') return [k, v]
      try { return [k, JSON.parse(v)] } catch { return [k, v] }
    }))
    controls = html`${Object.keys(keys).map(k => html`<label key=${k}>${k}<textarea rows="4" value=${keys[k]} onInput=${e => setKeys({ ...keys, [k]: e.target.value })}></textarea></label>`)}
      <button type="button" class="btn ask" disabled=${busy} onClick=${() => send({ value: read() })}>${t('answer.send')}</button>`
  } else if (q.kind === 'confirm' || q.kind === 'approve') {
    controls = html`<label class="sr" for=${'why-' + q.id}>${t('answer.reason')}</label><input id=${'why-' + q.id} placeholder=${t('answer.reason')} value=${text} onInput=${e => setText(e.target.value)} />
      <button type="button" class="btn ask" disabled=${busy} onClick=${() => send({ value: true, ...why })}>${t('yes')}</button>
      <button type="button" class="btn" disabled=${busy} onClick=${() => send({ value: false, ...why })}>${t('no')}</button>`
  } else if (q.kind === 'form') {
    controls = html`<${Fields} id=${q.id} form=${q.form} values=${keys} onInput=${setKeys} />
      <button type="button" class="btn ask" disabled=${busy} onClick=${() => {
        const missing = filled(q.form, keys)
        if (missing) return setProblem(t('form.missing', { field: missing }))
        send({ value: { action: 'accept', content: content(q.form, keys) } })
      }}>${t('answer.send')}</button>
      <button type="button" class="btn" disabled=${busy} onClick=${() => send({ value: { action: 'decline' } })}>${t('form.decline')}</button>
      <button type="button" class="btn" disabled=${busy} onClick=${() => send({ value: { action: 'cancel' } })}>${t('form.cancel')}</button>`
  } else if (q.kind === 'resolve') {
    const says = q.options.includes('result')
    controls = html`${says && html`<label class="sr" for=${'say-' + q.id}>${t('answer')}</label><input id=${'say-' + q.id} placeholder=${t('answer')} value=${text} onInput=${e => setText(e.target.value)} />`}
      ${q.options.map((o, i) => html`<button key=${o} type="button" class=${i ? 'btn' : 'btn ask'} disabled=${busy} onClick=${() => send({ value: o === 'result' ? { action: o, result: text } : { action: o } })}>${o}</button>`)}`
  } else if (q.options?.length) {
    controls = q.options.map((o, i) => html`<button key=${o} type="button" class=${i ? 'btn' : 'btn ask'} disabled=${busy} onClick=${() => send({ value: o })}>${o}</button>`)
  } else {
    controls = html`<label class="sr" for=${'say-' + q.id}>${t('answer')}</label><textarea id=${'say-' + q.id} rows="2" placeholder=${t('answer')} value=${text} onInput=${e => setText(e.target.value)}></textarea>
      <button type="button" class="btn ask" disabled=${busy || !text} onClick=${() => send({ value: text })}>${t('answer.send')}</button>`
  }
  return html`<form class="askbox" id=${first ? 'ask' : null} aria-labelledby=${label} ref=${ref} onSubmit=${e => e.preventDefault()}>
    <${Icon} name="ask" /><p class="q pre" id=${label} tabindex="-1">${q.text}</p>
    ${open && html`<div class="do">${controls}</div>`}
    <p class="small">${[q.agent && (q.iteration ? t('asked.by.in', { who: q.agent, n: q.iteration }) : q.agent), waits, t('waiting.free')].filter(Boolean).join('. ')}
      ${state === 'sending' && ' ' + t('sending')}${state === 'sent' && ' ' + t('sent')}</p>
    ${problem && html`<p class="st bad small" role="alert">${problem}</p>`}
  </form>`
}
