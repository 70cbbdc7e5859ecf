import { html } from '../ui.js'
import { t } from '../words.js'

// Refusal says why the server has refused something, with each problem of a definition that was in the way.
export const Refusal = ({ error }) => html`<div role="alert"><p class="st bad">${error.message}</p>
  ${error.problems?.length > 0 && html`<ul class="problems">${error.problems.map(p => html`<li key=${p.line + p.message}>${p.line ? t('line', { n: p.line }) + ': ' : ''}${p.message}${p.hint && html`<span class="hint">${p.hint}</span>`}</li>`)}</ul>`}</div>`
