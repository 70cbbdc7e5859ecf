import { html, useEffect, useLayoutEffect, useRef } from '../ui.js'
import { api } from '../api.js'

// The editor is loaded when a page wants it: it is as large as all the rest twice.
let loading
const load = () => (loading ||= import('../vendor/codemirror.js'))

// Yaml is an editor of a definition. It lives in a shadow root: CodeMirror makes style sheets of
// its own, and there they are objects, which a strict content policy allows.
export function Yaml({ text, problems, onChange, onCursor, label, handle, shownLine }) {
  const box = useRef()
  const view = useRef()
  const now = useRef({})
  now.current = { onChange, onCursor, problems }
  useEffect(() => {
    let over = false
    load().then(cm => {
      if (over || !box.current) return
      const root = box.current.shadowRoot || box.current.attachShadow({ mode: 'open' })
      view.current = editor(cm, root, text, label, now)
      if (handle) handle.current = {
        goto: (line, column) => goto(cm, view.current, line, column),
        reveal: line => reveal(box.current, view.current, line),
        next: () => cm.nextDiagnostic(view.current),
        focus: () => view.current.focus(),
      }
      show(cm, view.current, now.current.problems)
      reveal(box.current, view.current, shownLine?.current)
    })
    return () => {
      over = true
      view.current?.destroy()
      view.current = undefined
    }
  }, [])
  // A layout effect runs before the next key: a later one would put an older text over it.
  useLayoutEffect(() => {
    const v = view.current
    if (!v || v.state.doc.toString() === text) return
    // Only what differs is replaced, so that the cursor, the folds and the history stay.
    const old = v.state.doc.toString()
    let from = 0, end = Math.min(old.length, text.length)
    while (from < end && old[from] === text[from]) from++
    let a = old.length, b = text.length
    while (a > from && b > from && old[a - 1] === text[b - 1]) a--, b--
    // It is told to nobody: told late, it would undo what has been written since, in turns for ever.
    now.current.quiet = true
    v.dispatch({ changes: { from, to: a, insert: text.slice(from, b) } })
    now.current.quiet = false
  }, [text])
  useEffect(() => {
    if (view.current) load().then(cm => view.current && show(cm, view.current, problems))
  }, [problems])
  return html`<div ref=${box} class="yaml"></div>`
}

const at = (doc, line, column) => {
  const l = doc.line(Math.max(1, Math.min(line || 1, doc.lines)))
  return Math.min(l.to, l.from + Math.max(0, (column || 1) - 1))
}

function goto(cm, v, line, column) {
  const pos = at(v.state.doc, line, column)
  v.dispatch({ selection: { anchor: pos }, effects: cm.EditorView.scrollIntoView(pos, { y: 'center' }) })
  v.focus()
}

// reveal puts the cursor on a line, and the line into sight, unless somebody is writing in the text. Only the box of the text
// is scrolled, never the page.
function reveal(box, v, line) {
  if (v.hasFocus || !line) return
  const pos = at(v.state.doc, line, 1)
  if (v.state.doc.lineAt(v.state.selection.main.head).number !== line) v.dispatch({ selection: { anchor: pos } })
  const { top, bottom } = v.lineBlockAt(pos)
  if (top < box.scrollTop || bottom + 3 * (bottom - top) > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 4)
}

function show(cm, v, problems) {
  const doc = v.state.doc
  const list = (problems || []).map(p => {
    const from = at(doc, p.line, p.column)
    const to = Math.min(doc.line(Math.max(1, Math.min(p.line || 1, doc.lines))).to, from + (p.length || 1))
    return {
      from,
      to: Math.max(from, to),
      severity: p.severity === 'error' ? 'error' : p.severity === 'warning' ? 'warning' : 'info',
      source: p.code,
      message: p.message + (p.hint ? '\n' + p.hint : ''),
      actions: (p.fixes || []).map(f => ({
        name: f.title,
        apply: (view, a, b) => view.dispatch({ changes: { from: a, to: b, insert: f.text }, userEvent: 'input.fix' }),
      })),
    }
  })
  v.dispatch(cm.setDiagnostics(v.state, list.sort((a, b) => a.from - b.from)))
}

function editor(cm, root, text, label, now) {
  const { tags } = cm
  const style = cm.HighlightStyle.define([
    { tag: tags.propertyName, color: 'var(--now)' },
    { tag: tags.definition(tags.propertyName), color: 'var(--now)' },
    { tag: tags.string, color: 'var(--add)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--ask)' },
    { tag: tags.comment, color: 'var(--ink-3)' },
    { tag: [tags.meta, tags.keyword], color: 'var(--warn)' },
    { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: 'var(--ink-2)' },
  ])
  const theme = cm.EditorView.theme({
    '&': { color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: '13px' },
    '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px' },
    '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--ink-3)', border: '0' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
    '.cm-cursor': { borderLeftColor: 'var(--ink)' },
    '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': { backgroundColor: 'var(--now-bg)' },
    '.cm-tooltip': { backgroundColor: 'var(--surface)', color: 'var(--ink)', border: '1px solid var(--line-2)', borderRadius: '6px' },
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--now-bg)', color: 'var(--ink)' },
    '.cm-panels': { backgroundColor: 'var(--inset)', color: 'var(--ink)' },
    '.cm-textfield, .cm-button': { color: 'var(--ink)', backgroundColor: 'var(--surface)', backgroundImage: 'none', border: '1px solid var(--control)' },
    '.cm-diagnosticAction': { backgroundColor: 'var(--ink)', color: 'var(--on-ink)' },
    '.cm-completionDetail': { color: 'var(--ink-3)' },
    '.cm-foldPlaceholder': { backgroundColor: 'var(--inset)', color: 'var(--ink-2)', border: '0' },
  })
  const complete = async context => {
    const word = context.matchBefore(/[\w{}/.-]*/)
    if (!context.explicit && word.from === word.to) return null
    const line = context.state.doc.lineAt(context.pos)
    const found = await api.complete(context.state.doc.toString(), line.number, context.pos - line.from + 1)
    return {
      from: word.from,
      options: (found.options || []).map(o => ({ label: o.label, apply: o.insert || o.label, detail: o.detail, info: o.doc, type: o.kind })),
      validFor: /^[\w{}/.-]*$/,
    }
  }
  const hover = cm.hoverTooltip(async (view, pos) => {
    const line = view.state.doc.lineAt(pos)
    const key = /^[\s-]*([\w.]+)\s*:/.exec(line.text)
    if (!key) return null
    const from = line.from + line.text.indexOf(key[1])
    if (pos < from || pos > from + key[1].length) return null
    const found = await api.complete(view.state.doc.toString(), line.number, from - line.from + 1)
    const doc = (found.options || []).find(o => o.label === key[1])
    if (!doc) return null
    return { pos: from, end: from + key[1].length, create: () => {
      const dom = document.createElement('div')
      dom.style.padding = '6px 10px'
      dom.style.maxWidth = '44ch'
      dom.textContent = (doc.detail ? doc.detail + '\n' : '') + doc.doc
      dom.style.whiteSpace = 'pre-line'
      return { dom }
    } }
  })
  const state = cm.EditorState.create({
    doc: text,
    extensions: [
      cm.lineNumbers(), cm.highlightActiveLine(), cm.highlightActiveLineGutter(), cm.highlightSpecialChars(), cm.drawSelection(), cm.history(), cm.foldGutter(),
      cm.indentOnInput(), cm.bracketMatching(), cm.indentUnit.of('  '), cm.EditorState.tabSize.of(2), cm.yaml(), cm.syntaxHighlighting(style), cm.lintGutter(),
      cm.autocompletion({ override: [complete] }), hover, cm.search({ top: true }), cm.highlightSelectionMatches(), theme, cm.EditorView.lineWrapping,
      cm.EditorView.contentAttributes.of({ 'aria-label': label }),
      cm.keymap.of([
        { key: 'Ctrl-.', mac: 'Cmd-.', run: fix },
        { key: 'F8', run: cm.nextDiagnostic },
        ...cm.completionKeymap, ...cm.lintKeymap, ...cm.searchKeymap, ...cm.historyKeymap, ...cm.foldKeymap, cm.indentWithTab, ...cm.defaultKeymap,
      ]),
      cm.EditorView.updateListener.of(u => {
        if (u.docChanged && !now.current.quiet) now.current.onChange(u.state.doc.toString())
        if (u.docChanged || u.selectionSet) {
          const pos = u.state.selection.main.head
          const line = u.state.doc.lineAt(pos)
          now.current.onCursor?.(line.number, pos - line.from + 1)
        }
      }),
    ],
  })
  // fix takes the first fix of a problem at the cursor, or else of the next one.
  function fix(view) {
    const pos = view.state.selection.main.head
    let found
    cm.forEachDiagnostic(view.state, (d, from, to) => {
      if (!d.actions?.length) return
      const near = from <= view.state.doc.lineAt(pos).to && to >= view.state.doc.lineAt(pos).from
      if (near || !found) found = { d, from, to }
    })
    if (!found) return false
    found.d.actions[0].apply(view, found.from, found.to)
    return true
  }
  return new cm.EditorView({ state, root, parent: root })
}
