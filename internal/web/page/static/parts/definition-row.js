import { html, useState } from '../ui.js'
import { go } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { operates, writes } from '../server.js'
import { Ask } from './ask.js'
import { Icon } from './icon.js'
import { RunIt, readyToRun } from './run-it.js'

const draftKey = name => 'draft:' + name

// copyOf saves a definition under another name, which it has as the name of its agent too if it had the name of its file.
async function copyOf(d, name, signal) {
  if (!/^[A-Za-z][\w-]*$/.test(name || '')) throw new Error(t('name.rule'))
  const { text, etag } = await api.definition(d.name)
  const renamed = d.title === d.name ? (await api.edit(text, [{ op: 'set', path: 'name', value: name }])).text : text
  try {
    return { etag, made: await api.save(name, renamed, null, signal) }
  } catch (e) {
    throw e.status === 412 ? new Error(t('name.taken', { name })) : e
  }
}

// Manage has what can be done with a definition of the list. A definition in a folder of its own has files beside it, and is not copied.
export function Manage({ d, onChange }) {
  const [asking, setAsking] = useState(null)
  const [problem, setProblem] = useState('')
  const close = () => setAsking(null)
  const run = () => readyToRun(d.name).then(outline => setAsking({ outline }), e => setProblem(e.message))
  const duplicate = async (v, signal) => {
    await copyOf(d, v.name, signal)
    go('/definitions/' + encodeURIComponent(v.name))
  }
  const rename = async (v, signal) => {
    const { etag, made } = await copyOf(d, v.name, signal)
    await api.removeDefinition(d.name, etag, signal)
    const draft = JSON.parse(localStorage.getItem(draftKey(d.name)))
    if (draft) localStorage.setItem(draftKey(v.name), JSON.stringify({ ...draft, etag: made }))
    localStorage.removeItem(draftKey(d.name))
    onChange()
  }
  const remove = async (_, signal) => {
    await api.removeDefinition(d.name, (await api.definition(d.name)).etag, signal)
    localStorage.removeItem(draftKey(d.name))
    onChange()
  }
  const named = { name: d.name }
  const fields = [{ name: 'name', label: t('new.name'), placeholder: d.name + '_2' }]
  const alone = !d.file.includes('/')
  return html`<div class="row manage"><button class="btn s" disabled=${!d.valid || !operates.value} aria-label=${t('run.title', named)} onClick=${run}><${Icon} name="play" />${t('run.it')}</button>
      ${writes.value && html`<details class="bare"><summary aria-label=${t('manage.name', named)}>${t('manage')}</summary><span class="row">
        ${alone && html`<button class="btn quiet s" aria-label=${t('duplicate.title', named)} onClick=${() => setAsking('duplicate')}>${t('duplicate')}…</button><button class="btn quiet s" aria-label=${t('rename.title', named)} onClick=${() => setAsking('rename')}>${t('rename')}…</button>`}
        <button class="btn quiet s" aria-label=${t('delete.title', named)} onClick=${() => setAsking('delete')}>${t('delete')}…</button></span></details>`}
      ${problem && html`<span class="st bad small" role="alert">${problem}</span>`}</div>
    ${asking?.outline && html`<${RunIt} name=${d.name} outline=${asking.outline} onClose=${close} />`}
    ${asking === 'duplicate' && html`<${Ask} title=${t('duplicate.title', named)} what=${t('duplicate.what')} verb=${t('duplicate')} fields=${fields} onClose=${close} onSend=${duplicate} />`}
    ${asking === 'rename' && html`<${Ask} title=${t('rename.title', named)} what=${t('rename.what')} verb=${t('rename')} fields=${fields} onClose=${close} onSend=${rename} />`}
    ${asking === 'delete' && html`<${Ask} title=${t('delete.title', named)} what=${t('delete.what', { file: d.file })} verb=${t('delete')} danger onClose=${close} onSend=${remove} />`}`
}
