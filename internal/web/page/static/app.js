import { html, render, signal, useEffect, useLayoutEffect, useRef, useState, useKeys, singleKeys, setSingleKeys } from './ui.js'
import { route, decoded } from './route.js'
import { t, lang, setLang } from './words.js'
import { api, setToken } from './api.js'
import { ask, link, lock, locked, readOnly, you } from './server.js'
import { Dialog } from './parts/dialog.js'
import { Icon } from './parts/icon.js'
import { Away } from './parts/away.js'
import { Runs } from './pages/runs.js'
import { Run } from './pages/run.js'
import { Definitions } from './pages/definitions.js'
import { Definition } from './pages/definition.js'
import { Backtest } from './pages/backtest.js'
import { Compare } from './pages/compare.js'
import { Eval, Evals } from './pages/evals.js'

const keysOpen = signal(false)

ask()

function Mark() {
  return html`<svg viewBox="0 0 20 20" aria-hidden="true"><g fill="currentColor"><circle cx="4" cy="7" r="1.9" /><circle cx="4" cy="13" r="1.9" /><rect x="9" y="2" width="1.6" height="16" /><rect x="13" y="2" width="4.5" height="16" /></g></svg>`
}

const themes = ['system', 'light', 'dark']
const theme = signal(localStorage.getItem('theme') || 'system')
function applyTheme() {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
}
applyTheme()

function Top({ page }) {
  const tab = (href, name, label) => html`<a href=${href} aria-current=${page === name ? 'page' : null}>${label}</a>`
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length]
  return html`<header class="top">
    <a class="brand" href="/" aria-label="Refrain"><${Mark} /><span>Refrain</span></a>
    <nav aria-label=${t('nav')}>
      ${tab('/', 'runs', t('runs'))} ${!readOnly.value && tab('/definitions', 'definitions', t('definitions'))} ${tab('/evals', 'evals', t('evals'))} ${tab('/backtest', 'backtest', t('backtest'))}
    </nav>
    ${link.value !== 'idle' &&
    html`<span class=${'push link-state hide-s' + (link.value === 'live' ? '' : ' off')}><i></i>${t('link.' + link.value)}</span>`}
    <span class=${'row tools' + (link.value === 'idle' ? ' push' : '')}>
      ${you.value && html`<span class="mute small ell hide-s" title=${t('you.are', { name: you.value.name, role: t('role.' + you.value.role) })}>${you.value.name} · ${t('role.' + you.value.role)}</span>`}
      <button class="btn quiet s hide-s" onClick=${() => (keysOpen.value = true)}><kbd>?</kbd> ${t('keys')}</button>
      <button class="btn quiet s" lang=${lang.value === 'pt' ? 'en' : 'pt-BR'} onClick=${() => setLang(lang.value === 'pt' ? 'en' : 'pt')}>
        ${lang.value === 'pt' ? 'English' : 'Português'}
      </button>
      <button
        class="btn quiet s"
        aria-label=${t('theme') + ': ' + t('theme.' + theme.value)}
        title=${t('theme.next', { theme: t('theme.' + next) })}
        onClick=${() => {
          theme.value = next
          localStorage.setItem('theme', next)
          applyTheme()
        }}
      >
        <span class="show-s"><${Icon} name="theme" /></span><span class="hide-s">${t('theme')}: ${t('theme.' + theme.value)}</span>
      </button>
    </span>
  </header>`
}

function Keys() {
  if (!keysOpen.value) return null
  const row = (keys, what) => html`<tr><th scope="row">${keys.map(k => html`<kbd>${k}</kbd> `)}</th><td>${what}</td></tr>`
  return html`<${Dialog} title=${t('keys')} onClose=${() => (keysOpen.value = false)}>
    <table class="ledger keytable"><caption class="sr">${t('keys')}</caption><tbody>
      ${row(['J', 'K'], t('keys.move'))} ${row(['Enter'], t('keys.open'))} ${row(['/'], t('keys.search'))}
      ${row(['↑', '↓', '←', '→', 'Home', 'End'], t('keys.tree'))} ${row(['1', '…', '5'], t('keys.tabs'))} ${row(['A'], t('keys.ask'))}
      ${row(['L'], t('keys.live'))} ${row(['←', '→'], t('keys.slider'))} ${row(['Alt', '↑', '↓'], t('keys.order'))} ${row(['F8'], t('keys.problem'))} ${row(['Ctrl', '.'], t('keys.fix'))}
      ${row(['?'], t('keys.this'))}
    </tbody></table>
    <label class="sw"><input type="checkbox" checked=${singleKeys.value} onChange=${e => setSingleKeys(e.target.checked)} /> ${t('keys.single')}</label>
  <//>`
}

// Locked asks for the token of a server that wants one.
function Locked() {
  const [value, set] = useState('')
  const [problem, setProblem] = useState('')
  const send = async e => {
    e.preventDefault()
    setToken(value)
    try {
      await api.runs({ limit: 1 })
      locked.value = false
      ask()
    } catch (e) {
      if (e.status === 401) set('')
      setProblem(e.status === 401 ? t('token.wrong') : e.message)
    }
  }
  return html`<main id="main"><form class="panel pad narrowform" onSubmit=${send}>
    <h1>${t('token')}</h1><p class="soft">${t('token.why')}</p>
    <label for="token">${t('token.label')}</label>
    <input id="token" type="password" autocomplete="current-password" aria-invalid=${!!problem} value=${value} onInput=${e => set(e.target.value)} />
    ${problem && html`<p class="st bad" role="alert">${problem}</p>`}
    <button class="btn primary">${t('open')}</button>
  </form></main>`
}

function App() {
  const { path, query } = route.value
  useKeys({ '?': () => (keysOpen.value = true) })
  // Another page has the focus once it is drawn; one that is loaded leaves it to the browser.
  const before = useRef(path)
  useLayoutEffect(() => {
    if (before.current !== path) document.getElementById('main')?.focus({ preventScroll: true })
    before.current = path
  }, [path])
  const parts = path.split('/').filter(Boolean).map(decoded)
  let page = 'runs', shown
  if (locked.value) shown = html`<${Locked} />`
  else if (!parts.length || (parts[0] === 'runs' && parts.length === 1)) shown = html`<${Runs} />`
  else if (parts[0] === 'runs') shown = html`<${Run} id=${parts[1]} key=${parts[1]} />`
  else if (parts[0] === 'definitions') {
    page = 'definitions'
    shown = parts[1] ? html`<${Definition} name=${parts[1]} key=${parts[1]} />` : html`<${Definitions} />`
  } else if (parts[0] === 'evals') {
    page = 'evals'
    shown = parts[1] ? html`<${Eval} id=${parts[1]} key=${parts[1]} />` : html`<${Evals} />`
  } else if (parts[0] === 'compare' && parts.length === 1) {
    shown = html`<${Compare} />`
  } else if (parts[0] === 'backtest' && parts.length === 1) {
    page = 'backtest'
    shown = html`<${Backtest} />`
  } else {
    page = ''
    shown = html`<main id="main" tabindex="-1"><h1>${t('nothing')}</h1><p class="soft">${t('nothing.here', { path })}</p><p><a href="/">${t('runs')}</a></p></main>`
  }
  useEffect(() => {
    const on = e => {
      if (e.reason && e.reason.status === 401) {
        e.preventDefault()
        lock()
      }
    }
    addEventListener('unhandledrejection', on)
    return () => removeEventListener('unhandledrejection', on)
  }, [])
  return html`<a class="skip" href="#main" onClick=${e => { e.preventDefault(); document.getElementById('main').focus() }}>${t('skip')}</a>
    <${Top} page=${page} /><${Away} />${shown}<p id="said" class="sr" aria-live="polite"></p><${Keys} />`
}

render(html`<${App} />`, document.getElementById('app'))
