import { html, useEffect, useState } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { lock, writes } from '../server.js'
import { Icon } from '../parts/icon.js'
import { New, drafts } from '../parts/new.js'
import { Manage } from '../parts/definition-row.js'
import { Schedules } from '../parts/schedules.js'

// Definitions are the files in the server's folder.
export function Definitions() {
  const [list, setList] = useState(null)
  const [problem, setProblem] = useState('')
  const [making, setMaking] = useState(false)
  const load = () => api.definitions().then(r => setList(r.definitions), e => (e.status === 401 ? lock() : setProblem(e.message)))
  useEffect(() => {
    document.title = t('definitions') + ' · Refrain'
    load()
  }, [])
  const unsaved = list ? drafts().filter(name => !list.some(d => d.name === name)) : []
  return html`<main id="main" tabindex="-1">
    <div class="row headrow"><h1>${t('definitions')}</h1><span class="mute">${list && list.length > 0 && t('n.files', { n: list.length })}</span>
      <span class="push">${writes.value && html`<button class="btn primary" onClick=${() => setMaking(true)}><${Icon} name="plus" />${t('new.agent')}</button>`}</span></div>
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${list && !list.length && !unsaved.length && html`<section class="panel pad empty"><p>${t('definitions.none')}</p><p class="soft">${t('definitions.first')}</p>
      ${writes.value && html`<p class="row"><button class="btn" onClick=${() => setMaking(true)}><${Icon} name="plus" />${t('new.agent')}</button></p>`}</section>`}
    ${list?.length + unsaved.length > 0 && html`<div class="panel clip"><table class="tbl defs"><caption class="sr">${t('definitions')}</caption>
      <thead><tr><th scope="col">${t('name')}</th><th scope="col">${t('what.it.is')}</th><th scope="col">${t('problems')}</th><th scope="col"><span class="sr">${t('runs')}</span></th><th scope="col"><span class="sr">${t('action')}</span></th></tr></thead>
      <tbody>${unsaved.map(name => html`<tr key=${'draft:' + name}><td class="s2"><a class="ttl" href=${'/definitions/' + encodeURIComponent(name)}>${name}</a></td><td class="soft"></td><td><span class="st off"><${Icon} name="wait" />${t('draft.kept')}</span></td><td></td><td></td></tr>`)}${list.map(d => html`<tr key=${d.name}><td class="s2"><a class="ttl" href=${'/definitions/' + encodeURIComponent(d.name)}>${d.title || d.name}</a> <span class="mono mute small">${d.file}</span></td>
        <td class="soft">${d.description}</td>
        <td>${!d.valid ? html`<span class="st bad"><${Icon} name="bang" />${t('n.errors', { n: (d.problems || []).filter(p => p.severity === 'error').length })}</span>` : html`<span class="st good"><${Icon} name="ok" />${t('valid')}</span>`}</td>
        <td class="num"><a href=${'/?definition=' + encodeURIComponent(d.title || d.name)}>${t('runs')}</a></td>
        <td><${Manage} d=${d} onChange=${load} /></td></tr>`)}</tbody></table></div>`}
    <${Schedules} />
    ${making && html`<${New} onClose=${() => setMaking(false)} />`}
  </main>`
}
