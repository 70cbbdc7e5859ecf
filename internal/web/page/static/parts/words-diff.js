import { html } from '../ui.js'

// WordsDiff shows the changes that the server found between two texts: [{op: "=", "+", "-", text}].
export function WordsDiff({ edits }) {
  return html`<p class="prose pre">${edits.map((e, i) =>
    e.op === '+' ? html`<ins key=${i}>${e.text}</ins>` : e.op === '-' ? html`<del key=${i}>${e.text}</del>` : html`<span key=${i}>${e.text}</span>`)}</p>`
}

export const shown = value => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value))

// Changes are those of the state: what a key was, and what it is.
export function Changes({ changes, none }) {
  if (!changes.length) return html`<p class="mute">${none}</p>`
  return html`<dl class="changes">${changes.map(c => html`<div key=${c.key}><dt class="mono">${c.key}</dt><dd>
    ${c.words ? html`<${WordsDiff} edits=${c.words} />` : html`${c.before !== undefined && html`<del>${shown(c.before)}</del> `}${c.after !== undefined && html`<ins>${shown(c.after)}</ins>`}`}</dd></div>`)}</dl>`
}
