import { html, focusField } from '../ui.js'
import { t } from '../words.js'
import { typeName } from './type.js'

// Ports draws an agent as a node with what goes out of it: to its sub-agents, and to its callbacks.
export function Ports({ agent }) {
  const hooks = Object.keys(agent.fields.callbacks || {})
  const step = s => s.name || s.ref
  return html`<div class="ports" role="group" aria-label=${t('ports')}>
    <div class="node" style=${{ borderLeftColor: agent.fields.color || null }}><b>${agent.fields.display_name || agent.name}</b><span class="mute small">${typeName(agent.type)}</span></div>
    <ul>${agent.steps && html`<li><span class="mono">sub-agents</span><span>${agent.steps.length ? agent.steps.map((s, i) => html`<button key=${step(s)} type="button" class="linklike" onClick=${() => document.querySelector(`[data-step="${CSS.escape(step(s))}"] .hand`)?.focus()}>${s.final ? '★' : i + 1} ${step(s)}</button> `) : t('ports.none')}</span></li>`}
      <li><span class="mono">callbacks</span><button type="button" class="linklike" onClick=${() => focusField('f-root-callbacks')}>${hooks.length ? hooks.join(', ') : t('ports.add')}</button></li></ul></div>`
}
