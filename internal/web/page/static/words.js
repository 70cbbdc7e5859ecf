// The page's own words. What a run says of itself comes from the server, in the same language.
import { signal } from './ui.js'
import en from './words/en.js'
import pt from './words/pt.js'

const all = { en, pt }
const first = () => {
  const kept = localStorage.getItem('lang')
  if (all[kept]) return kept
  return (navigator.language || 'en').toLowerCase().startsWith('pt') ? 'pt' : 'en'
}

export const lang = signal(first())
document.documentElement.lang = lang.value === 'pt' ? 'pt-BR' : 'en'

export function setLang(to) {
  lang.value = to
  localStorage.setItem('lang', to)
  document.documentElement.lang = to === 'pt' ? 'pt-BR' : 'en'
}

// t is a text of the page. {name} stands for a value; a list of two is one and many, by n.
export function t(key, values = {}) {
  let text = all[lang.value][key] ?? en[key]
  if (text === undefined) {
    console.error('no text for ' + key)
    return key
  }
  if (Array.isArray(text)) text = text[new Intl.PluralRules(lang.value).select(values.n) === 'one' ? 0 : 1]
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '')
}
