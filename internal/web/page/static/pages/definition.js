import { html, useEffect, useLayoutEffect, useRef, useState, useCallback, announce } from '../ui.js'
import { route, go } from '../route.js'
import { t, lang } from '../words.js'
import { api } from '../api.js'
import { lock, operates, writes } from '../server.js'
import { whole, duration, money, clock, none } from '../format.js'
import { Icon } from '../parts/icon.js'
import { Dialog } from '../parts/dialog.js'
import { Yaml } from '../parts/yaml.js'
import { Form } from '../parts/form.js'
import { Try } from '../parts/try.js'
import { LinesDiff } from '../parts/lines-diff.js'
import { RunIt } from '../parts/run-it.js'

// nothing stands for a file that is not there.
const nothing = { text: '', etag: null }

const draftKey = name => 'draft:' + name

// Definition is a file, as text and as a form. They are one: the form changes the text by edits
// that keep comments, and shows what the text says. Its etag stays that of the file which the draft
// was made from, until a person has seen what another has changed since.
export function Definition({ name }) {
  const [disk, setDisk] = useState(null)
  const [text, setText] = useState('')
  const [outline, setOutline] = useState(null)
  const [good, setGood] = useState(null)
  const [problem, setProblem] = useState('')
  const [cursor, setCursor] = useState([1, 1])
  const [asking, setAsking] = useState(null)
  const [busy, setBusy] = useState(false)
  const yaml = useRef()
  const shownLine = useRef(0) // where the step begins that is open in the form
  const latest = useRef(0)

  useEffect(() => {
    document.title = name + ' · Refrain'
    api.definition(name).then(
      d => {
        const kept = JSON.parse(localStorage.getItem(draftKey(name)))
        const draft = kept && (kept.text !== d.text || kept.typed)
        setDisk({ ...d, etag: draft ? kept.etag : d.etag })
        write(draft ? kept.text : d.text)
        if (draft) retype(kept.typed)
        if (draft && kept.etag !== d.etag) setAsking({ theirs: d })
      },
      e => {
        const kept = JSON.parse(localStorage.getItem(draftKey(name)))
        if (e.status === 401) lock()
        else if (e.status === 404 && kept) {
          setDisk({ text: '', etag: kept.etag })
          write(kept.text)
          retype(kept.typed)
          if (kept.etag) setAsking({ theirs: nothing })
        } else setProblem(e.message)
      },
    )
  }, [name])

  const now = useRef('')
  now.current = text
  // write takes a text at once, also for edits that are under way before the page is drawn again.
  const write = text => {
    now.current = text
    setText(text)
  }
  // typed is what fields of the form hold that the text does not have yet, by the path of the field: the changes,
  // and why the text does not take it. Of what is typed while a change is on its way, the last counts.
  const typed = useRef(new Map())
  const [waiting, setWaiting] = useState(typed.current)
  const show = () => setWaiting(new Map(typed.current))
  // retype takes up what was typed before the page was loaded, and the server had not taken.
  const retype = kept => {
    for (const [at, what] of kept || []) typed.current.set(at, what)
    show()
    edit([])
  }
  const refused = at => waiting.get(at)?.problem && t('not.written', { name: at.split('.').pop(), why: waiting.get(at).problem })

  const dirty = disk && (text !== disk.text || waiting.size > 0)
  // The draft is one for all tabs of this browser. A tab writes over what it has seen itself, and asks about what
  // another tab has written since. rival is that text.
  const kept = useRef(localStorage.getItem(draftKey(name)))
  const [rival, setRival] = useState(null)
  const keep = draft => {
    const there = localStorage.getItem(draftKey(name))
    if (there && there !== kept.current && JSON.parse(there).text !== now.current) return setRival(JSON.parse(there).text)
    draft ? localStorage.setItem(draftKey(name), draft) : localStorage.removeItem(draftKey(name))
    kept.current = draft
  }
  useEffect(() => {
    const on = e => {
      if (e.key !== draftKey(name) || !e.newValue) return
      const theirs = JSON.parse(e.newValue).text
      if (theirs === now.current) kept.current = e.newValue
      setRival(theirs === now.current ? null : theirs)
    }
    addEventListener('storage', on)
    return () => removeEventListener('storage', on)
  }, [name])
  const choose = theirs => {
    kept.current = localStorage.getItem(draftKey(name))
    setAsking(null)
    setRival(null)
    if (theirs) setText(rival)
  }

  useEffect(() => {
    // What is typed survives a reload, and a server that is gone.
    if (disk && !rival) keep(dirty ? JSON.stringify({ text, etag: disk.etag, at: Date.now(), ...(waiting.size && { typed: [...waiting] }) }) : null)
  }, [text, disk, rival, waiting])
  useEffect(() => {
    if (!disk) return
    const turn = ++latest.current
    const control = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const o = await api.outline(text, name, control.signal)
        if (turn !== latest.current) return
        setOutline({ ...o, text })
        if (o.worst) setGood({ ...o, at: new Date() })
      } catch (e) {
        if (turn === latest.current && !control.signal.aborted) setProblem(e.message)
      }
    }, 200)
    return () => {
      clearTimeout(timer)
      control.abort()
    }
  }, [text, disk, rival, lang.value])

  // Edits are made one after another, each in what the last one has left. Whoever saves waits for them.
  const pending = useRef(Promise.resolve())
  const last = useRef({})
  const edit = useCallback(changes => {
    const make = async (changes, from) => {
      for (;;) {
        const before = now.current
        const r = await api.edit(from ?? before, changes)
        if (now.current === before) return write(r.text)
        from = undefined // somebody has typed into the text meanwhile: the change is made in what is there now
      }
    }
    const turn = pending.current.then(async () => {
      for (const [at, what] of typed.current) {
        // Each letter goes into the text as it was before the first one: half a word may want quotes, the whole none.
        const from = last.current.at === at && last.current.to === now.current ? last.current.from : now.current
        const why = await make(what.changes, from).then(() => '', e => e.message)
        if (!why) last.current = { at, from, to: now.current }
        if (typed.current.get(at) !== what) continue
        if (why && !what.left) what.problem = why
        else typed.current.delete(at)
        if (why && what.left) setProblem(why)
        show()
      }
      if (!changes.length) return true
      try {
        await make(changes)
        setProblem('')
        return true
      } catch (e) {
        setProblem(e.message)
        return false
      }
    })
    pending.current = turn
    return turn
  }, [])
  const typing = {
    // read says that the form shows all that was typed.
    read: outline?.text === text && waiting.size === 0,
    refused,
    type(at, changes) {
      typed.current.set(at, { changes })
      show()
      edit([])
    },
    // forget gives up what the text does not take, as its field is gone.
    forget(at) {
      const what = typed.current.get(at)
      if (!what) return
      what.left = true
      if (what.problem && typed.current.delete(at)) show()
    },
  }

  // A finding brings its change along: it is shown before it is made.
  useEffect(() => {
    const wanted = route.value.query.edit
    if (!wanted || !disk) return
    let edits
    try {
      edits = [].concat(JSON.parse(wanted))
    } catch {
      return setProblem(t('change.unread'))
    }
    api.edit(disk.text, edits).then(r => setAsking({ change: r.text }), e => setProblem(e.message))
  }, [disk])

  // save gives what has kept it from saving. Where another has changed the file, it asks.
  const save = async (seen = disk.etag, signal) => {
    setBusy(true)
    try {
      await edit([])
      const left = [...typed.current].find(([, what]) => what.problem)
      if (left) throw new Error(t('not.written', { name: left[0].split('.').pop(), why: left[1].problem }))
      const written = now.current
      try {
        setDisk({ ...disk, text: written, etag: await api.save(name, written, seen, signal) })
      } catch (e) {
        if (e.status !== 412) throw e
        const theirs = await current()
        if (theirs.text !== written) {
          setDisk({ ...theirs, etag: seen })
          setAsking({ theirs })
          return new Error(t('changed.on.disk'))
        }
        setDisk(theirs)
      }
      setProblem('')
      announce(t('saved'))
      return null
    } catch (e) {
      if (!signal?.aborted) setProblem(e.message)
      return e
    } finally {
      setBusy(false)
    }
  }
  // current is the file as it is now.
  const current = () => api.definition(name).catch(e => {
    if (e.status === 404) return nothing
    throw e
  })
  // take puts a file in the place of the draft.
  const take = file => {
    setAsking(null)
    setProblem('')
    typed.current.clear()
    show()
    setDisk(file)
    setText(file.text)
    if (file.etag) return
    localStorage.removeItem(draftKey(name))
    go('/definitions')
  }
  useLayoutEffect(() => {
    const on = e => {
      if ((e.ctrlKey || e.metaKey) && e.key === 's') {
        e.preventDefault()
        if (dirty && !busy && writes.value) save()
      }
    }
    addEventListener('keydown', on)
    return () => removeEventListener('keydown', on)
  })

  if (!disk) return html`<main id="main" tabindex="-1"><p class="crumb"><a href="/definitions">${t('definitions')}</a> / <span class="mono">${name}</span></p>${problem ? html`<p class="panel pad st bad" role="alert">${problem}</p>` : html`<p class="mute">${t('loading')}</p>`}</main>`
  const file = disk.file || name + '.yaml'
  const problems = outline?.problems || []
  const errors = problems.filter(p => p.severity === 'error')
  const shown = outline?.agents?.length ? outline : good
  return html`<main id="main" tabindex="-1">
    <p class="crumb"><a href="/definitions">${t('definitions')}</a> / <span class="mono">${file}</span></p>
    <div class="head"><div><div class="row"><h1>${outline?.title || name}</h1>${dirty ? html`<span class="st off box"><${Icon} name="wait" />${t('draft.kept')}</span>` : html`<span class="st good box"><${Icon} name="ok" />${t('saved')}</span>`}</div>
        <p class="said">${outline?.description || ''}</p></div>
      <div class="acts">${dirty && html`<button class="btn" onClick=${() => setAsking('discard')}>${t('discard')}</button>`}
        ${writes.value && html`<button class="btn" disabled=${!dirty || busy} title=${dirty ? null : t('nothing.to.save')} onClick=${() => save()}>${t('save')}</button>`}
        <button class="btn primary" disabled=${!outline?.runs || !operates.value || (dirty && !writes.value)} onClick=${() => setAsking('run')}><${Icon} name="play" />${errors.length ? t('fix.first', { n: errors.length }) : outline && !outline.runs ? t('model.first') : t('run.it')}</button></div></div>
    ${!writes.value && html`<p class="banner" role="note">${t('not.writer')}</p>`}
    ${problem && html`<p class="panel pad st bad" role="alert">${problem} <button class="btn quiet s" onClick=${() => setProblem('')}>${t('close')}</button></p>`}
    ${rival !== null && html`<p class="panel pad st warn" role="status"><${Icon} name="warn" />${t('rival')} <button class="btn s" onClick=${() => setAsking('rival')}>${t('rival.see')}</button></p>`}
    <div class="grid edit">
      <div class="stack">${shown && html`<${Form} name=${name} outline=${shown} frozen=${!outline?.agents?.length} locked=${!writes.value} problems=${problems} edit=${edit} typing=${typing} goto=${(l, c) => yaml.current?.goto(l, c)} reveal=${l => { shownLine.current = l; yaml.current?.reveal(l) }} />`}</div>
      <div class="stack">
        <section class="panel clip" aria-labelledby="h-yaml"><header><h2 id="h-yaml" class="mono">${file}</h2>
            <span class=${'push st small ' + (errors.length ? 'bad' : 'good')}><${Icon} name=${errors.length ? 'bang' : 'ok'} />${errors.length ? t('n.errors', { n: errors.length }) : t('valid')}</span>
            ${problems.length > errors.length && html`<span class="mute small">${t('n.notes', { n: problems.length - errors.length })}</span>`}
            ${problems.length > 0 && html`<button class="btn quiet s" onClick=${() => yaml.current?.next()}><kbd>F8</kbd> ${t('next')}</button>`}</header>
          <${Yaml} text=${text} problems=${problems} onChange=${write} onCursor=${(l, c) => setCursor([l, c])} label=${file} handle=${yaml} shownLine=${shownLine} />
          ${problems.length > 0 && html`<ul class="problems">${problems.map(p => html`<li key=${p.line + p.code + p.message}><button class="linklike" onClick=${() => yaml.current?.goto(p.line, p.column)}>
              <span class=${'st ' + (p.severity === 'error' ? 'bad' : 'warn')}><${Icon} name=${p.severity === 'error' ? 'bang' : 'warn'} />${p.line ? t('line', { n: p.line }) : ''}</span> ${p.message} <span class="mono mute small">${p.code}</span></button>${p.hint && html`<span class="hint">${p.hint}</span>`}
              ${(p.fixes || []).map(f => html`<button key=${f.title} class="btn s" onClick=${() => setText(applyFix(text, f))}>${f.title}</button>`)}</li>`)}</ul>`}
          <footer class="row"><span>${t('cursor', { line: cursor[0], column: cursor[1] })}</span><span class="push mute">${t('one.text')}</span></footer></section>
        ${good && html`<${Before} outline=${good} old=${errors.length > 0} />`}
        ${writes.value && html`<${Try} text=${text} errors=${errors.filter(p => !p.here).length} query=${outline?.query} />`}
      </div>
    </div>
    ${asking === 'discard' && html`<${Dialog} title=${t('discard.title')} onClose=${() => setAsking(null)}><p>${t('discard.what')}</p><p class="row acts"><button class="btn" autofocus onClick=${() => setAsking(null)}>${t('back')}</button><button class="btn danger" onClick=${() => current().then(take, e => { setAsking(null); setProblem(e.message) })}>${t('discard')}</button></p><//>`}
    ${asking === 'rival' && rival !== null && html`<${Dialog} title=${t('rival.title')} onClose=${() => setAsking(null)}><p>${t('rival.what')}</p><${LinesDiff} before=${rival} after=${text} />
      <p class="row acts"><button class="btn" autofocus onClick=${() => setAsking(null)}>${t('back')}</button><button class="btn" onClick=${() => choose(true)}>${t('take.theirs')}</button><button class="btn danger" onClick=${() => choose(false)}>${t('rival.keep')}</button></p><//>`}
    ${asking?.theirs && html`<${Dialog} title=${t('changed.title')} onClose=${() => setAsking(null)}><p>${t(asking.theirs.etag ? 'changed.on.disk' : 'removed.on.disk')}</p><${LinesDiff} before=${asking.theirs.text} after=${text} />
      <p class="row acts"><button class="btn" autofocus onClick=${() => setAsking(null)}>${t('back')}</button><button class="btn" onClick=${() => take(asking.theirs)}>${t('take.theirs')}</button><button class="btn danger" onClick=${() => { setAsking(null); save(asking.theirs.etag) }}>${t('overwrite')}</button></p><//>`}
    ${asking?.change && html`<${Dialog} title=${t('the.change')} onClose=${() => setAsking(null)}><${LinesDiff} before=${disk.text} after=${asking.change} /><p class="row acts"><button class="btn" autofocus onClick=${() => setAsking(null)}>${t('back')}</button><button class="btn primary" onClick=${() => { setText(asking.change); setAsking(null); go('/definitions/' + encodeURIComponent(name), { replace: true }) }}>${t('take.change')}</button></p><//>`}
    ${asking === 'run' && html`<${RunIt} name=${name} outline=${outline} dirty=${dirty} save=${save} onClose=${() => setAsking(null)} />`}
  </main>`
}

// applyFix puts the text of a fix in its place.
function applyFix(text, f) {
  const lines = text.split('\n')
  const line = [...lines[f.line - 1]]
  line.splice(f.column - 1, f.length, f.text)
  lines[f.line - 1] = line.join('')
  return lines.join('\n')
}

function Before({ outline, old }) {
  const w = outline.worst || []
  return html`<section class="panel" aria-labelledby="h-before"><header><h2 id="h-before">${t('before.it.runs')}</h2>${old && html`<span class="push st warn small"><${Icon} name="warn" />${t('of.last.good', { time: clock(outline.at) })}</span>`}</header>
    <div class="pad"><p>${(outline.ends || []).map(e => html`<span key=${e.loop}><b>${t('ends', { loop: e.loop, n: e.ways.length })}</b>: ${e.ways.join('; ')}. </span>`)}</p></div>
    <div class="scroll-x" tabindex="0" role="group" aria-label=${t('at.the.most')}><table class="ledger"><caption class="sr">${t('at.the.most')}</caption>
      <thead><tr><th scope="col">${t('at.the.most')}</th><th scope="col" class="num">${t('times.run')}</th><th scope="col" class="num">${t('requests')}</th><th scope="col" class="num">${t('tokens')}</th><th scope="col" class="num">${t('cost')}</th><th scope="col" class="num">${t('time')}</th></tr></thead>
      <tbody>${w.map(r => html`<tr key=${r.path}><th scope="row" style=${{ paddingLeft: 16 + r.level * 16 + 'px', fontWeight: r.level ? 400 : 650 }}>${r.name}</th><td class="num">${amount(r.runs)}</td><td class="num">${amount(r.requests)}</td><td class="num">${amount(r.tokens)}</td><td class="num">${r.cost === null ? t('worst.unknown') : r.cost ? money(r.cost) : none}</td><td class="num">${r.seconds === null ? t('worst.none') : r.seconds ? duration(r.seconds * 1e9) : none}</td></tr>`)}</tbody></table></div>
    ${outline.expected && html`<${Expected} of=${outline.expected} />`}</section>`
}

// Expected is what iterations are expected to cost: the first three, the last, and all of them.
function Expected({ of }) {
  const priced = of.loops.some(l => l.total.cost !== null)
  const cost = c => html`<td class="num">${c === null ? t('worst.unknown') : c ? money(c) : none}</td>`
  const row = (key, name, it) => html`<tr key=${key}><th scope="row" style=${{ paddingLeft: '32px', fontWeight: 400 }}>${name}</th><td class="num">${whole(it.requests)}</td><td class="num">${whole(it.input_tokens)}</td><td class="num">${whole(it.cached_tokens)}</td><td class="num">${whole(it.output_tokens)}</td>${priced && html`${cost(it.cost)}${cost(it.cost_without_cache)}`}</tr>`
  const names = what => (of.uncounted || []).filter(u => u.what === what).map(u => u.name).join(', ')
  const listed = (of.prices || []).filter(p => p.date)
  return html`<div class="scroll-x" tabindex="0" role="group" aria-label=${t('expected')} id="expected"><table class="ledger"><caption class="sr">${t('expected')}</caption>
      <thead><tr><th scope="col">${t('expected')}</th><th scope="col" class="num">${t('requests')}</th><th scope="col" class="num">${t('input.tokens')}</th><th scope="col" class="num">${t('from.cache')}</th><th scope="col" class="num">${t('output.tokens')}</th>${priced && html`<th scope="col" class="num">${t('cost')}</th><th scope="col" class="num">${t('without.cache')}</th>`}</tr></thead>
      <tbody>${of.loops.map((l, i) => {
        const n = l.iterations.length
        return html`<tr key=${i}><th scope="rowgroup" colspan=${priced ? 7 : 5}>${l.name}</th></tr>
          ${l.iterations.map((it, j) => (j < 3 || j === n - 1) && row(i + '/' + j, t('iteration.n', { n: j + 1 }), it))}
          ${n > 1 && row(i + '/all', t(l.more ? 'expected.first' : 'expected.all', { n }), l.total)}`
      })}</tbody></table></div>
    <div class="pad small soft"><p>${t('expected.how')}</p>
      ${['request', 'answers', 'value', 'tools', 'turns', 'iterations', 'agent', 'price'].map(what => (of.uncounted || []).some(u => u.what === what) && html`<p key=${what}>${t('expected.not.' + what, { names: names(what) })}</p>`)}
      ${listed.map(p => html`<p key=${p.model}>${t('expected.listed', { model: p.model, date: p.date })} <a href=${p.source} rel="noreferrer">${p.source}</a></p>`)}</div>`
}
const amount = v => (v === null ? t('worst.none') : v ? whole(v) : none)
