import { html, useEffect, useState } from '../ui.js'
import { go } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { lock } from '../app.js'
import { Icon } from '../parts/icon.js'
import { Dialog } from '../parts/dialog.js'
import { types, typeName, skeletonOf } from '../parts/type.js'

// drafts are the names of the texts that this browser keeps.
const drafts = () => Object.keys(localStorage).filter(k => k.startsWith('draft:')).map(k => k.slice('draft:'.length)).sort()

const kinds = ['refine', 'fix', 'poll', 'empty']

// Definitions are the files in the server's folder.
export function Definitions() {
  const [list, setList] = useState(null)
  const [problem, setProblem] = useState('')
  const [making, setMaking] = useState(false)
  useEffect(() => {
    document.title = t('definitions') + ' · Refrain'
    api.definitions().then(r => setList(r.definitions), e => (e.status === 401 ? lock() : setProblem(e.message)))
  }, [])
  const unsaved = list ? drafts().filter(name => !list.some(d => d.name === name)) : []
  return html`<main id="main" tabindex="-1">
    <div class="row headrow"><h1>${t('definitions')}</h1><span class="mute">${list && list.length > 0 && t('n.files', { n: list.length })}</span>
      <span class="push"><button class="btn primary" onClick=${() => setMaking(true)}><${Icon} name="plus" />${t('new.loop')}</button></span></div>
    ${problem && html`<p class="panel pad st bad" role="alert">${problem}</p>`}
    ${list && !list.length && !unsaved.length && html`<section class="panel pad empty"><p>${t('definitions.none')}</p></section>`}
    ${list?.length + unsaved.length > 0 && html`<div class="panel clip"><table class="tbl defs"><caption class="sr">${t('definitions')}</caption>
      <thead><tr><th scope="col">${t('name')}</th><th scope="col">${t('what.it.is')}</th><th scope="col">${t('problems')}</th><th scope="col"><span class="sr">${t('runs')}</span></th></tr></thead>
      <tbody>${unsaved.map(name => html`<tr key=${'draft:' + name}><td class="s2"><a class="ttl" href=${'/definitions/' + encodeURIComponent(name)}>${name}</a></td><td class="soft"></td><td><span class="st off"><${Icon} name="wait" />${t('draft.kept')}</span></td><td></td></tr>`)}${list.map(d => html`<tr key=${d.name}><td class="s2"><a class="ttl" href=${'/definitions/' + encodeURIComponent(d.name)}>${d.title || d.name}</a> <span class="mono mute small">${d.file}</span></td>
        <td class="soft">${d.description}</td>
        <td>${!d.valid ? html`<span class="st bad"><${Icon} name="bang" />${t('n.errors', { n: (d.problems || []).filter(p => p.severity === 'error').length })}</span>` : html`<span class="st good"><${Icon} name="ok" />${t('valid')}</span>`}</td>
        <td class="num"><a href=${'/?definition=' + encodeURIComponent(d.title || d.name)}>${t('runs')}</a></td></tr>`)}</tbody></table></div>`}
    ${making && html`<${New} taken=${[...(list || []).map(d => d.name), ...drafts()]} onClose=${() => setMaking(false)} />`}
  </main>`
}

const starts = {
  empty: name => `name: ${name}\nmax_iterations: 5\nsub_agents: []\n`,
  refine: name => `# A writer improves a draft until a critic is content.
name: ${name}
max_iterations: 6
timeout: 10m
sub_agents:
  - name: writer
    instructions: "Write or improve the draft: {{user_input}}. The draft so far: {{draft?}}. What to mend: {{feedback?}}"
    output_key: draft
  - name: critic
    instructions: "Judge the draft in one sentence. Call exit_loop if nothing is left to mend. {{draft}}"
    tools: [exit_loop]
    output_key: feedback
`,
  fix: name => `# Tests run, a model mends the code, until they pass.
name: ${name}
max_iterations: 8
timeout: 30m
no_progress: true
sub_agents:
  - name: test
    command: [go, test, ./...]
    ok_exit_codes: [0, 1]
    output_key: report
    result_key: tests
    exit_when: result.exit_code == 0
  - name: fixer
    instructions: "The tests say: {{report}}. Say what to change."
    output_key: advice
`,
  poll: name => `# Asks until a condition holds.
name: ${name}
max_iterations: 0
timeout: 1h
iteration_delay: 10s
stop_when: state.count >= 3
state: {count: 0}
sub_agents:
  - name: count
    set: {count: state.count + 1}
`,
}

function New({ taken, onClose }) {
  const [name, setName] = useState('')
  const [type, setType] = useState('loop')
  const [kind, setKind] = useState('refine')
  const [problem, setProblem] = useState('')
  const make = e => {
    e.preventDefault()
    if (!/^[A-Za-z][\w-]*$/.test(name)) return setProblem(t('name.rule'))
    if (taken.includes(name)) return setProblem(t('name.taken', { name }))
    // It is a draft of this browser until it is saved: the server keeps no text with errors.
    localStorage.setItem('draft:' + name, JSON.stringify({ text: type === 'loop' ? starts[kind](name) : skeletonOf(type, name), etag: null, at: Date.now() }))
    go('/definitions/' + encodeURIComponent(name))
  }
  return html`<${Dialog} title=${t('new.loop')} onClose=${onClose}><form onSubmit=${make}>
    <label>${t('name')}<input name="name" autofocus value=${name} onInput=${e => setName(e.target.value)} /></label>
    <label>${t('type')}<select name="type" onChange=${e => setType(e.target.value)}>${types.map(k => html`<option key=${k} value=${k} selected=${k === type}>${typeName(k)}</option>`)}</select><span class="small mute">${t('type.' + type)}</span></label>
    ${type === 'loop' && html`<fieldset><legend>${t('start.from')}</legend>${kinds.map(k => html`<label class="sw" key=${k}><input type="radio" name="kind" value=${k} checked=${kind === k} onChange=${() => setKind(k)} /> ${t('start.' + k)}</label>`)}</fieldset>`}
    ${problem && html`<p class="st bad" role="alert">${problem}</p>`}
    <p class="row acts"><button type="button" class="btn" onClick=${onClose}>${t('back')}</button><button class="btn primary">${t('create')}</button></p>
  </form><//>`
}
