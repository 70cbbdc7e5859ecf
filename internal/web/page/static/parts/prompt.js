import { html, useEffect, useState } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { Copy } from './copy.js'
import { Icon } from './icon.js'

// Prompt is what a step has sent to its model. The server rebuilds it from the log; what the log cannot
// tell is said.
export function Prompt({ id, at, version }) {
  const [asked, setAsked] = useState(null)
  const [number, setNumber] = useState(0)
  const [problem, setProblem] = useState(null)
  const [talk, setTalk] = useState('')
  useEffect(() => setNumber(0), [at])
  useEffect(() => {
    const control = new AbortController()
    setAsked(null)
    setProblem(null)
    setTalk('')
    const fail = e => e.name !== 'AbortError' && setProblem(e)
    // A coding agent asks its model itself, so its step has a transcript in place of a request.
    const other = e => api.transcript(id, at, control.signal).then(got => setTalk(got.text), none => none.name !== 'AbortError' && setProblem(e))
    api.prompt(id, at, number, control.signal).then(setAsked, e => (e.body?.type === 'urn:refrain:not_asked' ? other(e) : fail(e)))
    return () => control.abort()
  }, [id, at, number, version])
  if (talk) return html`<div class="row gap"><span class="mute small">${t('transcript')}</span><${Copy} text=${talk} /></div><div class="block pre">${talk}</div>`
  if (problem?.body?.type === 'urn:refrain:not_asked') return html`<p class="mute">${t('no.prompt')}</p>`
  if (problem) return html`<p class="st warn"><${Icon} name="warn" />${problem.body?.title || ''}</p><p class="soft small pre">${problem.message}</p>`
  if (!asked) return html`<p class="mute">${t('loading')}</p>`
  const all = [asked.system && ['system', asked.system], ...asked.messages.map(m => [m.role, m.text])].filter(Boolean)
  return html`<div class="row gap"><span class="mute small">${t('prompt.rebuilt')}</span>
      ${asked.count > 1 && html`<label class="small">${t('prompt.request')} <select class="s" onChange=${e => setNumber(Number(e.target.value))}>${Array.from({ length: asked.count }, (_, i) => html`<option key=${i} value=${i + 1} selected=${i + 1 === asked.number}>${t('prompt.of', { n: i + 1, all: asked.count })}</option>`)}</select></label>`}
      <${Copy} text=${all.map(([role, text]) => `[${role}]\n${text}`).join('\n\n')} /></div>
    ${(asked.missing || []).map(m => html`<p key=${m} class="st warn small"><${Icon} name="warn" />${t('prompt.missing.' + m)}</p>`)}
    ${all.map(([role, text], i) => html`<p class="who" key=${'w' + i}>${t('role.' + role)}</p><div class="block pre" key=${i}>${text}</div>`)}
    ${asked.tools?.length > 0 && html`<p class="who">${t('prompt.tools')}</p><dl class="changes">${asked.tools.map(f => html`<div key=${f.name}><dt class="mono">${f.name}</dt><dd>${f.description}${f.parameters && html`<pre class="raw">${JSON.stringify(f.parameters)}</pre>`}</dd></div>`)}</dl>`}
    ${asked.settings && html`<p class="who">${t('prompt.settings')}</p><pre class="raw">${JSON.stringify(asked.settings, null, 2)}</pre>`}`
}
