import { html, useState } from '../ui.js'
import { t } from '../words.js'
import { Dialog } from './dialog.js'
import { useSignal } from './away.js'

function Field({ field: f, value, onChange }) {
  const set = e => onChange(e.target.value)
  if (f.options) return html`<label>${f.label}<select name=${f.name} onChange=${set}>${f.options.map(([v, label]) => html`<option key=${v} value=${v} selected=${v === value}>${label}</option>`)}</select></label>`
  return html`<label>${f.label}<input name=${f.name} value=${value} placeholder=${f.placeholder || ''} type=${f.number ? 'number' : 'text'} min=${f.number ? f.min ?? 1 : null} step=${f.number ? 1 : null} onInput=${set} /></label>`
}

// Ask asks before something is done to a run, and says what is kept. A field has options, a list of
// [value, label], or is a number of at least min, or a text.
export function Ask({ title, what, verb, danger, fields, onSend, onClose }) {
  const [values, setValues] = useState({})
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const signal = useSignal()
  const send = async e => {
    e.preventDefault()
    setBusy(true)
    try {
      await onSend(values, signal)
      onClose()
    } catch (e) {
      setProblem(e.message)
      setBusy(false)
    }
  }
  return html`<${Dialog} title=${title} onClose=${onClose}><form onSubmit=${send}>
    <p>${what}</p>
    ${(fields || []).map(f => html`<${Field} key=${f.name} field=${f} value=${values[f.name] ?? ''} onChange=${v => setValues({ ...values, [f.name]: v })} />`)}
    ${problem && html`<p class="st bad" role="alert">${problem}</p>`}
    <p class="row acts"><button type="button" class="btn" autofocus onClick=${onClose}>${t('back')}</button><button class=${danger ? 'btn danger' : 'btn primary'} disabled=${busy}>${verb}</button></p>
  </form><//>`
}

// limitFields ask for limits of a run, and limitsOf are those that were given.
export const limitFields = head => [{ name: 'max_iterations', label: t('more.iterations'), number: true, placeholder: head.keys.of }, { name: 'timeout', label: t('more.timeout'), placeholder: '30m' }]
export const limitsOf = v => ({ ...(v.max_iterations && { max_iterations: Number(v.max_iterations) }), ...(v.timeout && { timeout: v.timeout }) })
