// What the page knows about the server it talks to.
import { signal } from './ui.js'
import { api } from './api.js'

// link is the state of the connection: live, off (reconnecting) or idle.
export const link = signal('idle')

// readOnly says that the server shows the runs of a file, and changes nothing.
export const readOnly = signal(false)

// you is who one is for the server; null if it does not tell people apart. operates says that one may start runs and act on them,
// writes that one may change definitions and remove runs.
export const you = signal(null)
export const operates = signal(true)
export const writes = signal(true)

// allowed is what of the actions of a run one may do.
export const allowed = can => (writes.value ? can : operates.value ? { ...can, remove: false } : {})

// startsPrograms says that definitions which the page saves may have commands.
export const startsPrograms = signal(true)

// ask reads from the server what it allows.
export const ask = () => api.get('/server').then(s => {
  readOnly.value = s.read_only
  startsPrograms.value = s.allow_commands
  const role = s.you?.role
  operates.value = !s.read_only && role !== 'reader'
  writes.value = !s.read_only && (!role || role === 'author')
  you.value = s.you && !s.you.anonymous ? s.you : null
}, () => {})

// locked says that the server wants a token before it shows anything.
export const locked = signal(false)
export const lock = () => (locked.value = true)
