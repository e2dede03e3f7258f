import type { Child } from './control.ts'
import { benchKey, benchModel, chatStreamBody, messagesModel, messagesStreamBody } from './fixtures.ts'
import { post, readStreams } from './load.ts'
import { median } from './table.ts'

/** Every combination of protocols for a stream: the client's, then the vendor's. */
export const ways = ['chat to chat', 'chat to messages', 'messages to messages', 'messages to chat'] as const
export type Way = (typeof ways)[number]

/** The pass-through that a translated stream is compared with: the same client, with a vendor of its own protocol. */
const passed = { 'chat to messages': 'chat to chat', 'messages to chat': 'messages to messages' } as const

export type ChunkCpu = Readonly<Record<Way, number>>

const path = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const
const body = { chat: chatStreamBody, messages: messagesStreamBody } as const

/** The gateway's CPU time per chunk that its vendor sent, with the chunk's share of the request's own cost. */
export async function measureWays(
  child: Child,
  options: { connections: number; chunks: number; spreadMs: number },
): Promise<ChunkCpu> {
  const found: [Way, number][] = []
  for (const way of ways) {
    const [client, vendor] = way.split(' to ') as ['chat' | 'messages', 'chat' | 'messages']
    const model = vendor === 'chat' ? benchModel : messagesModel
    const target = post(child.port, benchKey, body[client](model), { path: path[client] })
    const before = await child.vitals()
    const read = await readStreams(target, { ...options, each: 1, events: { atLeast: options.chunks } })
    const after = await child.vitals()
    found.push([way, (after.cpuMicros - before.cpuMicros) / (read.streams * options.chunks)])
  }
  return Object.fromEntries(found) as Record<Way, number>
}

export function printWays(rounds: readonly ChunkCpu[]): Readonly<Record<string, number>> {
  const ratios = Object.fromEntries(
    Object.entries(passed).map(([way, pass]) => [way, median(rounds.map((round) => round[way as Way] / round[pass]))]),
  )
  console.log('\nCPU per chunk of a stream, counting, µs (beside it, times the pass-through of the same client)\n')
  for (const way of ways) {
    const ratio = ratios[way]
    const cpu = median(rounds.map((round) => round[way])).toFixed(1)
    console.log(`${way.padEnd(22)}${cpu.padStart(8)}${ratio === undefined ? '' : `   ${ratio.toFixed(2)}x`}`)
  }
  return ratios
}
