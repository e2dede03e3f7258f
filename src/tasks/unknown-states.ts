import type { UnknownStates } from './parts.ts'

export function countUnknownStates(): UnknownStates {
  const counts = new Map<string, { count: number; last: string }>()
  return {
    add(channelId, last) {
      counts.set(channelId, { count: (counts.get(channelId)?.count ?? 0) + 1, last })
    },
    of: (channelId) => counts.get(channelId) ?? { count: 0, last: null },
  }
}
