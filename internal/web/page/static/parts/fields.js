import { html } from '../ui.js'
import { t } from '../words.js'

// A form of an MCP server is a JSON Schema of an object with plain fields. Values are what the inputs have: texts, and lists for several choices.

const properties = form => Object.entries(form?.properties || {})
const needed = (form, name) => (form.required || []).includes(name)
const optionsOf = p => {
  const s = p.type === 'array' ? p.items || {} : p
  const titled = [...(s.oneOf || []), ...(s.anyOf || [])].filter(o => typeof o.const === 'string')
  if (titled.length) return titled.map(o => [o.const, o.title || o.const])
  return s.enum ? s.enum.map((v, i) => [v, s.enumNames?.[i] || v]) : null
}
const start = p => p.type === 'array' ? p.default || [] : p.default === undefined ? '' : String(p.default)
const valueOf = (name, p, values) => values[name] === undefined ? start(p) : values[name]
const types = { number: 'number', integer: 'number' }
const formats = { email: 'email', uri: 'url', date: 'date' }

// Fields shows the fields of a form.
export function Fields({ id, form, values, onInput }) {
  const set = (name, value) => onInput({ ...values, [name]: value })
  return properties(form).map(([name, p]) => {
    const key = 'f-' + id + '-' + name
    const value = valueOf(name, p, values)
    const options = p.type === 'boolean' ? [['true', t('yes')], ['false', t('no')]] : optionsOf(p)
    const about = p.description ? { 'aria-describedby': key + '-d' } : {}
    let input
    if (p.type === 'array') {
      input = html`<select id=${key} multiple ...${about} onChange=${e => set(name, [...e.target.selectedOptions].map(o => o.value))}>
        ${(options || []).map(([v, label]) => html`<option key=${v} value=${v} selected=${value.includes(v)}>${label}</option>`)}</select>`
    } else if (options) {
      input = html`<select id=${key} value=${value} ...${about} onChange=${e => set(name, e.target.value)}>
        <option value=""></option>${options.map(([v, label]) => html`<option key=${v} value=${v}>${label}</option>`)}</select>`
    } else {
      input = html`<input id=${key} type=${types[p.type] || formats[p.format] || 'text'} step=${p.type === 'integer' ? 1 : 'any'} value=${value} ...${about} onInput=${e => set(name, e.target.value)} />`
    }
    return html`<label key=${name} for=${key}>${p.title || name}${needed(form, name) ? ' *' : ''}</label>${input}
      ${p.description && html`<span class="small" id=${key + '-d'}>${p.description}</span>`}`
  })
}

// filled returns the title of the first field that must be filled in and is not.
export const filled = (form, values) => {
  const missing = properties(form).find(([name, p]) => needed(form, name) && p.type !== 'array' && valueOf(name, p, values) === '')
  return missing && (missing[1].title || missing[0])
}

// content returns the values in their types. A field that is left empty is left out.
export const content = (form, values) => {
  const all = {}
  for (const [name, p] of properties(form)) {
    const v = valueOf(name, p, values)
    if (v === '' || (p.type === 'array' && !v.length && !needed(form, name))) continue
    all[name] = p.type === 'boolean' ? v === 'true' : types[p.type] ? Number(v) : v
  }
  return all
}
