import { html, useEffect, useRef } from '../ui.js'
import { t } from '../words.js'
import { away } from '../api.js'
import { link } from '../server.js'
import { Icon } from './icon.js'

// Away says that no server answers: of what a person sends, that it is kept; else that the page asks again.
export function Away({ sends }) {
  const says = away.sent.value ? t('away.sent') : !sends && (away.read.value || link.value === 'off') ? t('link.banner') : ''
  return says && html`<p class="banner away" role="status" tabindex=${sends ? null : 0}><${Icon} name="broken" />${says}</p>`
}

// useSignal is a signal that is aborted with its form: what is closed sends nothing later.
export function useSignal() {
  const control = useRef()
  control.current ||= new AbortController()
  useEffect(() => () => control.current.abort(), [])
  return control.current.signal
}
