import type { Steering } from '../steering.ts'

/** Posts callbacks. The posts of one task are sent one after another, so that they arrive in order. */
export type Callbacks = {
  /** `tries`: how often it is tried until it succeeds. Steering may ask for no callback, or for the same one twice. */
  post(task: { readonly steering: Steering }, url: string, body: unknown, tries: number): void
  stop(): void
}

const answerMsMax = 5_000

export function createCallbacks(): Callbacks {
  const stopping = new AbortController()
  const queues = new WeakMap<object, Promise<void>>()

  async function deliver(url: string, text: string, tries: number): Promise<void> {
    for (let left = tries; left > 0 && !stopping.signal.aborted; left -= 1) if (await isTaken(url, text)) return
  }
  async function isTaken(url: string, body: string): Promise<boolean> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(answerMsMax)]),
      })
      await response.body?.cancel()
      return response.ok
    } catch {
      return false // No server answered, or too slowly.
    }
  }
  return {
    post(task, url, body, tries) {
      if (task.steering.has('no-callback')) return
      const copies = task.steering.has('double-callback') ? 2 : 1
      // Serialised now, because the task may change while its posts wait.
      const text = JSON.stringify(body)
      let queue = queues.get(task) ?? Promise.resolve()
      for (let copy = 0; copy < copies; copy += 1) queue = queue.then(() => deliver(url, text, tries))
      queues.set(task, queue)
    },
    stop: () => stopping.abort(),
  }
}
