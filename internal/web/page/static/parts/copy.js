import { html, useState, copy, announce } from '../ui.js'
import { t } from '../words.js'
import { Icon } from './icon.js'

// Copy is a button that copies a text to the clipboard.
export function Copy({ text, label }) {
  const [done, set] = useState(false)
  const click = async () => {
    if (await copy(text)) {
      set(true)
      announce(t('copied'))
      setTimeout(() => set(false), 1500)
    }
  }
  return html`<button class=${label ? 'btn s' : 'btn quiet s icon push'} aria-label=${label ? null : t('copy')} title=${t('copy')} onClick=${click}><${Icon} name=${done ? 'ok' : 'copy'} />${label}</button>`
}
