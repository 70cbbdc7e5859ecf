import { html, useState } from '../ui.js'
import { t } from '../words.js'
import { startsPrograms } from '../server.js'
import { Dialog } from './dialog.js'

export const types = ['loop', 'sequential', 'parallel', 'llm', 'command', 'cli', 'http', 'a2a', 'human', 'expression', 'template']
export const typeName = k => (k === 'loop' ? t('loop.agent') : t('kind.' + k))

// programs are the types that start programs, which not every server lets the page do.
export const programs = ['command', 'cli']
const off = k => programs.includes(k) && !startsPrograms.value

// TypeOption is a type that can be chosen, or says why it cannot.
export const TypeOption = ({ k, name, chosen }) => html`<option value=${k} selected=${k === chosen} disabled=${off(k) && k !== chosen}>${off(k) ? `${name}: ${t('no.programs')}` : name}</option>`

// What an agent of a type cannot do without.
const needs = {
  llm: [{ path: 'instructions', value: 'Answer: {{user_input}}' }], command: [{ path: 'command', yaml: '[echo, hello]' }],
  cli: [{ path: 'cli', value: 'claude' }, { path: 'prompt', value: 'Make the tests pass.' }],
  http: [{ path: 'url', value: 'http://localhost:8000/' }], a2a: [{ path: 'endpoint', value: 'http://localhost:8000/' }],
  human: [{ path: 'question', value: 'Is it good enough?' }], expression: [{ path: 'set', yaml: '{n: "1"}' }], template: [{ path: 'text', value: 'hello' }],
  loop: [{ path: 'sub_agents', yaml: '[]' }], sequential: [{ path: 'sub_agents', yaml: '[]' }], parallel: [{ path: 'sub_agents', yaml: '[]' }],
}

// skeletonOf is a new definition of a type.
export const skeletonOf = (type, name) =>
  `name: ${name}\ntype: ${type}\n` + needs[type].map(n => `${n.path}: ${n.yaml || JSON.stringify(n.value)}\n`).join('')

// Type is what the agent is. Another one takes away the fields that it has not, and asks before
// that; those that it has appear in the form.
export function Type({ agent, all, edit }) {
  const [asked, ask] = useState(null)
  const lost = type => all.filter(f => f.types && !f.types.includes(type) && agent.fields[f.name] !== undefined).map(f => f.name)
    .concat(agent.steps?.length && !['loop', 'sequential', 'parallel'].includes(type) ? ['sub_agents'] : [])
  const change = type => {
    ask(null)
    const gone = lost(type)
    if (agent.steps && !agent.steps.length && !needs[type].some(n => n.path === 'sub_agents')) gone.push('sub_agents')
    return edit([
      ...gone.map(path => ({ op: 'remove', path })), { op: 'set', path: 'type', value: type },
      ...needs[type].filter(n => agent.fields[n.path] === undefined && !(n.path === 'sub_agents' && agent.steps)).map(n => ({ op: 'set', ...n })),
    ])
  }
  const choose = e => {
    const type = e.target.value
    e.target.value = agent.type // until it is so
    if (lost(type).length) ask(type)
    else change(type)
  }
  const list = types.includes(agent.type) ? types : [agent.type, ...types]
  return html`<label for="f-type">${t('type')}</label><div class="ctl"><select id="f-type" aria-describedby="f-type-doc" onChange=${choose}>${list.map(k => html`<${TypeOption} key=${k} k=${k} name=${typeName(k)} chosen=${agent.type} />`)}</select><span id="f-type-doc" class="doc">${t('type.' + (agent.type || 'none'))}</span>
    ${asked && html`<${Dialog} title=${t('type.change', { type: typeName(asked) })} onClose=${() => ask(null)}><p>${t('type.loses')} <span class="mono">${lost(asked).join(', ')}</span></p>
      <p class="row acts"><button type="button" class="btn" autofocus onClick=${() => ask(null)}>${t('back')}</button><button type="button" class="btn danger" onClick=${() => change(asked)}>${t('type.do')}</button></p><//>`}</div>`
}
