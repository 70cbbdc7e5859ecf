// What is known of one run: the head that the server has computed, and those iterations that have
// been asked for. The server says what has changed; here it is only kept.
import { signal } from './ui.js'
import { api } from './api.js'

const page = 100

export class Store {
  constructor(id) {
    this.id = id
    this.head = signal(null)
    this.version = signal(0)
    this.loops = new Map()
    this.asked = new Set()
    this.drawn = 0
  }

  loop(address) {
    return this.loops.get(address)
  }

  // want asks for the first iterations of a loop that nothing is known of.
  want(address) {
    if (!this.loops.has(address)) this.load(address, 1)
  }

  async load(address, number) {
    const from = Math.floor((number - 1) / page) * page + 1
    const key = address + '#' + from
    if (this.asked.has(key)) return
    this.asked.add(key)
    try {
      this.take(await api.iterations(this.id, address, from, page))
    } catch (e) {
      this.asked.delete(key)
      throw e
    }
  }

  // take puts {loop, total, iterations} into its place.
  take(part) {
    let loop = this.loops.get(part.loop)
    if (!loop) this.loops.set(part.loop, (loop = { total: 0, iterations: new Map() }))
    loop.total = Math.max(loop.total, part.total)
    for (const it of part.iterations) loop.iterations.set(it.number, it)
    this.changed()
  }

  setHead(head) {
    if (this.head.value && head.seq < this.head.value.seq) return
    this.head.value = head
    for (const part of head.changed || []) this.take(part)
    if (head.loop) this.loopTotal(head.loop.address, head.loop.total)
    this.freshen(head)
  }

  // freshen asks again for iterations that ended between two heads.
  freshen(head) {
    const sent = new Map((head.changed || []).map(part => [part.loop, new Set(part.iterations.map(it => it.number))]))
    for (const [address, loop] of this.loops)
      for (const it of loop.iterations.values())
        if (it.running && !sent.get(address)?.has(it.number)) {
          this.asked.delete(address + '#' + (Math.floor((it.number - 1) / page) * page + 1))
          this.load(address, it.number)
          break
        }
  }

  loopTotal(address, total) {
    const loop = this.loops.get(address)
    if (loop && loop.total < total) {
      loop.total = total
      this.changed()
    }
  }

  // changed draws at most ten times a second.
  changed() {
    if (this.timer) return
    const wait = Math.max(0, 100 - (performance.now() - this.drawn))
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.drawn = performance.now()
      this.version.value++
    }, wait)
  }
}
