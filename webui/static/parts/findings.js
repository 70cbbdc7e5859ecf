import { html } from '../ui.js'
import { t } from '../words.js'
import { Icon } from './icon.js'

// Findings are what one may want to change in the definition, each with its evidence. The change
// itself is shown as a difference before anything is saved.
export function Findings({ findings, definition }) {
  return findings.map(f => html`<div class="finding" key=${f.code + f.loop}><${Icon} name="warn" /><p><b>${f.title}.</b> ${f.evidence}</p><p class="do">${f.suggestion}</p>
    ${f.edit && definition && html`<a class="btn s" href=${`/definitions/${encodeURIComponent(definition)}?edit=${encodeURIComponent(JSON.stringify(f.edit))}`}>${t('see.change')}</a>`}</div>`)
}
