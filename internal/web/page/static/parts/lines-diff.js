import { html } from '../ui.js'

// edits are the parts of two lists, in the order of the second, by the longest run that both have.
function edits(a, b) {
  const n = a.length, m = b.length
  const common = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1))
  for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1])
  const out = []
  for (let i = 0, j = 0; i < n || j < m; ) {
    if (i < n && j < m && a[i] === b[j]) out.push({ op: '=', text: a[i], line: ++j }), i++
    else if (j < m && (i >= n || common[i][j + 1] > common[i + 1][j])) out.push({ op: '+', text: b[j], line: ++j })
    else out.push({ op: '-', text: a[i++] })
  }
  return out
}

const lines = (before, after) => edits(before.split('\n'), after.split('\n'))

// words are the edits between two texts word by word; undefined if they are too long for that.
export function words(before, after) {
  const [a, b] = [before, after].map(text => text.split(/(?<=\s)(?=\S)/))
  if (a.length * b.length > 4e6) return undefined
  const out = []
  for (const e of edits(a, b)) {
    const last = out[out.length - 1]
    if (last?.op === e.op) last.text += e.text
    else out.push({ op: e.op, text: e.text })
  }
  return out
}

// LinesDiff shows what changes, with three lines around it.
export function LinesDiff({ before, after }) {
  const all = lines(before, after)
  const near = i => all.slice(Math.max(0, i - 3), i + 4).some(l => l.op !== '=')
  return html`<div class="diff" role="group" tabindex="0">${all.map((l, i) => near(i) && html`<div key=${i} class=${l.op === '+' ? 'add' : l.op === '-' ? 'del' : ''}><span class="ln">${l.line || ''}</span><span class="op">${l.op === '=' ? ' ' : l.op}</span><span class="tx">${l.text}</span></div>`)}</div>`
}
