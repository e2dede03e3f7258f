import type { Bill } from './bill.ts'
import type { SandboxModel } from './model.ts'
import type { MarkedCache } from './marked-cache.ts'
import type { PromptCache } from './prompt-cache.ts'
import type { Videos } from './video/tasks.ts'

/** What all simulated vendors share. */
export type World = {
  /** By vendor, then by the vendor's own model id. */
  readonly models: ReadonlyMap<string, ReadonlyMap<string, SandboxModel>>
  readonly bill: Bill
  readonly cache: PromptCache
  readonly markedCache: MarkedCache
  readonly videos: Videos
}

/** One call whose body has been read completely. */
export type Call = {
  readonly vendor: string
  readonly path: string
  readonly request: Request
  readonly text: string
  /** The caller's `X-Client-Request-Id`, repeated on the bill. */
  readonly ref: string | null
}

export type Route = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  /** The whole path. One that ends in `/*` matches every path below it. */
  readonly path: string
  answer(call: Call): Response | Promise<Response>
}

/** A wire protocol: the routes it offers for a vendor under a root such as `/openai/v1`. */
export type Protocol = (vendor: string, root: string, world: World) => readonly Route[]
