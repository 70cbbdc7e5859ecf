import { html } from '../ui.js'

// lines are those of two texts, in the order of the second, by the longest run that both have.
export function lines(before, after) {
  const a = before.split('\n'), b = after.split('\n')
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

// LinesDiff shows what changes, with three lines around it.
export function LinesDiff({ before, after }) {
  const all = lines(before, after)
  const near = i => all.slice(Math.max(0, i - 3), i + 4).some(l => l.op !== '=')
  return html`<div class="diff" role="group" tabindex="0">${all.map((l, i) => near(i) && html`<div key=${i} class=${l.op === '+' ? 'add' : l.op === '-' ? 'del' : ''}><span class="ln">${l.line || ''}</span><span class="op">${l.op === '=' ? ' ' : l.op}</span><span class="tx">${l.text}</span></div>`)}</div>`
}
