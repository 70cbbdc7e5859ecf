import { html } from '../ui.js'
import { t } from '../words.js'
import { Icon } from './icon.js'

// edits are a finding's changes as the server makes them.
const edits = add => add.map(c => ({ op: c.append ? 'append' : 'fix', path: c.agent, name: c.field, value: c.value }))

// Findings are what one may want to change in the definition, each with its evidence. The change
// itself is shown as a difference before anything is saved.
export function Findings({ findings, definition }) {
  return findings.map(f => html`<div class="finding" key=${f.code + f.loop}><${Icon} name="warn" /><p><b>${f.title}.</b> ${f.evidence}</p><p class="do">${f.suggestion}</p>
    ${f.add && definition && html`<a class="btn s" href=${`/definitions/${encodeURIComponent(definition)}?edit=${encodeURIComponent(JSON.stringify(edits(f.add)))}`}>${t('see.change')}</a>`}</div>`)
}
