import { html } from '../ui.js'

// shownName is what people are shown of an agent: its display name, or else its name. A second run of
// a step, "critic#2", keeps its number.
export const shownName = (name, looks) => {
  const [own] = name.split('#')
  return (looks?.[own]?.name || own) + name.slice(own.length)
}

// AgentName is that name behind a dot in the agent's color.
export function AgentName({ name, looks }) {
  const color = looks?.[name.split('#')[0]]?.color
  return html`${color && html`<i class="dot" style=${{ background: color }}></i>`}${shownName(name, looks)}`
}
