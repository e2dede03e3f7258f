import type { Random } from '../simulation/random.ts'
import { model, pause } from './world.ts'

/** What one client knows of its request. */
export type Seen = {
  readonly requestId: string | undefined
  readonly status: number
  /** `end`: the whole answer, or the end of a stream. `part`: some of it. */
  readonly saw: 'end' | 'part' | 'refusal' | 'nothing'
}

export type Load = {
  readonly seen: Seen[]
  /** Keys under which requests were repeated until an answer came. */
  readonly idempotencyKeys: Set<string>
  /** Waits for requests under way to end. */
  stop(): Promise<void>
}

type Words = { readonly text: string; readonly stream: boolean; readonly leaveAfter?: number }

/** Plain and streamed, short and long, with good and bad endings; the weights add up to 100. */
function words(random: Random): Words {
  const dice = random.between(0, 99)
  const tokens = 5 + random.between(0, 39)
  if (dice < 34) return { text: `Hello. sandbox:tokens=${tokens}`, stream: false }
  if (dice < 40)
    return { text: `Wait. sandbox:delay=${random.between(0, 149)} sandbox:tokens=${tokens}`, stream: false }
  if (dice < 60) return { text: `Hello. sandbox:tokens=${tokens} sandbox:pace=1`, stream: true }
  // Long enough for several progress marks.
  if (dice < 72) return { text: `A story. sandbox:tokens=${300 + random.between(0, 399)} sandbox:pace=1`, stream: true }
  if (dice < 80) {
    return { text: 'A story. sandbox:tokens=400 sandbox:pace=2', stream: true, leaveAfter: random.between(0, 59) }
  }
  if (dice < 84) return { text: `Hello. sandbox:tokens=${tokens} sandbox:nousage`, stream: random.chance(0.5) }
  if (dice < 88) return { text: `Hello. sandbox:tokens=40 sandbox:cut=${random.between(0, 29)}`, stream: true }
  if (dice < 92) return { text: 'Hello. sandbox:charge-then-fail=500', stream: random.chance(0.5) }
  if (dice < 95) return { text: 'Hello. sandbox:status=503', stream: false }
  return { text: `Hello. sandbox:tokens=${tokens} sandbox:usage=${random.between(0, 899)}`, stream: random.chance(0.5) }
}

export type Customer = { readonly key: string; readonly idempotent: boolean }

export function startLoad(options: {
  readonly urls: readonly string[]
  readonly customers: readonly Customer[]
  readonly clients: number
  readonly random: Random
}): Load {
  const { urls, customers, random } = options
  const seen: Seen[] = []
  const idempotencyKeys = new Set<string>()
  const state = { isOver: false }

  async function client(): Promise<void> {
    while (!state.isOver) {
      const customer = random.pick(customers)
      const asked = words(random)
      if (customer.idempotent) await untilAnswered(customer, asked)
      else {
        const one = await ask(random.pick(urls), customer.key, asked)
        seen.push(one)
        // No gateway answers there at the moment.
        if (one.saw === 'nothing') await pause(20)
      }
    }
  }

  /** What a careful client does: repeats the request under the same key until there is an answer. */
  async function untilAnswered(customer: Customer, asked: Words): Promise<void> {
    const key = crypto.randomUUID()
    idempotencyKeys.add(key)
    for (let tries = 0; tries < 50 && !state.isOver; tries++) {
      const one = await ask(random.pick(urls), customer.key, { ...asked, stream: false }, key)
      seen.push(one)
      const isRunning = one.status === 409 || one.status === 503
      if (one.saw !== 'nothing' && one.saw !== 'part' && !isRunning) return
      await pause(50)
    }
  }

  const clients = Array.from({ length: options.clients }, client)
  return {
    seen,
    idempotencyKeys,
    async stop() {
      state.isOver = true
      await Promise.all(clients)
    },
  }
}

// A gateway that hangs must fail the run, not block it.
const answerMsMax = 30_000

async function ask(
  url: string,
  key: string,
  { text, stream, leaveAfter }: Words,
  idempotencyKey?: string,
): Promise<Seen> {
  const leave = new AbortController()
  const timer = setTimeout(() => leave.abort(), answerMsMax)
  let requestId: string | undefined
  let status = 0
  let got = ''
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: text }] }),
      signal: leave.signal,
      // A connection that died with its gateway must not be reused.
      keepalive: false,
    })
    status = response.status
    requestId = response.headers.get('x-request-id') ?? undefined
    const isReplay = response.headers.get('idempotent-replayed') === 'true'
    let chunks = 0
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      got += decoder.decode(bytes, { stream: true })
      if (leaveAfter !== undefined && ++chunks > leaveAfter) leave.abort()
    }
    if (status !== 200) return { requestId, status, saw: 'refusal' }
    // A stored answer belongs to an earlier request.
    return { requestId: isReplay ? undefined : requestId, status, saw: isWhole(got, stream) ? 'end' : 'part' }
  } catch {
    return { requestId, status, saw: status === 0 ? 'nothing' : stream && isWhole(got, stream) ? 'end' : 'part' }
  } finally {
    clearTimeout(timer)
  }
}

function isWhole(got: string, stream: boolean): boolean {
  if (stream) return got.includes('data: [DONE]')
  try {
    return (JSON.parse(got) as { object?: string }).object === 'chat.completion'
  } catch {
    return false
  }
}
