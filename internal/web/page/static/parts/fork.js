import { html, useEffect, useState } from '../ui.js'
import { go } from '../route.js'
import { t } from '../words.js'
import { api } from '../api.js'
import { offBy } from '../format.js'
import { Ask, limitFields, limitsOf } from './ask.js'

// Fork makes a new run of a run's beginning, up to an iteration, which is asked for if none is given. It
// goes on at once, as the run was or with another definition and other limits.
export function Fork({ head, loop = head.loop?.address, iteration, onClose }) {
  const [definitions, setDefinitions] = useState([])
  useEffect(() => {
    api.definitions().then(r => setDefinitions(r.definitions.filter(d => d.valid)), () => {}) // without a folder there are none
  }, [])
  const last = head.checkpoints?.[0]?.iteration || 0
  const at = loop === head.loop?.address ? head.checkpoints?.find(c => c.iteration === iteration) : undefined
  const fields = [
    ...(iteration === undefined ? [{ name: 'iteration', label: t('after.iteration'), number: true, min: 0, placeholder: String(last) }] : []),
    { name: 'definition', label: t('the.definition'), options: [['', t('fork.same')], ...definitions.map(d => [d.name, d.name])] },
    ...limitFields(head),
  ]
  const send = async (v, signal) => {
    const limits = limitsOf(v)
    const made = await api.act(head.id, 'fork', {
      iteration: iteration ?? Number(v.iteration || last), loop, resume: true,
      ...(v.definition && { definition: v.definition }), ...(Object.keys(limits).length && { limits }),
    }, signal)
    go('/runs/' + encodeURIComponent(made.run))
  }
  const title = iteration === undefined ? t('fork.title') : iteration === 0 ? t('fork.first') : t('fork.after', { n: iteration }) + (at?.score === undefined ? '' : ', ' + t('score').toLowerCase() + ' ' + offBy(at.score, at.off_by))
  return html`<${Ask} title=${title} what=${t('fork.what')} verb=${t('fork.do')} fields=${fields} onClose=${onClose} onSend=${send} />`
}
