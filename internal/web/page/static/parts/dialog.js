import { html, useEffect, useRef } from '../ui.js'
import { t } from '../words.js'
import { Icon } from './icon.js'
import { Away } from './away.js'

// Dialog is a native dialog. It is open as long as it is drawn; Esc closes it, and the focus goes
// back to where it was. The first control marked autofocus gets it: the safe one.
export function Dialog({ title, onClose, children }) {
  const ref = useRef()
  useEffect(() => {
    const before = document.activeElement
    ref.current.showModal()
    ref.current.querySelector('[autofocus]')?.focus()
    return () => before?.focus?.()
  }, [])
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onCancel=${e => { e.preventDefault(); onClose() }}
    onClick=${e => e.target === ref.current && onClose()}>
    <div class="dialog-in"><header class="row"><h2 id="dialog-title">${title}</h2>
      <button type="button" class="btn quiet s icon push" aria-label=${t('close')} title=${t('close')} onClick=${onClose}><${Icon} name="cross" /></button></header>
    <${Away} sends />${children}</div>
  </dialog>`
}
