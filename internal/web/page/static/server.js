// What the page knows about the server it talks to.
import { signal } from './ui.js'
import { api } from './api.js'

// link is the state of the connection: live, off (reconnecting) or idle.
export const link = signal('idle')

// readOnly says that the server shows the runs of a file, and changes nothing.
export const readOnly = signal(false)

// startsPrograms says that definitions which the page saves may have commands.
export const startsPrograms = signal(true)

// ask reads from the server what it allows.
export const ask = () => api.get('/server').then(s => {
  readOnly.value = s.read_only
  startsPrograms.value = s.allow_commands
}, () => {})

// locked says that the server wants a token before it shows anything.
export const locked = signal(false)
export const lock = () => (locked.value = true)
