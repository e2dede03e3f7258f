import { expect } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { type ClientOptions } from 'openai'
import type { TestGateway } from './gateway.ts'

/** The error that a call rejects with, checked to be of the given class of the client library. */
export async function thrownBy<T extends Error>(
  call: Promise<unknown>,
  kind: abstract new (...given: never[]) => T,
): Promise<T> {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(kind)
  return thrown as T
}

/** OpenAI's official client, pointed at the gateway. It does not retry unless told to. */
export function openaiClient({ url, key }: Pick<TestGateway, 'url' | 'key'>, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0, ...options })
}

/** Anthropic's official client, pointed at the gateway. `seen` collects every request it makes, retries included. */
export function anthropicClient(
  gateway: TestGateway,
  options: ConstructorParameters<typeof Anthropic>[0] & { seen?: Request[] } = {},
): Anthropic {
  const { seen, ...given } = options
  return new Anthropic({
    apiKey: gateway.key,
    baseURL: gateway.url,
    async fetch(url, init) {
      const request = new Request(url, init)
      seen?.push(request.clone())
      return fetch(request)
    },
    ...given,
  })
}

/** The last call that a simulated vendor received. */
export async function lastCall(gateway: TestGateway) {
  const call = (await gateway.calls()).at(-1)
  if (call === undefined) throw new Error('no vendor was called')
  return call
}

/** A single red pixel. */
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** The smallest file that is accepted as a PDF. */
export const pdf = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n').toString(
  'base64',
)
