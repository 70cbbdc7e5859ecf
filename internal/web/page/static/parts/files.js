import { html, useEffect, useLayoutEffect, useRef, useState } from '../ui.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { whole } from '../format.js'
import { Copy } from './copy.js'
import { Icon } from './icon.js'

// useAnswer is what the server says, {value} or {problem}; empty while nothing is asked.
function useAnswer(ask, deps) {
  const [got, set] = useState({})
  useEffect(() => {
    if (!ask) return set({})
    let over = false
    ask().then(value => !over && set({ value }), e => !over && set({ problem: e.message }))
    return () => (over = true)
  }, deps)
  return got
}

// useFiles are the files of a run that differ between two places; from the start to the end without them.
export const useFiles = (id, on, places, deps) => useAnswer(on && (() => api.files(id, places)), [id, on, ...deps])

const counted = f => (f.binary ? t('binary') : [f.added > 0 && '+' + whole(f.added), f.removed > 0 && '−' + whole(f.removed)].filter(Boolean).join(' ') || '±0')

function Counts({ file }) {
  if (file.binary || (!file.added && !file.removed)) return html`<span class="mute">${counted(file)}</span>`
  return html`${file.added > 0 && html`<span class="up">+${whole(file.added)}</span>`}${file.added > 0 && file.removed > 0 && ' '}${file.removed > 0 && html`<span class="down">−${whole(file.removed)}</span>`}`
}

const Kind = ({ status }) => status !== 'M' && html`<span class="tag">${t('file.' + status)}</span>`

const more = (id, n) => n > 0 && html`<p class="mute small">${t('files.more', { n })} <code>refrain show ${id} --files</code></p>`

// Diff is what has changed in a file, line by line, under a title if there is one.
function Diff({ id, path, places, title }) {
  const { value: d, problem } = useAnswer(() => api.fileDiff(id, path, places), [id, path, JSON.stringify(places)])
  if (problem) return html`<p class="st bad diffnote" role="alert">${problem}</p>`
  if (!d) return html`<p class="mute small diffnote">${t('loading')}</p>`
  if (!d.lines.length) return html`<p class="mute small diffnote">${t(d.binary ? 'diff.binary' : 'diff.none')}</p>`
  return html`<div class="diff file" role="group" tabindex="0" aria-label=${t('diff.of', { path })}>
    ${title && html`<div class="hk"><span>${path} · ${title}</span></div>`}
    ${d.lines.map((l, i) => l.op === '@' ? (i > 0 || l.text) && html`<div key=${i} class="hk"><span>… ${l.text}</span></div>`
      : l.op === '\\' ? html`<div key=${i} class="eof"><span></span><span></span><span></span><span>${t('diff.no.newline')}</span></div>`
      : html`<div key=${i} class=${l.op === '+' ? 'a' : l.op === '-' ? 'd' : ''}><span>${l.old}</span><span>${l.new}</span><span>${l.op === '-' ? '−' : l.op}</span><span>${l.words ? l.words.map((w, n) => (w.op === '=' ? w.text : l.op === '+' ? html`<ins key=${n}>${w.text}</ins>` : html`<del key=${n}>${w.text}</del>`)) : l.text}</span></div>`)}
    ${d.cut && html`<div class="hk"><span>${t('diff.cut', { added: whole(d.added), removed: whole(d.removed) })}</span></div>`}
  </div>`
}

const between = (from, to) => (from ? t('diff.between', { from, to }) : t('diff.first', { to }))

// Files are those that an iteration has changed against the one that it was written from; each opens.
export function Files({ id, loop, number: n, it }) {
  const places = { from: 'iteration/' + (it.from || 0), to: 'iteration/' + n, loop }
  const ended = (it.steps || []).filter(s => s.status === 'completed').length
  const { value: d, problem } = useFiles(id, true, places, [n, it.from, it.status, ended])
  const [open, setOpen] = useState('')
  if (problem) return html`<p class="soft">${problem}</p>`
  if (!d) return html`<p class="mute">${t('loading')}</p>`
  if (!d.total) return html`<p class="mute">${t('files.none')}</p>`
  return html`<p class="mute small">${t('n.files', { n: d.total })}, <${Counts} file=${d} /> · ${it.from > 0 ? t('against', { n: it.from }) : t('against.start')}</p>
    <ul class="flist open">${d.files.map(f => html`<li key=${f.path}><button class="linklike mono" aria-expanded=${open === f.path} onClick=${() => setOpen(open === f.path ? '' : f.path)}><${Icon} name=${open === f.path ? 'down' : 'right'} />${f.path}</button><${Kind} status=${f.status} /><span class="num"><${Counts} file=${f} /></span>
      ${open === f.path && html`<${Diff} id=${id} path=${f.path} places=${places} />`}</li>`)}</ul>
    ${more(id, d.total - d.files.length)}`
}

// HandOver says where the files of the result are, how to take them, and which have changed.
export function HandOver({ head, files, onSee, say }) {
  const h = head.files
  const { value: d, problem } = files
  const few = d?.files.slice(0, 5)
  return html`<div class="pad handover">
    ${d?.total === 0 ? html`<p class="mute">${t('files.none')}</p>` : (h.way || !problem) && html`<p>${t('handed.' + (h.way || 'store'))} ${h.name && html`<b class="mono">${h.name}</b>`}${h.commit && html`, <span class="mono mute" title=${h.commit}>${h.commit.slice(0, 12)}</span>`}</p>`}
    ${h.command && html`<p class="take"><code>${h.command}</code><${Copy} text=${h.command} /></p>`}
    ${problem && html`<p class="soft">${problem}</p>`}
    ${d?.total > 0 && html`<ul class="flist">${few.map(f => html`<li key=${f.path}><button class="linklike mono" onClick=${() => onSee(f.path)}>${f.path}</button><span class="num"><${Counts} file=${f} /></span><${Kind} status=${f.status} /></li>`)}</ul>
      ${d.total > few.length && html`<p class="mute small">${t('files.others', { n: d.total - few.length })}</p>`}
      <div class="row"><button class="btn primary" onClick=${() => onSee()}>${t('see.changes')}</button><button class="btn" onClick=${() => api.savePatch(head.id).catch(e => say(e.message))}><${Icon} name="download" />${t('download.patch')}</button></div>`}
  </div>`
}

const rowsMost = 100

// Changes shows every file that has changed by the iterations that changed it, and the lines of the cell that is chosen.
export function Changes({ head, files, cell, setCell }) {
  const id = head.id
  const box = useRef()
  const { value: by, problem } = useAnswer(head.loop && (() => api.filesByIteration(id)), [id, head.loop?.address, head.seq])
  const whole = files.value
  const columns = (by?.iterations || []).map(c => ({ ...c, key: c.number, files: new Map(c.files.map(f => [f.path, f])), title: between(c.from, c.number), places: { from: 'iteration/' + c.from, to: 'iteration/' + c.number, loop: by.loop } }))
  columns.push({ key: 'all', files: new Map((whole?.files || []).map(f => [f.path, f])), title: t('start.result'), places: {} })
  const paths = [...new Set(columns.flatMap(c => [...c.files.keys()]))].sort()
  const rows = paths.slice(0, rowsMost)
  useLayoutEffect(() => {
    const best = box.current?.querySelector('th.best')
    if (best) box.current.scrollLeft = best.offsetLeft + best.offsetWidth - box.current.clientWidth + 40
  }, [by, whole])
  if (!whole || !paths.length) return null
  const first = rows.find(p => columns.at(-1).files.has(p)) ?? rows[0]
  const chosen = cell && paths.includes(cell.path) ? cell : { path: first, key: 'all' }
  const column = columns.find(c => c.key === chosen.key && c.files.has(chosen.path)) || columns.find(c => c.files.has(chosen.path))
  const move = e => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key]
    const td = e.target.closest('td')
    if (!by || !td) return
    e.preventDefault()
    const all = [...e.currentTarget.tBodies[0].rows]
    for (let r = all.indexOf(td.parentNode) + by[0], c = td.cellIndex + by[1]; all[r]?.cells[c]; r += by[0], c += by[1]) {
      const b = all[r].cells[c].querySelector('button')
      if (b) return b.focus()
    }
  }
  return html`<section class="panel clip" aria-labelledby="h-changes"><header><h2 id="h-changes" tabindex="-1">${t('changes')}</h2><span class="mute small hide-s">${t('changes.what')}</span></header>
    ${problem && html`<p class="pad soft">${problem}</p>`}
    <div class="scroll-x" ref=${box} role="group" tabindex="0" aria-label=${t('changes')}><table class="files" onKeyDown=${move}><caption class="sr">${t('changes.caption')}</caption>
      <thead><tr><th scope="col">${t('file')}</th>${columns.map(c => html`<th key=${c.key} scope="col" class=${c.undone ? 'un' : c.best ? 'best' : ''}>${c.undone && html`<${Icon} name="undo" /> `}${c.number || t('start.result')}${c.undone && ' ' + t('status.undone')}${c.best && ' ' + t('best')}</th>`)}</tr></thead>
      <tbody>${rows.map(path => html`<tr key=${path}><th scope="row" class="mono">${path} <${Kind} status=${whole.files.find(f => f.path === path)?.status || 'M'} /></th>
        ${columns.map(c => {
          const f = c.files.get(path)
          const on = path === chosen.path && c === column
          return html`<td key=${c.key} class=${c.undone ? 'un' : c.key === 'all' ? 'all' : ''}>${f ? html`<button aria-pressed=${on} tabindex=${on ? 0 : -1} aria-label=${`${path}, ${c.number ? t('iteration.n', { n: c.number }) : t('start.result')}: ${counted(f)}`} onClick=${() => setCell({ path, key: c.key })}><${Counts} file=${f} /></button>` : html`<span class="mute">·</span>`}</td>`
        })}</tr>`)}</tbody></table></div>
    <div class="pad few">${more(id, Math.max(paths.length, whole.total) - rows.length)}${by && head.loop.total > by.iterations.length && html`<p class="mute small">${t('changes.last')}</p>`}</div>
    <${Diff} key=${chosen.path + column.key} id=${id} path=${chosen.path} places=${column.places} title=${column.title} /></section>`
}
