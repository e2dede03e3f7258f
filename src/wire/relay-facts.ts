import type { GatewayError } from '../base/errors.ts'
import type { HostedWork, StreamFacts } from '../capabilities/chat.ts'
import { OutputCounter } from '../capabilities/output-counter.ts'
import type { Usage } from '../capabilities/usage.ts'

/**
 * What a stream that passes through has shown so far, kept up to date with every event. It is its own counter of
 * output, because each further object that an event touches is a cache miss.
 */
export class RelayFacts extends OutputCounter implements StreamFacts {
  usage: Usage | undefined
  finished = false
  ended = false
  failure: GatewayError | undefined
  images = 0
  hosted: HostedWork = { searches: 0, foundBytes: 0 }
}
