import { html, useState } from '../ui.js'
import { go } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { Dialog } from './dialog.js'
import { Icon } from './icon.js'
import { Refusal } from './refusal.js'
import { useSignal } from './away.js'

// readyToRun reads the outline of a saved definition for RunIt.
export const readyToRun = async name => api.outline((await api.definition(name)).text, name)

// valuesOf are the inputs of a definition as a run before had them.
const valuesOf = (outline, before) => Object.fromEntries((outline.inputs || []).filter(i => before?.state?.[i.name] !== undefined).map(({ name }) => {
  const v = before.state[name]
  return [name, typeof v === 'string' ? v : JSON.stringify(v)]
}))

// RunIt asks for what a run of a definition needs, and starts it. before has the input and the state of a run that is run again; a
// dirty draft is saved first.
export function RunIt({ name, outline, before, dirty, save, onClose }) {
  const signal = useSignal()
  const [values, setValues] = useState(() => valuesOf(outline, before))
  const [message, setMessage] = useState(before?.input || '')
  const [problem, setProblem] = useState(null)
  const [busy, setBusy] = useState(false)
  const send = async e => {
    e.preventDefault()
    setBusy(true)
    try {
      const refused = dirty && (await save(undefined, signal))
      if (refused) throw refused
      const inputs = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== ''))
      const run = await api.start({ definition: name, input: message || undefined, state: Object.keys(inputs).length ? inputs : undefined }, signal)
      go('/runs/' + encodeURIComponent(run.run))
    } catch (e) {
      setProblem(e)
      setBusy(false)
    }
  }
  return html`<${Dialog} title=${t('run.title', { name: outline.title || name })} onClose=${onClose}><form onSubmit=${send}>
    <label>${t('message')}<textarea rows="3" autofocus value=${message} placeholder=${outline.query || ''} onInput=${e => setMessage(e.target.value)}></textarea></label>
    ${(outline.inputs || []).map(i => html`<label key=${i.name}>${i.name}${i.required ? ' *' : ''}<input required=${i.required} value=${values[i.name] ?? ''} placeholder=${i.default ?? ''} onInput=${e => setValues({ ...values, [i.name]: e.target.value })} />${i.description && html`<span class="small mute">${i.description}</span>`}</label>`)}
    ${dirty && html`<p class="soft small">${t('saves.first')}</p>`}
    ${problem && html`<${Refusal} error=${problem} />`}
    <p class="row acts"><button type="button" class="btn" onClick=${onClose}>${t('back')}</button><button class="btn primary" disabled=${busy}><${Icon} name="play" />${t('run.it')}</button></p>
  </form><//>`
}
