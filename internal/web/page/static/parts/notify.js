import { html, signal, useEffect, useRef } from '../ui.js'
import { t } from '../words.js'
import { over } from './status.js'
import { shownName } from './agent-name.js'

// A browser has notifications only for https and for its own machine.
const can = () => 'Notification' in window && isSecureContext

// wanted is what a person has chosen: nothing is told before.
const wanted = signal(can() && localStorage.getItem('notify') === 'on' && Notification.permission === 'granted')

// Notify switches on that the browser tells when a run ends or asks. say tells why it cannot.
export function Notify({ say }) {
  if (!can()) return null
  const turn = async () => {
    const on = !wanted.value && (await Notification.requestPermission()) === 'granted'
    if (!on && !wanted.value) say(t('notify.denied'))
    wanted.value = on
    localStorage.setItem('notify', on ? 'on' : 'off')
  }
  return html`<button class="btn" aria-pressed=${wanted.value} title=${t('notify.when')} onClick=${turn}>${t(wanted.value ? 'notify.on' : 'notify')}</button>`
}

// useNotices tells that the run of a head has ended, or asks, unless somebody is looking at it.
export function useNotices(head) {
  const before = useRef()
  useEffect(() => {
    if (!head) return
    const was = before.current
    const now = { over: over(head), asked: (head.questions || []).map(q => q.id) }
    before.current = now
    if (!was || !wanted.value || document.hasFocus()) return
    const asks = (head.questions || []).find(q => !was.asked.includes(q.id))
    if (!asks && (was.over || !now.over)) return
    try {
      const note = new Notification(`${shownName(head.name, head.looks)}: ${t('status.' + (asks ? 'asks' : head.status))}`, {
        body: asks ? asks.text : head.sentence ? `${head.sentence.lead} ${head.sentence.rest || ''}` : '', tag: head.id })
      note.onclick = () => {
        focus()
        note.close()
      }
    } catch {
      // A phone has them only for a page that was installed.
    }
  }, [head?.seq, head?.status])
}
