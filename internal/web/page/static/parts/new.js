import { html, useEffect, useState } from '../ui.js'
import { go } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { startsPrograms } from '../server.js'
import { Dialog } from './dialog.js'
import { types, typeName, skeletonOf, TypeOption } from './type.js'

// drafts are the names of the texts that this browser keeps.
export const drafts = () => Object.keys(localStorage).filter(k => k.startsWith('draft:')).map(k => k.slice('draft:'.length)).sort()

// starts are loops to begin with.
const starts = {
  refine: name => `# A writer improves a draft until a critic is content.
name: ${name}
max_iterations: 6
sub_agents:
  - name: writer
    instructions: |
      Write what is asked for: {{user_input}}
      {{#feedback}}
      Your last draft: {{draft}}
      What the critic says of it: {{feedback}}
      Make it better where the critic finds fault, and leave the rest.
      {{/feedback}}
    output_key: draft
  - name: critic
    instructions: |
      Judge this draft in one or two sentences. End the loop if nothing in it is left to improve.
      {{draft}}
    output_key: feedback
    can_exit_loop: true
  - name: publish
    text: "{{draft}}"
    output_key: loop_output
`,
  fix: name => `# The tests run, and a model mends main.go, until they pass.
name: ${name}
max_iterations: 6
no_progress: true
sub_agents:
  - name: test
    command: [go, test, ./...]
    ok_exit_codes: [0, 1]
    output_key: report
    exit_when: result.exit_code == 0
    exit_reason: all tests pass
  - name: read
    command: [cat, main.go]
    output_key: code
  - name: fixer
    instructions: |
      The tests say:
      {{report}}
      This is main.go:
      {{code}}
      Answer with all of main.go, mended, and with nothing else: no fence, no comment on it.
    output_key: mended
  - name: write
    command: [tee, main.go]
    stdin: "{{mended}}"
  - name: last_report
    text: "{{report}}"
    output_key: loop_output
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
  empty: name => `name: ${name}\nmax_iterations: 5\nsub_agents: []\n`,
}

// New asks for the name and the type of a new agent, and what a loop begins with.
export function New({ onClose }) {
  const [taken, setTaken] = useState(drafts())
  const [name, setName] = useState('')
  const [type, setType] = useState('loop')
  const [kind, setKind] = useState('refine')
  const [problem, setProblem] = useState('')
  useEffect(() => void api.definitions().then(r => setTaken([...drafts(), ...r.definitions.map(d => d.name)]), () => {}), [])
  const off = what => what === 'fix' && !startsPrograms.value
  const make = e => {
    e.preventDefault()
    if (!/^[A-Za-z][\w-]*$/.test(name)) return setProblem(t('name.rule'))
    if (taken.includes(name)) return setProblem(t('name.taken', { name }))
    // It is a draft of this browser until it is saved: the server keeps no text with errors.
    localStorage.setItem('draft:' + name, JSON.stringify({ text: type === 'loop' ? starts[kind](name) : skeletonOf(type, name), etag: null, at: Date.now() }))
    go('/definitions/' + encodeURIComponent(name) + '#f-root-name')
  }
  return html`<${Dialog} title=${t('new.title')} onClose=${onClose}><form onSubmit=${make}>
    <label>${t('name')}<input name="name" autofocus value=${name} onInput=${e => setName(e.target.value)} /></label>
    <label>${t('type')}<select name="type" onChange=${e => setType(e.target.value)}>${types.map(k => html`<${TypeOption} key=${k} k=${k} name=${typeName(k)} chosen=${type} />`)}</select><span class="small mute">${t('type.' + type)}</span></label>
    ${type === 'loop' && html`<fieldset><legend>${t('start.from')}</legend>${Object.keys(starts).map(k => html`<label class="pick" key=${k}><input type="radio" name="kind" value=${k} checked=${kind === k} disabled=${off(k)} onChange=${() => setKind(k)} /><span>${t('start.' + k)}<span class="small mute">${off(k) ? t('no.programs.start') : t('start.' + k + '.what')}</span></span></label>`)}</fieldset>`}
    ${problem && html`<p class="st bad" role="alert">${problem}</p>`}
    <p class="row acts"><button type="button" class="btn" onClick=${onClose}>${t('back')}</button><button class="btn primary">${t('create')}</button></p>
  </form><//>`
}
