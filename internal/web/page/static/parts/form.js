import { html, useEffect, useRef, useState, announce, focusField } from '../ui.js'
import { route } from '../route.js'
import { t, lang } from '../words.js'
import { api } from '../api.js'
import { Icon } from './icon.js'
import { Dialog } from './dialog.js'
import { Ports } from './ports.js'
import { Type, TypeOption } from './type.js'

// The fields that say what the whole is, above its steps.
const first = ['name', 'display_name', 'description', 'goal', 'instructions', 'model', 'color']
// The fields that say when a loop stops.
const stops = ['max_iterations', 'timeout', 'stop_when', 'score', 'quality_gate', 'on_regression', 'no_progress', 'not_worth', 'budget', 'max_consecutive_failures']

// What ends a loop can be switched on, each with the value that it begins with, if there is one.
const ends = { max_iterations: '10', timeout: '30m', score: '', stop_when: '', no_progress: 'true', not_worth: '{gain: 0.1}', budget: '{calls: 100}', max_consecutive_failures: '3' }

// The fields of a kind of agent that most people set, in the order of the form. All others are
// behind "More fields": the list of the server names every one.
const usual = {
  loop: ['goal', 'max_iterations', 'timeout', 'score', 'stop_when', 'on_regression', 'no_progress', 'budget'],
  llm: ['model', 'instructions', 'output_key', 'can_exit_loop'],
  command: ['command', 'output_key', 'exit_when'],
  cli: ['cli', 'prompt', 'permissions', 'output_key'],
  http: ['url', 'method', 'output_key', 'exit_when'],
  expression: ['set', 'exit_when'],
  template: ['text', 'output_key'],
  human: ['question', 'ask', 'output_key', 'can_exit_loop'],
  a2a: ['endpoint', 'output_key'],
  func: ['func', 'output_key'],
  sequential: [],
  parallel: ['max_concurrency'],
}
// The fields of a step that say how it runs.
const policy = ['on_error', 'delay_before', 'delay_after']
// The other fields, by what they are for. What is in no group comes last.
const groups = {
  start: ['query', 'inputs', 'state', 'shapes', 'session', 'workspace', 'notify'],
  model: ['model', 'context', 'static_instruction', 'tools', 'output_schema', 'temperature', 'max_tokens', 'thinking', 'prompt_cache', 'request_retry'],
  program: ['command', 'cli', 'acp', 'prompt', 'permissions', 'denied', 'args', 'conversation', 'max_turns', 'max_cost', 'idle_timeout', 'on_limit', 'stdin', 'env', 'clean_env', 'inherit', 'dir', 'in', 'overlay', 'changes', 'tests', 'ok_exit_codes', 'output_limit', 'sandbox', 'unsafe'],
  request: ['url', 'endpoint', 'method', 'headers', 'body', 'payload', 'json', 'ok_status', 'size_limit', 'redirect_hosts', 'new_context'],
  person: ['question', 'ask', 'options', 'keys', 'deadline', 'default'],
  result: ['set', 'value', 'text', 'output_key', 'result_key', 'result', 'exit_when', 'exit_reason', 'can_exit_loop', 'stop_check', 'finalizer', 'finalizer_reserve'],
  several: ['order', 'max_concurrency', 'best_of', 'race', 'keep_best', 'on_plateau'],
  failure: ['on_error', 'retry', 'circuit', 'continue_on_error', 'effect'],
  time: ['timeout', 'timeouts', 'iteration_timeout', 'adaptive_timeout', 'init_timeout', 'delay_before', 'delay_after', 'iteration_delay'],
  cost: ['budget', 'max_model_calls', 'prices', 'cache', 'state_limit'],
}
const grouped = new Set(Object.values(groups).flat())
export const steps = ['llm', 'command', 'cli', 'http', 'a2a', 'human', 'expression', 'template', 'loop', 'sequential', 'parallel']

let known // the fields, from the server, once for a language
let knownIn = ''
let colors = []
const fields = async () => {
  const language = lang.value
  if (knownIn !== language) {
    ;({ fields: known, colors } = await api.get('/schema/fields.json'))
    knownIn = language
  }
  return known
}

// examples are the fields that show one while they are empty.
const examples = ['name', 'display_name', 'description', 'goal', 'instructions', 'model', 'color', 'output_key', 'output_schema']

// labelled are the fields that have a label in each language; the others are called as in the text.
const labelled = new Set([...first, ...stops, ...Object.values(usual).flat(), ...policy])
const labelOf = name => (labelled.has(name) ? t('label.' + name) : name.replaceAll('_', ' '))

const path = (at, field) => (at ? `${at}.${field}` : field)

// Form is the definition as fields. Each change becomes an edit of the text. typing is what fields hold that the
// text does not have yet.
export function Form({ name, outline, problems, edit, typing, goto, reveal, frozen, locked }) {
  const [all, setAll] = useState(known)
  const added = useRef()
  useEffect(() => void fields().then(setAll), [lang.value])
  // An address can name a field, which gets the focus.
  useEffect(() => {
    if (all && route.value.hash.startsWith('f-')) focusField(route.value.hash)
  }, [!all])
  const root = outline.agents[0]
  // One step is open at a time, and again when the page is loaded anew. It is known by the key of its row, and kept by its name.
  const [openKey, setOpenKey] = useState(0)
  const last = useRef(localStorage.getItem(stepKey(name)))
  const opened = { key: openKey, set: setOpenKey, last, keep: step => (step ? localStorage.setItem(stepKey(name), step) : localStorage.removeItem(stepKey(name))) }
  const props = { all: all || [], problems, edit, typing, goto, reveal, opened, added, file: name, agents: agentsIn(root) }
  const shown = [...first, ...(usual[root.type] || []).filter(f => !first.includes(f))].filter(f => (root.type !== 'loop' || first.includes(f)) && has(all, root, f))
  return html`<fieldset class="formset" disabled=${frozen || locked}>
    ${frozen && html`<p class="panel pad st warn" role="status"><${Icon} name="warn" />${t('form.frozen')}</p>`}
    <datalist id="colors">${colors.map(c => html`<option key=${c} value=${c} />`)}</datalist>
    <section class="panel" aria-labelledby="h-what"><header><h2 id="h-what">${t('what.it.is')}</h2></header>
      <${Ports} agent=${root} />
      <div class="pad fields">${all && html`<${Type} agent=${root} all=${all} edit=${edit} />`}${shown.map(f => html`<${Field} key=${f} agent=${root} name=${f} ...${props} />`)}</div></section>
    ${root.steps && html`<section class="panel" aria-labelledby="h-steps"><header><h2 id="h-steps">${t(root.type === 'loop' ? 'order.of' : root.type === 'parallel' ? 'order.parallel' : 'order.once')}</h2><span class="push mute small hide-s">${t('drag.or')} <kbd>Alt</kbd> <kbd>↑</kbd> <kbd>↓</kbd></span></header>
      <${Steps} agent=${root} ...${props} /></section>`}
    ${root.type === 'loop' && html`<section class="panel" aria-labelledby="h-stops"><header><h2 id="h-stops">${t('when.it.stops')}</h2><span class="push mute small">${t('first.wins')}</span></header>
      <div class="pad fields"><span class="said">${t('step.stops')}</span><p class="ctl soft">${asking(root).join(', ') || t('step.stops.none')}</p>
        ${Object.keys(ends).map(f => html`<${Field} key=${f} agent=${root} name=${f} begins=${ends[f]} ...${props} />`)}</div>
      <div class="pad fields upper">${stops.filter(f => !(f in ends)).map(f => html`<${Field} key=${f} agent=${root} name=${f} ...${props} />`)}</div></section>`}
    <section class="panel"><${More} agent=${root} ...${props} skip=${['type', ...shown, ...(root.type === 'loop' ? stops : [])]} /></section>
  </fieldset>`
}

// asking are the steps that may ask a loop to stop.
const asking = loop => (loop.steps || []).flatMap(s => (s.can_exit ? [called(s)] : s.type === 'loop' ? [] : asking(s)))

const has = (all, agent, name) => (all || []).some(f => f.name === name && applies(f, agent))
// Beside a ref can stand only what is about the step; the file has all else.
const applies = (f, agent) => (!agent.ref || f.beside) && (!f.types || f.types.includes(agent.type)) && (!f.root || agent.path === '')

const stepKey = name => 'step:' + name

// agentsIn are an agent and all in it.
const agentsIn = agent => [agent, ...(agent.steps || []).flatMap(agentsIn)]

function More({ agent, all, skip, ...rest }) {
  const list = all.filter(f => applies(f, agent) && !skip.includes(f.name) && f.name !== 'sub_agents')
  // A field that is set stands above the others. It moves there once nobody is in these fields: a field that moves while
  // somebody types loses the focus and the next keys.
  const box = useRef()
  const above = useRef([])
  if (!box.current?.contains(document.activeElement)) above.current = list.filter(f => agent.fields[f.name] !== undefined).map(f => f.name)
  const field = f => html`<${Field} key=${f.name} agent=${agent} name=${f.name} all=${all} ...${rest} />`
  const set = list.filter(f => above.current.includes(f.name))
  const below = list.filter(f => !above.current.includes(f.name))
  const parts = [...Object.entries(groups), ['other', below.map(f => f.name).filter(name => !grouped.has(name))]]
    .map(([purpose, names]) => [purpose, names.map(name => below.find(f => f.name === name)).filter(Boolean)]).filter(([, fields]) => fields.length)
  return html`<div ref=${box} class="bare">${set.length > 0 && html`<div class="pad fields">${set.map(field)}</div>`}
    <details class="more"><summary>${t('more.fields', { n: below.length })}</summary>${parts.map(([purpose, fields]) => html`<section key=${purpose} class="purpose" data-purpose=${purpose}><h3>${t('purpose.' + purpose)}</h3><div class="pad fields">${fields.map(field)}</div></section>`)}</details></div>`
}

// asText is how a value stands in a field of the form.
const asText = (v, long) => (v === undefined ? '' : typeof v === 'string' ? v : typeof v === 'number' || typeof v === 'boolean' ? String(v) : JSON.stringify(v, null, long ? 2 : 0))

// Control is what one value is written in: a box to tick, a choice, a line or a text. What is typed counts at once.
// It stands as it was typed until the field is left, and the form has read the text with it.
function Control({ spec, id, at, value, bad, described, change, example, off = '', typing }) {
  const [typed, setTyped] = useState(null)
  const [inside, setInside] = useState(false)
  useEffect(() => {
    if (typing.read && !inside) setTyped(null)
  }, [typing.read, inside])
  useEffect(() => () => typing.forget(at), [at])
  const text = typed ?? asText(value, spec.long)
  const write = v => typing.type(at, [].concat(v === '' ? { op: 'clear', path: at } : change(v)))
  if (spec.bool) return html`<span class="sw"><input id=${id} type="checkbox" role="switch" checked=${value === true} aria-describedby=${described} onChange=${e => write(e.target.checked ? 'true' : off)} /></span>`
  if (spec.choices) return html`<select id=${id} aria-describedby=${described} onChange=${e => write(e.target.value)}><option value="" selected=${value === undefined}>${t('not.set')}</option>${spec.choices.map(c => html`<option key=${c} value=${c} selected=${c === text}>${c}</option>`)}${text && !spec.choices.includes(text) && html`<option value=${text} selected>${text}</option>`}</select>`
  const typist = {
    id, value: text, placeholder: example, 'aria-invalid': bad, 'aria-describedby': described,
    onFocus: () => setInside(true), onBlur: () => setInside(false),
    onInput: e => {
      setTyped(e.target.value)
      write(e.target.value)
    },
  }
  if (spec.long) return html`<textarea ...${typist} class=${spec.text ? '' : 'mono'} rows=${Math.min(8, Math.max(2, text.split('\n').length + 1))}></textarea>`
  return html`<input ...${typist} class=${spec.text ? '' : 'mono'} list=${spec.name === 'color' ? 'colors' : null} />`
}

// Unwritten says why what was typed into a field cannot be written into the text yet.
const Unwritten = ({ at, typing }) => {
  const why = typing.refused(at)
  return why && html`<p class="small st bad"><${Icon} name="bang" />${why}</p>`
}

// set is the edit that writes what was typed: texts are quoted where they need it, all else is YAML.
const set = (spec, at, v) => ({ op: 'set', path: at, ...(spec.text ? { value: v } : { yaml: v }) })

// exitTool is the place of the tool exit_loop among an agent's tools; -1 if it does not have it.
const exitTool = agent => [].concat(agent.fields.tools || []).findIndex(tool => tool === 'exit_loop' || tool === 'exitLoop')

// exits is the edit that lets an agent end the loop, or not. Its tool exit_loop, which would let it too, goes then.
function exits(agent, at, v) {
  const i = exitTool(agent)
  if (v === 'true' || i < 0) return { op: 'set', path: at, yaml: v }
  return [{ op: 'clear', path: at }, { op: 'remove', path: path(agent.path, agent.fields.tools.length > 1 ? `tools[${i}]` : 'tools') }]
}

// denial is what denies an agent to end the loop: no permission, or false where something else would give it, as
// the file of a ref does. A permission that is a mistake is only taken back.
const denial = (agent, bad) => ((agent.ref ? !bad : agent.fields.can_exit_loop === undefined || exitTool(agent) >= 0) ? 'false' : '')

// Field is one field with what it is for and what is wrong with it. One that can be a map has its
// parts below.
function Field({ agent, name, all, begins, problems, typing, goto }) {
  const [asked, setAsked] = useState(false)
  const control = useRef()
  const stays = useRef(false) // while somebody is in it
  useEffect(() => {
    if (asked) control.current?.querySelector('.val :is(input, textarea, select)')?.focus()
  }, [asked])
  const f = all.find(f => f.name === name)
  if (!f) return null
  const value = name === 'can_exit_loop' ? agent.fields[name] ?? (agent.can_exit || undefined) : agent.fields[name]
  const at = path(agent.path, name)
  const id = `f-${agent.path || 'root'}-${name}`.replace(/[^\w-]/g, '_')
  const within = f.parts && !f.keyed
  const mine = problems.filter(p => p.path && (p.path === at || (within && p.path.startsWith(at + '.'))))
  const bad = mine.some(p => p.severity === 'error')
  const refused = typing.refused(at)
  const described = [`${id}-doc`, (refused || mine.length) && `${id}-bad`].filter(Boolean).join(' ')
  const isMap = value !== null && typeof value === 'object' && !Array.isArray(value)
  // What can be switched on has its control while it is on.
  const switched = begins !== undefined
  const on = !switched || asked || stays.current || value !== undefined || !!refused
  const turn = e => {
    setAsked(e.target.checked)
    stays.current = false
    if (!e.target.checked) typing.type(at, [{ op: 'clear', path: at }])
    else if (begins) typing.type(at, [{ op: 'set', path: at, yaml: begins }])
  }
  return html`<label for=${on ? id : id + '-on'}>${labelOf(name)}</label><div class="ctl" ref=${control} onFocusIn=${e => (stays.current ||= switched && !e.target.closest('.cond'))}>${switched && html`<label class="sw cond"><input id=${id + '-on'} type="checkbox" role="switch" checked=${on} onChange=${turn} /> ${t('ends.' + name)}</label>`}${on && html`<div class="val"><${Control} spec=${f} example=${agent.ref && name === 'name' ? agent.name : examples.includes(name) ? t('example.' + name, { user_input: '{user_input}' }) : null} id=${id} at=${at} value=${value} bad=${bad || !!refused} described=${described} change=${v => (name === 'can_exit_loop' ? exits(agent, at, v) : set(f, at, v))} off=${name === 'can_exit_loop' ? denial(agent, bad) : ''} typing=${typing} /></div>`}<span id=${id + '-doc'} class="doc">${labelOf(name) !== name.replaceAll('_', ' ') && html`<code>${name}</code> `}${f.docs?.[agent.type] ?? f.doc}</span>
    <div id=${id + '-bad'}><${Unwritten} at=${at} typing=${typing} />${!refused && mine.map(p => html`<p key=${p.message} class=${'small st ' + (p.severity === 'error' ? 'bad' : 'warn')}><${Icon} name="bang" /><span>${p.message}${p.hint && html`<span class="hint">${p.hint}</span>`}</span> <button type="button" class="btn quiet s" onClick=${() => goto(p.line, p.column)}>${t('line', { n: p.line })}</button></p>`)}</div>
    ${on && within && (isMap || value === undefined || (f.short && typeof value !== 'object')) && html`<${Parts} f=${f} agent=${agent} at=${at} id=${id} value=${isMap || value === undefined ? value : { [f.short]: value }} open=${isMap} typing=${typing} />`}</div>`
}

// Parts are the names in a map, each with a control of its own. A plain value becomes a map where
// it has to.
function Parts({ f, agent, at, id, value, open, typing }) {
  const change = (p, v) => ({ op: 'fix', path: agent.name, name: `${f.name}.${p.name}`, value: p.text && !/^[A-Za-z_]\w*$/.test(v) ? JSON.stringify(v) : v })
  const named = labelOf(f.name)
  return html`<details class="more" open=${open}><summary>${t('parts.of', { name: named })}</summary><div class="fields" role="group" aria-label=${named}>${f.parts.map(p => html`<label key=${p.name} for=${`${id}-${p.name}`}>${p.name.replaceAll('_', ' ')}${p.needed ? ' *' : ''}</label>
    <div class="ctl" key=${p.name + '-ctl'}><${Control} spec=${p} id=${`${id}-${p.name}`} at=${`${at}.${p.name}`} value=${value?.[p.name]} bad=${!!typing.refused(`${at}.${p.name}`)} described=${`${id}-${p.name}-doc`} change=${v => change(p, v)} typing=${typing} /><${Unwritten} at=${`${at}.${p.name}`} typing=${typing} /><span id=${`${id}-${p.name}-doc`} class="doc">${p.doc}</span></div>`)}</div></details>`
}

function Steps({ agent, ...props }) {
  const { edit, added } = props
  const [adding, setAdding] = useState(false)
  const [dragged, setDragged] = useState(-1)
  const list = useRef()
  const keys = useRef([])
  keys.current = keysOf(keys.current, agent.steps.map(called))
  const at = path(agent.path, 'sub_agents')
  const move = async (from, to) => {
    if (to < 0 || to >= agent.steps.length || from === to) return
    const name = called(agent.steps[from])
    if (await edit([{ op: 'move', path: at, from, to }])) {
      announce(t('moved', { name, n: to + 1 }))
      requestAnimationFrame(() => list.current?.querySelector(`[data-step="${CSS.escape(name)}"] .hand`)?.focus())
    }
  }
  return html`<ol class="steps" ref=${list}>${agent.steps.map((s, i) => html`<${StepRow} key=${keys.current[i].key} rowKey=${keys.current[i].key} s=${s} i=${i} n=${agent.steps.length} move=${move} drag=${[dragged, setDragged]} list=${at} ...${props} />`)}</ol>
    <footer class="row"><button type="button" class="btn s" onClick=${() => setAdding(true)}><${Icon} name="plus" />${t('add.step')}</button></footer>
    ${adding && html`<${Add} at=${at} steps=${agent.steps} edit=${edit} onClose=${() => setAdding(false)} onAdded=${name => (added.current = name)} inLoop=${agent.type === 'loop'} file=${props.file} agents=${props.agents} />`}`
}

// keysOf gives each step of a list a key that it keeps while it is moved, and while its name is written.
let lastKey = 0
function keysOf(before, names) {
  const keys = [], free = new Set(before)
  const give = (i, b) => {
    if (b && !keys[i] && free.delete(b)) keys[i] = b.key
  }
  names.forEach((name, i) => before[i]?.name === name && give(i, before[i]))
  names.forEach((name, i) => give(i, [...free].find(b => b.name === name)))
  names.forEach((_, i) => give(i, before[i]))
  return names.map((name, i) => ({ name, key: keys[i] || ++lastKey }))
}

// called is the name of a step: of one in a file of its own, it is the file's.
const called = s => s.name || definitionIn(s.ref || '')

// definitionIn is the name of the definition in a file of the folder.
const definitionIn = file => file.replace(/(^|\/)(loop|root_agent)\.ya?ml$/, '').replace(/\.ya?ml$/, '').replace(/^\.\//, '')

function StepRow({ s, i, n, move, drag, list, rowKey, ...props }) {
  const { edit, added, problems, opened, reveal } = props
  const [dragged, setDragged] = drag
  const name = called(s)
  const row = useRef()
  const isAdded = () => !!added.current && [name, s.ref].includes(added.current)
  const isOpen = opened.key === rowKey
  const toggle = () => {
    opened.set(isOpen ? 0 : rowKey)
    if (isOpen) opened.keep('')
  }
  useEffect(() => {
    if (!isAdded() && opened.last.current !== name) return
    opened.last.current = null
    opened.set(rowKey)
  }, [])
  useEffect(() => {
    if (!isOpen) return
    opened.keep(name)
    reveal(s.line)
    if (!isAdded()) return
    added.current = undefined
    row.current.querySelector('.stepbody .ctl:nth-of-type(2) :is(input, textarea, select), .stepbody a')?.focus()
  }, [isOpen, name])
  const mine = problems.filter(p => p.severity === 'error' && p.path && (p.path === s.path || p.path.startsWith(s.path + '.')))
  const shown = s.ref ? props.all.filter(f => applies(f, s)).map(f => f.name) : ['name', ...(usual[s.type] || []).filter(f => has(props.all, s, f))]
  const last = s.final
  return html`<li class=${'step' + (mine.length ? ' bad' : '') + (dragged === i ? ' dragged' : '')} data-step=${name} ref=${row}
      onFocusIn=${e => { e.stopPropagation(); reveal(s.line) }}
      onDragOver=${e => dragged >= 0 && e.preventDefault()} onDrop=${e => { e.preventDefault(); e.stopPropagation(); if (dragged >= 0) move(dragged, i); setDragged(-1) }}>
    <div class="bar1"><button type="button" class="hand" draggable="true" aria-label=${t('move.step', { name, n: i + 1 })}
        onDragStart=${e => { setDragged(i); e.dataTransfer.effectAllowed = 'move'; e.dataTransfer.setData('text/plain', name) }} onDragEnd=${() => setDragged(-1)}
        onKeyDown=${e => { if (e.altKey && (e.key === 'ArrowUp' || e.key === 'ArrowDown')) { e.preventDefault(); move(i, i + (e.key === 'ArrowUp' ? -1 : 1)) } }}><${Icon} name="grip" /></button>
      ${last ? html`<span class="star"><${Icon} name="star" /></span>` : html`<span class="no">${i + 1}</span>`}${s.fields.color && html`<i class="dot" style=${{ background: s.fields.color }}></i>`}<b>${s.fields.display_name || name}</b><span class="k">${t('kind.' + (s.ref ? 'ref' : s.type))}</span>
      ${mine.length > 0 && html`<span class="st bad small"><${Icon} name="bang" />${t('n.errors', { n: mine.length })}</span>`}
      <span class="push row">${s.can_exit ? html`<span class="tag"><${Icon} name="exit" />${t('may.stop')}</span>` : ''}${s.fields.output_key && html`<span class="mono mute hide-s">→ ${s.fields.output_key}</span>`}
        <button type="button" class="btn quiet s icon" aria-expanded=${isOpen} aria-label=${t(isOpen ? 'fold' : 'unfold', { name })} onClick=${toggle}><${Icon} name=${isOpen ? 'down' : 'right'} /></button></span></div>
    ${isOpen && html`<div class="stepbody">${s.ref && html`<p><a href=${'/definitions/' + encodeURIComponent(definitionIn(s.ref))}>${t('ref.open', { file: s.ref })}</a></p>`}
      <div class="fields">${shown.map(f => html`<${Field} key=${f} agent=${s} name=${f} ...${props} />`)}</div>
      ${!s.ref && html`<${More} agent=${s} ...${props} skip=${shown} />`}
      <p class="row acts"><button type="button" class="btn s" disabled=${i === 0} onClick=${() => move(i, i - 1)}><${Icon} name="up" />${t('up')}</button><button type="button" class="btn s" disabled=${i === n - 1} onClick=${() => move(i, i + 1)}><${Icon} name="below" />${t('down')}</button>
        <button type="button" class="btn s" onClick=${() => edit([{ op: 'duplicate', path: `${list}[${i}]` }])}>${t('duplicate')}</button><button type="button" class="btn s" onClick=${() => edit([{ op: 'remove', path: `${list}[${i}]` }])}>${t('remove')}</button></p></div>`}
    ${s.steps && html`<div class="nest"><${Steps} agent=${s} ...${props} /></div>`}
  </li>`
}

const skeleton = {
  llm: n => `name: ${n}\ninstructions: ""\noutput_key: ${n}`,
  command: n => `name: ${n}\ncommand: [echo, hello]\noutput_key: ${n}`,
  http: n => `name: ${n}\nurl: http://localhost:8000/\noutput_key: ${n}`,
  a2a: n => `name: ${n}\nendpoint: http://localhost:8000/\noutput_key: ${n}`,
  human: n => `name: ${n}\nquestion: Is it good enough?\noutput_key: ${n}`,
  expression: n => `name: ${n}\nset: {${n}: "1"}`,
  template: n => `name: ${n}\ntext: hello\noutput_key: ${n}`,
  loop: n => `name: ${n}\nmax_iterations: 3\nsub_agents:\n  - name: ${n}_step\n    text: hello`,
  sequential: n => `name: ${n}\ntype: sequential\nsub_agents:\n  - name: ${n}_step\n    text: hello`,
  parallel: n => `name: ${n}\ntype: parallel\nsub_agents:\n  - name: ${n}_one\n    text: hello`,
}

// nameFor is the name that the next use of a file needs, which no agent has; empty if it can have that of the file.
function nameFor(ref, agents) {
  const plain = agents.find(a => a.ref === ref && !a.fields.name)
  const name = plain ? called(plain) : definitionIn(ref).split('/').pop()
  const taken = agents.map(called)
  if (!plain && !taken.includes(name)) return ''
  let n = 2
  while (taken.includes(`${name}_${n}`)) n++
  return `${name}_${n}`
}

function Add({ at, steps: before, edit, onClose, onAdded, inLoop, file, agents }) {
  const [final, setFinal] = useState(false)
  const [kind, setKind] = useState(steps[0])
  const [files, setFiles] = useState([])
  const [chosen, setChosen] = useState()
  const [problem, setProblem] = useState('')
  useEffect(() => void api.definitions().then(r => setFiles(below(file, r.definitions)), () => {}), [])
  const add = async e => {
    e.preventDefault()
    e.stopPropagation()
    const of = e.target.elements
    const name = of.step.value
    let step
    if (!/^[A-Za-z][\w-]*$/.test(name) && !(of.kind.value === 'ref' && !name)) return setProblem(t('name.rule'))
    if (of.kind.value === 'ref') {
      step = { value: { ref: of.file.value, ...(name && { name }) } }
    } else {
      step = { yaml: skeleton[of.kind.value](name) }
      if (final) step.yaml = step.yaml.replace(/\noutput_key: .*/, '') + '\noutput_key: loop_output'
    }
    const last = before.findIndex(s => s.final) // which stays behind the steps
    if (await edit([{ op: 'insert', path: at, index: last < 0 || (final && of.kind.value !== 'ref') ? before.length : last, ...step }])) {
      onAdded(name || of.file.value)
      onClose()
    }
  }
  const ref = chosen || files[0]?.file
  return html`<${Dialog} title=${t('add.step')} onClose=${onClose}><form onSubmit=${add}>
    <label>${t('kind')}<select name="kind" onChange=${e => setKind(e.target.value)}>${[...steps, ...(files.length ? ['ref'] : [])].map(k => html`<${TypeOption} key=${k} k=${k} name=${t('kind.' + k)} chosen=${kind} />`)}</select></label>
    ${kind === 'ref' ? html`<label key="file">${t('definition')}<select name="file" onChange=${e => setChosen(e.target.value)}>${files.map(d => html`<option key=${d.file} value=${d.file} selected=${d.file === ref}>${d.title || d.name}${d.description ? ': ' + d.description : ''}</option>`)}</select></label>
    <label key=${'step of ' + ref}>${t('name')}<input name="step" value=${nameFor(ref, agents)} placeholder=${t('ref.name')} /></label>` : html`<label key="step">${t('name')}<input name="step" autofocus placeholder=${t('example.name')} /></label>`}
    ${inLoop && kind !== 'ref' && html`<label class="sw"><input type="checkbox" checked=${final} onChange=${e => setFinal(e.target.checked)} /> ${t('is.final')}</label>`}
    ${problem && html`<p class="st bad" role="alert">${problem}</p>`}
    <p class="row acts"><button type="button" class="btn" onClick=${onClose}>${t('back')}</button><button class="btn primary">${t('add')}</button></p>
  </form><//>`
}

// below are the definitions that the one with a name can refer to: those in its folder, and below.
function below(name, all) {
  const own = all.find(d => d.name === name)?.file || name + '.yaml'
  const folder = own.slice(0, own.lastIndexOf('/') + 1)
  return all.filter(d => d.valid && d.file !== own && d.file.startsWith(folder)).map(d => ({ ...d, file: d.file.slice(folder.length) }))
}
