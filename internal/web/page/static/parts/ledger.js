import { html } from '../ui.js'
import { t } from '../words.js'
import { duration } from '../format.js'

// Bar is how near a condition is, with the final barline at its end. Few of something are drawn
// one by one; blue is what the running iteration has counted.
function Bar({ row }) {
  if (row.tense === 'not_asked' || row.tense === 'unknown') return null
  const parts = []
  const whole = row.unit === 'times' || row.unit === 'iterations' || row.unit === 'failures' || row.unit === 'calls'
  if (whole && row.bound > 0 && row.bound <= 12) {
    const width = 100 / row.bound, gap = 2
    for (let i = 0; i < row.bound; i++) {
      const done = i < row.have, counted = done && i >= row.have - (row.counted || 0)
      parts.push(html`<rect class=${counted ? 'p' : done ? 'f' : 't'} x=${i * width} y="5" width=${width - gap} height="6" rx="1" />`)
    }
  } else {
    const near = Math.max(0, Math.min(1, row.near)) * 100
    const counted = row.have > 0 && row.counted ? Math.min(near, near * (row.counted / row.have)) : 0
    parts.push(html`<rect class="t" x="0" y="5" width="100" height="6" rx="1" /><rect class="f" x="0" y="5" width=${near} height="6" rx="1" />`)
    if (counted > 1) parts.push(html`<rect class="p" x=${near - counted} y="5" width=${counted} height="6" rx="1" />`)
  }
  return html`<svg class="bar" viewBox="0 0 112 16" aria-hidden="true">${parts}<rect class="e" x="104" y="2" width="1.3" height="12" /><rect class="e" x="107" y="2" width="3.4" height="12" /></svg>`
}

const limits = /^(max_iterations|timeout|budget|max_calls|failures|consecutive_failures|state_limit)/
const isLimit = row => limits.test(row.name)

// timed is a row as it is some time after the server told it: only active time goes on by itself.
function timed(row, since) {
  if (row.name !== 'timeout' || !since || row.have === undefined) return row
  const have = row.have + since / 1e9
  return { ...row, have, near: Math.min(1, have / row.bound), words: { ...row.words, amount: `${duration(have * 1e9)} ${t('of', { bound: duration(row.bound * 1e9) })}` } }
}

function Row({ row }) {
  const kinds = []
  if (row.tense === 'likely' || row.nearest) kinds.push('near')
  if (row.tense === 'fired') kinds.push('fired', isLimit(row) ? 'lim' : '')
  const w = row.words
  return html`<tr class=${kinds.join(' ')}>
    <th scope="row">${w.title} ${w.tag && html`<span class=${'tag' + (row.tense === 'likely' ? ' now' : '')}>${w.tag}</span>`}
      ${w.why && html`<span class="why">${w.why}</span>`}</th>
    <td class="b"><${Bar} row=${row} /></td>
    <td class="num">${w.amount}${row.provisional && html`<span class="mute" title=${t('provisional')}>*</span>`}</td>
  </tr>`
}

// Ledger is the stop ledger: every way in which a loop can end, in one order and with one set of
// words before, during and after a run.
// since is the active time that has gone by after the last event, in nanoseconds.
export function Ledger({ outlook, caption, since = 0 }) {
  return html`<table class="ledger"><caption class="sr">${caption}</caption><tbody>
    ${outlook.ledger.map(row => html`<${Row} key=${row.name + (row.expr || '')} row=${{ ...timed(row, since), nearest: row.name === outlook.nearest }} />`)}
  </tbody></table>`
}
